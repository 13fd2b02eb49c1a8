/* drift.c - corrects the plan's assumptions by what is measured.
 *
 * A plan is only as good as the link delays and compute times that it assumes. Agents report how
 * long transfers take on their links, and task events show how long computing takes. If two
 * measurements in a row differ from the plan by more than a quarter, the controller corrects the
 * times in the cluster. One measurement is enough if it shows that a node takes twice as long as
 * planned and twice as long as the other nodes. All links of a node are corrected together if most
 * of its measured links differ by a common factor.
 *
 * After a correction the controller repeats the prediction for the plan in force. It adopts another
 * plan only if that plan's iteration is at least 1.5% shorter (answers.c). Otherwise noise would
 * make the run change plans. */
#include "controller/planning/drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "controller/members/admission.h"
#include "controller/members/member.h"
#include "controller/network/link_table.h"
#include "controller/network/observed_links.h"
#include "controller/planning/planning.h"
#include "controller/planning/predict.h"
#include "controller/planning/replan.h"
#include "controller/run/journal.h"
#include "controller/run/record.h"

/* ---- constants ----
 *
 * Every tuned number of this file is here. "Chosen" means that simulations, and no real network or
 * machine, were used to find the number. Each simulation has a fixed seed:
 *
 *     lossy     1,000 transfers, half of them of 0.05 s and half of 0.35 s; the correct answer is
 *               one correction, to the mean
 *     varying   1,000 transfers of 0.12 s with a standard deviation of 30%; no correction is needed
 *     slower    the transfer time of a link rises from 0.05 to 0.25 s. The figure is the number of
 *               transfers until plans assume more than 0.2 s
 *     links     1,000 reports of four links whose times vary by 50%, independently of each other
 *     tasks     eight nodes, 200 iterations, four tasks of 0.1 s each, which vary by 15%; one in
 *               20 takes three times as long; no correction is needed
 *     machine   eight agents on one core for 200 iterations; their common slowdown, 4, varies by
 *               20% between iterations; no correction is needed after the first
 *
 * For each constant, the table shows a smaller value, the chosen value and a larger value. After
 * the name of each simulation, it shows the number of corrections with each of these values:
 *
 *     noticed_ratio    1.125, 1.25, 1.5  lossy 154, 101, 30; varying 40, 15, 2; tasks 369, 246, 193
 *     clear_ratio      1.5, 2, 3         links 62, 8, 0; tasks 476, 246, 124
 *     STRIKES          1, 2, 4           lossy 173, 101, 44; tasks 551, 246, 193
 *     near_share       0.075, 0.15, 0.3  lossy 38, 101, 207
 *     far_share        0.2, 0.4, 0.8     lossy 84, 101, 89; varying 13, 15, 50
 *     far_deviations   1.5, 3, 6         varying 54, 15, 13
 *     deviation_share  0.125, 0.25, 0.5  varying 13, 15, 30
 *     common_share     0.5, 0.75         links 52, 8
 *     SOON_TASKS       1, 2, 4           tasks 312, 246, 138
 *     pace_part        0.125, 0.25, 0.5  machine 19, 74, 135
 *     pace_step        0.025, 0.05, 0.1  machine 126, 74, 21
 */

/* A measurement counts as different from the plan if its ratio to the planned time is above this
 * ratio, or below the inverse. Chosen (table above). With 1.5, a node that is 1.5 times as slow is
 * corrected only after 23 tasks instead of 8. */
static const double noticed_ratio = 1.25;
/* If a single node has this ratio of measured to planned time, the difference cannot be noise.
 * Chosen (table above). With 1.5, 2 and 3, a node that is four times as slow is found at once. */
static const double clear_ratio = 2;
/* If the ratio of measured to planned time is at least this, the journal has a warning instead of
 * an event. No decision depends on it. */
static const double warned_ratio = 1.5;
/* Number of successive measurements that must differ from the plan. Chosen (table above). With 4, a
 * node that is 1.5 times as slow is found only after 16 tasks instead of 8. */
enum { STRIKES = 2 };

/* Differences between measured and planned times below this number of seconds are noise. Chosen: if
 * transfers of 0.05 s vary by 30%, 1,000 transfers cause no correction; with half of this limit
 * they cause 23. With double, plans permanently assume more than 0.0625 s for a link whose
 * transfers were slow for a while and now take 0.05 s again. */
static const double least_s = 0.02;
/* Differences of the mean time of a node's tasks below this number of seconds are noise. This limit
 * is lower than least_s because an iteration has several tasks. If tasks include waits for shared
 * cores, least_s is the limit for tasks too. Chosen: tasks of 0.01 s cause 243 wrong corrections
 * with half of this limit, and 186 with this limit. With double, a node that is 1.5 times as slow
 * is found after 117 tasks instead of 23. */
static const double task_least_s = 0.005;
/* Links with a transfer time below this number of seconds are not compared with their node's other
 * links. Only differences above least_s count, and least_s is more than twice the transfer time of
 * such a link. */
static const double link_least_s = 0.01;
/* On machines that other programs use, the threads of a transfer may wait this many seconds for a
 * processor. Iterations on such machines took 1.5 times the planned time. Chosen: with half, a link
 * is blamed for waits of over 0.05 s; with double, a link that has become 0.2 s slower is not
 * corrected while its machine is shared. */
static const double shared_wait_s = 0.1;

/* ---- transfer times of a link ---- */

/* Weight of a new transfer time in a link's average if the time is near that average. With a weight
 * of 0.4 for every transfer, links that lose 1% of their packets caused new plans in nearly every
 * iteration. `slower` takes 16 transfers with 0.15, 20 with half, and 6 with double. */
static const double near_share = 0.15;
/* Weight of a new transfer time that is far from the average, which may show that the link has
 * changed. Chosen (table above). */
static const double far_share = 0.4;
/* A transfer time is far from the average if it differs by more than this many average deviations.
 * Chosen (table above). */
static const double far_deviations = 3;
/* Weight of a transfer time's deviation in the average deviation. Chosen (table above). When a link
 * is fast again, plans assume this after 27 transfers, and with half only after 131. */
static const double deviation_share = 0.25;
/* Initial value of the average deviation, as a share of the first transfer time. Chosen: half and
 * double of this share do not change the result of any simulation. */
static const double first_deviation = 0.25;
/* Weight of each probe in the average transfer time of a link on which no activations are sent.
 * Chosen: if probes take 0.05 s, an average of 0.35 s falls below 0.2 s after 14 probes. With
 * half this weight, 39 probes are needed, and with double, 8. */
static const double fading_share = 0.05;

/* ---- all links of a node ---- */

enum {
	/* Least number of measured links for which a common factor is computed, because a single
	 * link has no factor in common with other links. Chosen: with 4, no factor is found for
	 * nodes with two or three links in use. */
	LINKS = 2,
	/* If at least this many links are measured, one report is enough to correct all links.
	 * Chosen: with 2, two links that vary by 50% cause 31 wrong corrections in 1,000 reports
	 * instead of none. With 8, links that have become four times as slow are corrected after
	 * 2.2 reports instead of 1.1 (means of 50). */
	MANY_LINKS = 4
};
/* Share of a node's measured links that must differ by the common factor. Chosen (table above).
 * With 1, links that have become four times as slow are corrected after 1.7 reports instead of
 * 1.1. */
static const double common_share = 0.75;

/* ---- tasks of a node ---- */

enum {
	/* Least number of ended tasks for which a node is judged after an iteration. Chosen: with
	 * 1 the simulation `tasks` does not change, because it has four tasks in each iteration;
	 * with 6 the simulation finds no node that is 1.5 times as slow. */
	TASKS = 3,
	/* Number of ended tasks between two judgements of a node during an iteration. Chosen (table
	 * above). With 4, a node that is four times as slow is corrected after four tasks instead
	 * of two. */
	SOON_TASKS = 2,
	/* If a node reports that a task took more than this many microseconds longer than its
	 * iteration, the controller shortens the reported time. The clocks of the node and of the
	 * controller differ by less than this. */
	CLOCK_MARGIN_US = 1000000
};
/* Share of the live nodes that must have ended tasks before any node is judged during an iteration.
 * A median of fewer nodes does not show how fast most nodes are. */
static const double judged_share = 0.5;

/* ---- agents that share processors: the cores of a machine, or a GPU ----
 *
 * The comments below call such processors a machine, even if they are a GPU. */

/* Least number of agents for which a machine is judged. With two agents, the median is the pace of
 * neither agent, so it is unclear whether the machine is the cause. Chosen: with 6, a machine with
 * three agents is never corrected, and plans assume its pace with an error of 17% instead of 8%. */
enum { PACE_AGENTS = 3 };
/* Smallest weight of a newly measured slowdown of a machine. With 0.5, iterations of 20 agents on
 * two cores took 1.24 times the predicted time. With 0.25 and more connections to each peer, they
 * took 1.09 times the predicted time. With 0.125 (table above), plans notice a doubled slowdown
 * after 24 iterations instead of 7. */
static const double pace_part = 0.25;
/* Relative changes of a machine's pace below this are ignored. Chosen (table above). With each
 * value in the table, the assumed pace has an error of 7 to 8%. */
static const double pace_step = 0.05;
/* Largest number of steps in which a pace is first estimated. The steps end once a step changes the
 * pace by at most the share guess_step. Each step halves the logarithm of the error, so 8 steps
 * suffice for a first guess that is 100 times too small. The other steps are needed because the
 * overlap of tasks changes with the pace. */
enum { PACE_STEPS = 12 };
static const double guess_step = 0.025;

/* ---- plans ---- */

/* The journal reports a change of a plan's predicted time by at least this ratio. No decision
 * depends on it. */
static const double reported_ratio = 1.05;
enum {
	/* Largest number of plans requested during an iteration. Only the newest is used. Chosen:
	 * with 1, only the first node that becomes slow in an iteration would cause a request. All
	 * other slow nodes would be ignored until the iteration ends. But each further plan keeps
	 * the planner's thread busy. */
	ASKED_MOST = 3,
	/* Shortest time between two requests that small corrections cause. Such a request searches
	 * for up to REPLAN_REFINE_S. Chosen: with half of this time, the planner is busy for twice
	 * the share of the time. */
	BETTER_EVERY_US = 15000000,
	/* During this number of iterations after a plan took effect, small corrections cannot
	 * request another plan. The first corrections show no change of the network. They arise
	 * because the plan's links and tasks are measured for the first time, and differ from the
	 * estimates. A steady network caused three or four new plans in ten iterations. The lack of
	 * this limit was one of three causes. */
	SETTLING = 10,
	/* Limits on the corrections that a node may cause: CORRECTIONS in one burst, and
	 * CORRECTIONS_A_MINUTE in each later minute. Each of the node's links adds two corrections
	 * to the burst, and one to each minute. An honest node in a lossy network causes about one
	 * correction in ten transfers (`lossy`). The limits bound the number of plans that
	 * contradicting reports can cost (tests/hostile_test.sh). */
	CORRECTIONS = 32,
	CORRECTIONS_A_MINUTE = 3
};

/* ---- comparisons ---- */

static bool is_different(double measured, double believed)
{
	return measured > believed * noticed_ratio || measured < believed / noticed_ratio;
}

static double ratio_of(const struct member *m)
{
	return m->tasks.planned_s > 0 ? m->tasks.took_s / m->tasks.planned_s : 1;
}

/* The agents that share the processors of one machine, or one GPU, and their common slowdown. */
struct machine_pace {
	uint32_t agents; /* number of agents that are live or suspect */
	uint32_t judged; /* number of agents that have ended enough tasks to be judged */
	/* Measured compute time as a multiple of the planned time: the median of the judged agents;
	 * 1: too few agents. */
	double compute_ratio;
	/* Measured delay as a multiple of the planned delay: the median of the agents' links; 1:
	 * unknown. */
	double link_ratio;
	bool shared; /* the agents share processors: there are fewer processors than agents */
};

static struct machine_pace measure_pace(const struct members *members, const struct member *m,
					uint32_t tasks)
{
	double ratios[MSG_NODES], link_ratios[MSG_NODES];
	struct machine_pace w = { .compute_ratio = 1, .link_ratio = 1 };
	size_t n_links = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *other = &members->list[i];

		if (!member_computes(other) ||
		    (m->hello.machine[0] && !members_share_processors(m, other)))
			continue; /* if m's machine is unknown, all agents are counted */
		w.agents++;
		if (other->tasks.n >= tasks)
			ratios[w.judged++] = ratio_of(other);
		if (other->links.delay_ratio > 0)
			link_ratios[n_links++] = other->links.delay_ratio;
	}
	if (w.judged >= PACE_AGENTS || !m->hello.machine[0])
		w.compute_ratio = array_median(ratios, w.judged);
	if (n_links)
		w.link_ratio = array_median(link_ratios, n_links);
	w.shared = member_processors(m) > 0 && w.agents > member_processors(m);
	return w;
}

/* Returns true if the agents that share a machine's cores are slow together. Returns false for
 * fewer than PACE_AGENTS agents, because the machine may then not be the cause. */
static bool is_overloaded(const struct machine_pace *w)
{
	return w->shared && w->agents >= PACE_AGENTS &&
	       ((w->judged >= PACE_AGENTS && w->compute_ratio > noticed_ratio) ||
		w->link_ratio > noticed_ratio);
}

/* Returns true if all agents on m's machine are slow together. In that case their measurements
 * say nothing about a single agent or about the network. */
static bool machine_is_overloaded(const struct members *members, const struct member *m)
{
	struct machine_pace w = measure_pace(members, m, 1);

	return is_overloaded(&w);
}

/* Returns true if a node's ratio is far from 1 and also, in the same direction, far from the other
 * nodes' median. */
static bool stands_out(double ratio, double baseline)
{
	return (ratio > clear_ratio && ratio > baseline * clear_ratio) ||
	       (ratio < 1 / clear_ratio && ratio < baseline / clear_ratio);
}

static double *delay_of(const struct cluster *of, uint16_t from, uint16_t to)
{
	return &of->delay_s[from * of->n_nodes + to];
}

/* Returns true if m may cause corrections of this many links now. The limit stops an agent that
 * keeps contradicting its own reports, because each correction can cause a plan. */
static bool claim_correction(struct members *members, struct member *m, uint32_t links)
{
	const double n = members->n;

	if (rate_limit_take(&m->quota.corrections, links, 2 * n + CORRECTIONS,
			    (n + CORRECTIONS_A_MINUTE) / 60, members->run->now_us))
		return true;
	admission_ignored(members->run, m, "keeps contradicting its own reports of its links");
	return false;
}

/* Returns the seconds in which the hosts at both ends encode and decode an activation. Returns 0 if
 * times are emulated. Also returns 0 if an end is on a machine that other programs use, because
 * these programs make the times vary. */
static double hosts_s(const struct members *members, uint16_t from, uint16_t to)
{
	if (members->run->options.cluster.time_scale > 0 ||
	    shared_machines_share(members, from, to) > 0)
		return 0;
	return members->list[from].links.encode_s + members->list[to].links.decode_s;
}

/* Sets the delay that plans assume for a link, and the time of a sum between its two nodes. The
 * work of hosts is a part of the delay that does not occupy the link. */
static void correct_delay(struct planning *planning, uint16_t from, uint16_t to, double s)
{
	if (planning->members->links)
		link_table_apply(planning->members->links, planning->run->cluster, from, to,
				 fmax(0, s - hosts_s(planning->members, from, to)));
	*delay_of(planning->run->cluster, from, to) = s;
	record_link(planning->run, from, to);
	planning->drift.links_corrected = true;
}

/* Returns the reported transfer time of a link. If other programs use the machine of an end,
 * deducts two times that are not the link's fault: the wait for processors, and the additional time
 * of the hosts' work on the message. */
static double link_time_s(const struct members *members, const struct msg_link *l, double believed)
{
	double took_s = (double)l->measured_delay_s,
	       share = shared_machines_share(members, l->from, l->to);

	if (share == 0 || took_s <= believed)
		return took_s;
	return fmax(believed, took_s - shared_wait_s / members->run->unit_s - share * believed);
}

/* Adds the transfer time of an activation to the link's average. On a link that loses packets, some
 * transfers take several times as long as others. A time near the average therefore has little
 * weight. A time that is many deviations away has more weight, because the link may have
 * changed. */
static void add_transfer(struct link_seen *seen, double transfer_s, double latency_s)
{
	double stray_s = transfer_s - seen->transfer_s;

	if (seen->transfer_s > 0) {
		bool is_far = fabs(stray_s) > far_deviations * seen->transfer_deviation_s;

		seen->transfer_s += stray_s * (is_far ? far_share : near_share);
		seen->transfer_deviation_s +=
			(fabs(stray_s) - seen->transfer_deviation_s) * deviation_share;
	} else {
		seen->transfer_s = transfer_s;
		seen->transfer_deviation_s = transfer_s * first_deviation;
	}
	seen->transfer_latency_s = latency_s;
}

/* Moves the link's average transfer time towards the probed time, for links on which no activation
 * was sent. If the latency has changed, drops the average. */
static void fade_transfer(struct link_seen *seen, double probed_s, double latency_s)
{
	if (is_different(latency_s, seen->transfer_latency_s) &&
	    fabs(latency_s - seen->transfer_latency_s) > least_s)
		seen->transfer_s = 0;
	else
		seen->transfer_s += (probed_s - seen->transfer_s) * fading_share;
}

/* Returns the transfer time of an activation on a measured link. The result is the average of
 * past transfers or, without transfers, the time that follows from latency and bandwidth. If
 * transfers are slower than the bandwidth predicts, lowers the bandwidth, because sums will be
 * slower too. */
static double measured_transfer_s(const struct members *members, const struct msg_link *l)
{
	struct link_seen *seen = link_table_at(members->links, l->from, l->to);
	double probed_s = link_table_transfer_s(members->links, l->from, l->to,
						members->links->activation_bytes),
	       bytes_s;

	if (!(l->measured_delay_s > 0)) {
		if (seen->transfer_s > 0)
			fade_transfer(seen, probed_s, (double)l->latency_s);
		return seen->transfer_s > 0 ? seen->transfer_s : probed_s;
	}
	add_transfer(seen, link_time_s(members, l, probed_s), (double)l->latency_s);
	bytes_s = seen->transfer_s - (double)l->latency_s;
	if (bytes_s > least_s && members->links->activation_bytes / bytes_s < seen->bandwidth)
		seen->bandwidth = members->links->activation_bytes / bytes_s;
	return seen->transfer_s;
}

void drift_link(struct planning *planning, struct observed_link *s)
{
	const struct msg_link *l = &s->link;
	double believed = *delay_of(planning->run->cluster, l->from, l->to);
	double host = hosts_s(planning->members, l->from, l->to);
	double measured = planning->members->links
				  ? measured_transfer_s(planning->members, l)
				  : link_time_s(planning->members, l, believed - host);

	if (l->from == l->to || !(measured > 0))
		return;
	measured += host;
	if (believed < 0 || !is_different(measured, believed) ||
	    fabs(measured - believed) * planning->run->unit_s < least_s) {
		s->strikes = 0;
		return;
	}
	if (++s->strikes < STRIKES)
		return;
	s->strikes = 0;
	if (!claim_correction(planning->members, &planning->members->list[l->from], 1))
		return;
	note(planning->run, NOTE_LOG, l->from, 0, "link n%02u>n%02u takes %.2f s, planned %.2f s",
	     l->from, l->to, measured, believed);
	correct_delay(planning, l->from, l->to, measured);
}

/* Returns the ratio of measured to planned delay that three quarters of the node's measured links
 * have in common; 0: there is no such ratio. *n: number of links compared. */
static double common_ratio(const struct members *members, const struct member *m,
			   const struct msg_links *l, size_t *n)
{
	double ratios[MSG_NODES], middle;
	size_t alike = 0;

	*n = 0;
	for (uint32_t i = 0; i < l->n_links && *n < MSG_NODES; i++) {
		uint16_t to = l->links[i].to;
		struct msg_link own = l->links[i];
		double given;

		if (to >= members->n || to == m->id || !((double)own.measured_delay_s > 0))
			continue;
		given = *delay_of(members->run->cluster_as_given, m->id, to);
		if (given * members->run->unit_s < link_least_s)
			continue;
		own.from = m->id;
		ratios[(*n)++] = link_time_s(members, &own, given) / given;
	}
	if (*n < LINKS)
		return 0;
	middle = array_median(ratios, *n);
	for (size_t i = 0; i < *n; i++)
		alike += !is_different(ratios[i], middle);
	return (double)alike >= common_share * (double)*n ? middle : 0;
}

/* Returns true if times were corrected since the last call. Sets *reason to a text that says which
 * times. */
static bool take_corrections(struct drift *d, const char **reason)
{
	bool any = d->compute_corrected || d->links_corrected;

	*reason = !d->links_corrected     ? "compute times have changed"
		  : !d->compute_corrected ? "links have changed"
					  : "links and compute times have changed";
	d->compute_corrected = d->links_corrected = false;
	return any;
}

/* Requests a plan with the corrected times during an iteration, so that the plan is ready for the
 * next iteration. */
static void ask_for_next(struct planning *planning)
{
	struct drift *d = &planning->drift;
	const char *reason;

	d->asked = d->asked_in == planning->run->iteration ? d->asked : 0;
	d->asked_in = planning->run->iteration;
	if (planning->run->phase != PHASE_COMPUTING || d->asked >= ASKED_MOST)
		return;
	d->asked++;
	take_corrections(d, &reason);
	replan(planning, reason);
}

/* Corrects all links of a node by the ratio that its measured links have in common, because the
 * links of a node often become slow together. Links that the plan avoids are not measured. If
 * only measured links were corrected, new plans would move to unmeasured links that are just as
 * slow. */
void drift_links(struct planning *planning, struct member *m, const struct msg_links *l)
{
	size_t n;
	double ratio = common_ratio(planning->members, m, l, &n), was = m->links.ratio;

	if (ratio > 0)
		m->links.delay_ratio = ratio / was;
	if (machine_is_overloaded(planning->members, m))
		return;
	if (ratio > 0 && !is_different(ratio, 1))
		ratio = 1;
	if (ratio <= 0 || ratio == was ||
	    (ratio != 1 && ratio < was * clear_ratio && ratio > was / clear_ratio)) {
		m->links.strikes = 0;
		return;
	}
	if (++m->links.strikes < STRIKES && n < MANY_LINKS)
		return;
	m->links.strikes = 0;
	if (!claim_correction(planning->members, m, planning->members->n - 1))
		return;
	m->links.ratio = ratio;
	if (ratio == 1)
		note(planning->run, NOTE_EVENT, m->id, 0,
		     "n%02u's links take as long as planned again", m->id);
	else
		note(planning->run, NOTE_WARNING, m->id, 0,
		     "n%02u's links take %.1f times as long as planned", m->id, ratio);
	for (uint16_t to = 0; to < planning->members->n; to++)
		if (to != m->id && *delay_of(planning->run->cluster_as_given, m->id, to) >= 0)
			correct_delay(planning, m->id, to,
				      *delay_of(planning->run->cluster_as_given, m->id, to) *
					      ratio);
	ask_for_next(planning);
}

/* Multiplies the compute times that plans assume for m by `ratio`. */
static void slow_down(struct planning *planning, struct member *m, double ratio)
{
	struct cluster_node *n = &planning->run->cluster->nodes[m->id];

	m->compute.pace *= ratio;
	n->forward_s *= ratio;
	n->backward_s *= ratio;
	n->loss_s *= ratio;
	record_compute(planning->run, m->id);
	m->shown.is_stale = true;
	planning->drift.compute_corrected = true;
}

/* Returns true if m's tasks include waits for a core that agents share. Emulated tasks include such
 * waits only if other programs use the cores too. */
static bool waits_for_cores(const struct run *run, const struct member *m,
			    const struct machine_pace *w)
{
	return w->shared && (run->options.cluster.time_scale == 0 || m->processor.is_shared);
}

/* Corrects m's compute time if its tasks take longer or shorter than planned, and starts a new
 * measurement. Returns true if the time was corrected.
 *
 * On shared cores short tasks wait long for a core, so an agent is compared with the median of its
 * machine's agents. A GPU needs no such comparison: its driver shares it in short turns. */
static bool judge_node(struct planning *planning, struct member *m, const struct machine_pace *w)
{
	double baseline = w->shared ? w->compute_ratio : 1, ratio = ratio_of(m) / baseline;
	bool noisy = !m->hello.card[0] && waits_for_cores(planning->run, m, w),
	     apart = stands_out(ratio_of(m), w->compute_ratio);
	double off_s = fabs(m->tasks.took_s - m->tasks.planned_s * baseline) / m->tasks.n;
	bool is_off = (m->tasks.n >= TASKS || apart) && is_different(ratio, 1) &&
		      (apart || !is_overloaded(w)) && off_s > (noisy ? least_s : task_least_s);

	m->tasks.took_s = m->tasks.planned_s = 0;
	m->tasks.n = 0;
	m->tasks.strikes = is_off ? m->tasks.strikes + (apart && !noisy ? STRIKES : 1) : 0;
	if (m->tasks.strikes < STRIKES)
		return false;
	m->tasks.strikes = 0;
	note(planning->run, ratio > warned_ratio ? NOTE_WARNING : NOTE_EVENT, m->id, 0,
	     "n%02u computes %.1f times as long as planned", m->id, ratio);
	slow_down(planning, m, ratio);
	return true;
}

/* If the agents of a machine wait for its cores, corrects the compute times of all of them by the
 * median of their ratios. The first two measurements count fully,
 * because the first of them is taken with cold connections and caches. Measurements vary, so the
 * third counts by a half, the fourth by a third, and every later one by a quarter (pace_part). */
static void judge_machine(struct planning *planning, struct member *first,
			  const struct machine_pace *w)
{
	double part = fmax(1.0 / (first->compute.times_paced > 1 ? first->compute.times_paced : 1),
			   pace_part),
	       factor = pow(w->compute_ratio, part);

	if (!waits_for_cores(planning->run, first, w) || w->judged < PACE_AGENTS)
		return;
	first->compute.times_paced++;
	if (fabs(factor - 1) < pace_step)
		return;
	for (uint32_t i = 0; i < planning->members->n; i++)
		if (members_share_processors(first, &planning->members->list[i]) &&
		    planning->members->list[i].compute.alone_forward_s > 0)
			slow_down(planning, &planning->members->list[i],
				  fmax(factor, 1 / planning->members->list[i].compute.pace));
}

/* The start or the end of a task in a simulated plan. */
struct turn {
	double at_s;
	int step; /* 1: a task starts; -1: a task ends */
};

static int order_turns(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	return x->at_s != y->at_s ? (x->at_s > y->at_s) - (x->at_s < y->at_s) : x->step - y->step;
}

/* Returns the factor by which tasks on m's machine take longer because several tasks share a core.
 * The factor is the number of simultaneous tasks per core, at least 1, as a mean over the running
 * time of all tasks.
 * turns: scratch space with two entries for each task. */
static double shared_stretch(const struct members *members, const struct member *m,
			     const struct simulation *s, struct turn *turns)
{
	double took_s = 0, stretched_s = 0;
	int n = 0, running = 0;

	for (int i = 0; i < s->n_tasks; i++)
		if (members_share_processors(m, &members->list[s->tasks[i].node])) {
			turns[n++] = (struct turn){ s->tasks[i].start_s, 1 };
			turns[n++] = (struct turn){ s->tasks[i].end_s, -1 };
		}
	qsort(turns, (size_t)n, sizeof(*turns), order_turns);
	for (int i = 0; i + 1 < n; i++) {
		double s_each = turns[i + 1].at_s - turns[i].at_s;

		running += turns[i].step;
		took_s += running * s_each;
		stretched_s += running * s_each * fmax(1, (double)running / member_processors(m));
	}
	return took_s > 0 ? stretched_s / took_s : 1;
}

/* Corrects the assumed pace of a machine's agents by one step. The plan is simulated with the
 * assumed pace, and the step moves the pace towards the slowdown in that simulation. The pace
 * changes which tasks overlap, so several steps are needed. Returns true if the step changed the
 * pace. */
static bool guess_machine(struct planning *planning, struct member *first, const struct plan *p)
{
	struct simulation *s = NULL;
	struct turn *turns = NULL;
	struct error err;
	double factor = 1;

	if (simulate(planning->run->cluster, p, &s, &err) == 0) {
		turns = alloc_array(2 * (size_t)s->n_tasks, sizeof(*turns));
		factor = sqrt(shared_stretch(planning->members, first, s, turns) /
			      first->compute.pace);
	}
	for (uint32_t k = first->id; fabs(factor - 1) > guess_step && k < planning->members->n; k++)
		if (members_share_processors(first, &planning->members->list[k]) &&
		    planning->members->list[k].compute.alone_forward_s > 0)
			slow_down(planning, &planning->members->list[k], factor);
	simulation_free(s);
	free(turns);
	return fabs(factor - 1) > guess_step;
}

/* Returns true if m has the smallest id of the nodes on its machine. */
static bool is_first_of_machine(const struct members *members, const struct member *m)
{
	for (uint32_t i = 0; i < m->id; i++)
		if (members_share_processors(m, &members->list[i]))
			return false;
	return true;
}

void drift_guess_pace(struct planning *planning, const struct plan *p)
{
	for (uint32_t i = 0; i < planning->members->n; i++) {
		struct member *m = &planning->members->list[i];

		if (!is_first_of_machine(planning->members, m) ||
		    !measure_pace(planning->members, m, 1).shared || m->compute.pace != 1)
			continue;
		for (int steps = 0; steps < PACE_STEPS && guess_machine(planning, m, p); steps++)
			;
	}
}

/* Converts the reported microseconds of a task to seconds, limited to possible values: above zero,
 * and at most a second longer than the iteration, which began at began_us. */
static double took_s(const struct run *run, int64_t began_us, int64_t us)
{
	int64_t most_us = run->now_us - began_us + CLOCK_MARGIN_US;

	return 1e-6 * (double)(us < 1 ? 1 : us > most_us ? most_us : us);
}

/* Returns the number of nodes that have ended tasks since their last judgement. */
static uint32_t count_judged(const struct members *members)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < members->n; i++)
		n += members->list[i].tasks.n > 0;
	return n;
}

/* Adds the measured and the planned time of an ended task to the node's totals. The measured time
 * includes the time for which the node's host delayed the task. Begin and end of the task are times
 * of the node's own clock. The estimated offset to the controller's clock may change between them,
 * so took_s limits the measured time. */
void drift_task(struct planning *planning, struct member *m, const struct msg_task_event *e,
		int64_t began_us)
{
	int64_t at_us = e->at_us - m->clock.offset_us;
	struct machine_pace w;

	if (e->type == WORK_STARTS) {
		m->tasks.started_us = at_us;
		m->tasks.late_us = e->late_us;
	}
	if (e->type != WORK_ENDS || !m->tasks.started_us)
		return;
	m->tasks.took_s += took_s(planning->run, began_us,
				  at_us - m->tasks.started_us + m->tasks.late_us);
	m->tasks.planned_s += planning->run->unit_s *
			      cluster_task_s(planning->run->cluster, m->id,
					     member_stage(planning->run, m), e->kind);
	m->tasks.n++;
	m->tasks.started_us = 0;
	/* Comparing a node with all others is costly, so this is done only if the node is far from
	 * its planned time. */
	if (m->tasks.n % SOON_TASKS != 0 || !stands_out(ratio_of(m), 1))
		return;
	w = measure_pace(planning->members, m, 1);
	if (waits_for_cores(planning->run, m, &w) || is_overloaded(&w) ||
	    count_judged(planning->members) < judged_share * members_live(planning->members))
		return;
	if (stands_out(ratio_of(m), w.compute_ratio) && judge_node(planning, m, &w))
		ask_for_next(planning);
}

/* Judges every node, and every machine whose agents share its cores. Called once in an
 * iteration. */
static void judge_all(struct planning *planning)
{
	bool judged[MSG_NODES] = { false };

	for (uint32_t i = 0; i < planning->members->n; i++) {
		struct machine_pace w;

		if (judged[i])
			continue;
		w = measure_pace(planning->members, &planning->members->list[i], TASKS);
		judge_machine(planning, &planning->members->list[i], &w);
		for (uint32_t k = i; k < planning->members->n; k++) {
			if (k != i && !members_share_processors(&planning->members->list[i],
							     &planning->members->list[k]))
				continue;
			judged[k] = true;
			if (planning->members->list[k].tasks.n > 0)
				judge_node(planning, &planning->members->list[k], &w);
		}
	}
}

/* Predicts the time of the plan in force again, with the corrected times. Returns the new time
 * divided by the former time; < 0: the plan can no longer be carried out. */
static double predict_again(struct members *members)
{
	struct plan_predicted *p = &members->run->plan->plan->predicted;
	double was = p->iteration_s;
	struct simulation *s;
	struct error err;

	if (simulate(members->run->cluster, members->run->plan->plan, &s, &err) != 0)
		return -1;
	p->iteration_s = s->iteration_s;
	p->total_s = s->total_s;
	simulation_free(members->run->plan->trace);
	members->run->plan->trace = s;
	predict(members, members->run->plan);
	return p->iteration_s / was;
}

/* Returns true if small corrections may now cause a request for a better plan. */
static bool may_be_bettered(const struct planning *planning)
{
	const struct run *run = planning->run;

	return run->now_us - planning->drift.bettered_us > BETTER_EVERY_US &&
	       run->committed + 1 >= run->plan->iteration + SETTLING;
}

void drift_turn(struct planning *planning)
{
	double was, ratio;
	const char *reason;

	judge_all(planning);
	if (!planning->run->plan || planning->wanted_id ||
	    !take_corrections(&planning->drift, &reason))
		return;
	was = planning->run->plan->plan->predicted.iteration_s;
	ratio = predict_again(planning->members);
	if (ratio < 0) {
		replan(planning, "the links have changed");
		return;
	}
	if (ratio > reported_ratio || ratio < 1 / reported_ratio)
		note(planning->run, NOTE_PREDICTION, -1, 0,
		     "the plan in force: %.3g s expected, now %.3g s", was, was * ratio);
	/* A large change causes a request for a plan at once, and a small change only from time to
	 * time. */
	if (is_different(ratio, 1)) {
		replan_if_better(planning, reason, true);
	} else if (may_be_bettered(planning)) {
		planning->drift.bettered_us = planning->run->now_us;
		replan_if_better(planning, reason, false);
	}
}
