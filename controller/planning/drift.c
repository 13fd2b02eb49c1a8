/* drift.c - corrects the plan's assumptions by what is measured.
 *
 * A plan is only as good as the link delays and compute times that it assumes. Agents report how
 * long transfers take on their links, and task events show how long computing takes. If two
 * measurements in a row differ from the plan by more than a quarter, the controller corrects the
 * times in the cluster. One measurement is enough for a node that takes twice as long as planned,
 * and twice as long as the other nodes. All links of a node are corrected together if most of the
 * measured ones differ by a common factor.
 *
 * After a correction the controller repeats the prediction for the plan in force. Another plan is
 * adopted only if it gains more than a few percent, so that noise does not make the run change
 * plans.
 */
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

/* A ratio above this, or below its inverse, counts as a difference from the plan. */
static const double noticed_ratio = 1.25;
static const double clear_ratio = 2; /* a ratio that cannot be noise if only one node has it */
static const double least_s = 0.02; /* smaller differences, in real seconds, are noise */
/* The threads that a transfer needs may wait for this long, in real seconds, on shared machines. */
static const double shared_wait_s = 0.1;
/* Weights of a new measurement in a running average. */
static const double near_share = 0.15, /* a transfer time near the average */
	far_share = 0.4,        /* a transfer time far from it: the link may have changed */
	deviation_share = 0.25, /* the deviation of a transfer time */
	fading_share = 0.05;    /* the probed time, on a link without transfers */
/* Smallest weight of a newly measured slowdown of a machine. */
static const double pace_part = 0.25;
static const double pace_step = 0.05; /* smaller changes of a machine's pace are ignored */
static const double reported_ratio = 1.05; /* smaller changes of a plan's time are not reported */
enum {
	STRIKES = 2,      /* measurements in a row that must differ from the plan */
	TASKS = 3,        /* fewest tasks by which a node is judged after an iteration */
	SOON_TASKS = 2,   /* tasks between two judgements of a node during an iteration */
	LINKS = 2,        /* fewest measured links that can have a common factor */
	MANY_LINKS = 4,   /* with at least this many measured links, one measurement is enough */
	PACE_AGENTS = 3,        /* fewest agents by which a machine is judged */
	PACE_STEPS = 12,  /* limit of steps of the first estimate of a machine's pace */
	ASKED_MOST = 3,   /* limit of plans requested during an iteration */
	CORRECTIONS = 32, /* corrections that a node may cause in a burst, beside two per link */
	BETTER_EVERY_US = 15000000, /* shortest time between requests for small corrections */
	/* Iterations by a new plan before small corrections count: until then they only show that
	 * the first measurements of its links and tasks differ from the estimates. */
	SETTLING = 10
};

static bool is_different(double measured, double believed)
{
	return measured > believed * noticed_ratio || measured < believed / noticed_ratio;
}

static double ratio_of(const struct member *m)
{
	return m->tasks.planned_s > 0 ? m->tasks.took_s / m->tasks.planned_s : 1;
}

/* The agents of one machine, and how much slower than planned they are together. */
struct machine_pace {
	uint32_t agents;  /* live or suspect */
	uint32_t judged;  /* agents that have ended enough tasks to be judged */
	/* Median ratio of measured to planned compute time of the judged agents; 1: too few. */
	double compute_ratio;
	/* Median ratio of measured to planned delay of the agents' links; 1: unknown. */
	double link_ratio;
	bool shared; /* the machine has fewer cores than agents, so they share cores */
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
		    (m->hello.machine[0] && !members_share_machine(m, other)))
			continue; /* if m's machine is unknown, all agents count as one machine's */
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
	w.shared = m->hello.cores > 0 && w.agents > m->hello.cores;
	return w;
}

/* Returns true if the agents of a machine that share its cores are late together. Fewer than
 * PACE_AGENTS agents do not show whether the machine is the cause. */
static bool is_overloaded(const struct machine_pace *w)
{
	return w->shared && w->agents >= PACE_AGENTS &&
	       ((w->judged >= PACE_AGENTS && w->compute_ratio > noticed_ratio) ||
		w->link_ratio > noticed_ratio);
}

/* Returns true if all agents of m's machine are late together. In that case their
 * measurements say nothing about one agent or about the network. */
static bool machine_is_overloaded(const struct members *members, const struct member *m)
{
	struct machine_pace w = measure_pace(members, m, 1);

	return is_overloaded(&w);
}

/* Returns true if a node's ratio is far from 1 and, in the same direction, far from the others'
 * median. */
static bool stands_out(double ratio, double baseline)
{
	return (ratio > clear_ratio && ratio > baseline * clear_ratio) ||
	       (ratio < 1 / clear_ratio && ratio < baseline / clear_ratio);
}

static double *delay_of(const struct cluster *of, uint16_t from, uint16_t to)
{
	return &of->delay_s[from * of->n_nodes + to];
}

/* Returns true if this many links of m may be corrected now. The limit ignores an agent that keeps
 * contradicting its own reports, because each correction can cost a plan. */
static bool claim_correction(struct members *members, struct member *m, uint32_t links)
{
	const double n = members->n;

	if (rate_limit_take(&m->quota.corrections, links, 2 * n + CORRECTIONS, (n + 3) / 60,
			    members->run->now_us))
		return true;
	admission_ignored(members->run, m, "keeps contradicting its own reports of its links");
	return false;
}

/* Sets the delay that plans assume for a link, and the time of a sum between its two nodes. */
static void correct_delay(struct planning *planning, uint16_t from, uint16_t to, double s)
{
	*delay_of(planning->run->cluster, from, to) = s;
	if (planning->members->links)
		link_table_apply(planning->members->links, planning->run->cluster, from, to, s);
	record_link(planning->run, from, to);
	planning->drift.links_corrected = true;
}

/* Returns the reported transfer time of a link. On shared machines a transfer also waits for
 * processors: that time, and the stretched work on the message, are not the link's. */
static double link_time_s(const struct members *members, const struct msg_link *l, double believed)
{
	double took_s = (double)l->measured_delay_s,
	       share = shared_machines_share(members, l->from, l->to);

	if (share == 0 || took_s <= believed)
		return took_s;
	return fmax(believed, took_s - shared_wait_s / members->run->unit_s - share * believed);
}

/* Adds the transfer time of an activation to the link's average. On a link that loses packets some
 * transfers take several times as long as others. A time within three deviations of the average
 * therefore has little weight. A time beyond them has more, because the link may have changed. */
static void add_transfer(struct link_seen *seen, double transfer_s, double latency_s)
{
	double stray_s = transfer_s - seen->transfer_s;

	if (seen->transfer_s > 0) {
		bool is_far = fabs(stray_s) > 3 * seen->transfer_deviation_s;

		seen->transfer_s += stray_s * (is_far ? far_share : near_share);
		seen->transfer_deviation_s +=
			(fabs(stray_s) - seen->transfer_deviation_s) * deviation_share;
	} else {
		seen->transfer_s = transfer_s;
		seen->transfer_deviation_s = transfer_s / 4;
	}
	seen->transfer_latency_s = latency_s;
}

/* Moves the link's average towards the probed time when no activation has travelled. If the latency
 * has changed, the average is dropped. */
static void fade_transfer(struct link_seen *seen, double probed_s, double latency_s)
{
	if (is_different(latency_s, seen->transfer_latency_s) &&
	    fabs(latency_s - seen->transfer_latency_s) > least_s)
		seen->transfer_s = 0;
	else
		seen->transfer_s += (probed_s - seen->transfer_s) * fading_share;
}

/* Returns the transfer time of an activation on a measured link: the average of those that
 * travelled, or the time that the link's latency and bandwidth give. If transfers are slower than
 * latency and bandwidth say, the bandwidth is lowered, because sums will be slower too. */
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
	double measured = planning->members->links ? measured_transfer_s(planning->members, l)
						   : link_time_s(planning->members, l, believed);

	if (l->from == l->to || !(measured > 0))
		return;
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
 * have in common, or 0 if there is none. *n: number of links compared. */
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
		if (given * members->run->unit_s < least_s / 2)
			continue;
		own.from = m->id;
		ratios[(*n)++] = link_time_s(members, &own, given) / given;
	}
	if (*n < LINKS)
		return 0;
	middle = array_median(ratios, *n);
	for (size_t i = 0; i < *n; i++)
		alike += !is_different(ratios[i], middle);
	return alike * 4 >= *n * 3 ? middle : 0;
}

/* Returns true if times were corrected since the last call, and in *reason which ones. */
static bool take_corrections(struct drift *d, const char **reason)
{
	bool any = d->compute_corrected || d->links_corrected;

	*reason = !d->links_corrected     ? "compute times have changed"
		  : !d->compute_corrected ? "links have changed"
					  : "links and compute times have changed";
	d->compute_corrected = d->links_corrected = false;
	return any;
}

/* Asks for a plan by the corrected times during an iteration, so that it is ready for the next
 * one. */
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

/* Corrects all links of a node by the ratio that the measured ones have in common, because a slow
 * link often means that all links of its node are slow. Links that the plan avoids are not
 * measured. Without this, new plans would move to links that are just as slow. */
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

/* Corrects m's compute time if its tasks show another one, and starts a new measurement. Returns
 * true if the time was corrected. Where agents share a machine's cores, short tasks wait long for a
 * core. An agent is then compared with the median of that machine's agents. */
static bool judge_node(struct planning *planning, struct member *m, const struct machine_pace *w)
{
	double baseline = w->shared ? w->compute_ratio : 1, ratio = ratio_of(m) / baseline;
	bool noisy = w->shared && planning->run->options.cluster.time_scale == 0,
	     apart = stands_out(ratio_of(m), w->compute_ratio);
	double off_s = fabs(m->tasks.took_s - m->tasks.planned_s * baseline) / m->tasks.n;
	bool is_off = (m->tasks.n >= TASKS || apart) && is_different(ratio, 1) &&
		      (apart || !is_overloaded(w)) && off_s * (noisy ? 1 : 4) > least_s;

	m->tasks.took_s = m->tasks.planned_s = 0;
	m->tasks.n = 0;
	m->tasks.strikes = is_off ? m->tasks.strikes + (apart && !noisy ? STRIKES : 1) : 0;
	if (m->tasks.strikes < STRIKES)
		return false;
	m->tasks.strikes = 0;
	note(planning->run, ratio > 1.5 ? NOTE_WARNING : NOTE_EVENT, m->id, 0,
	     "n%02u computes %.1f times as long as planned", m->id, ratio);
	slow_down(planning, m, ratio);
	return true;
}

/* Corrects the compute times of all agents of a machine by the median of their ratios, because
 * without emulation agents that share cores wait for one another. The first two measurements count
 * fully, because the first one is taken with cold connections and caches. Later measurements have
 * the weight that they would have in a mean, because measurements vary. */
static void judge_machine(struct planning *planning, struct member *first,
			  const struct machine_pace *w)
{
	double part = fmax(1.0 / (first->compute.times_paced > 1 ? first->compute.times_paced : 1),
			   pace_part),
	       factor = pow(w->compute_ratio, part);

	if (!w->shared || w->judged < PACE_AGENTS || planning->run->options.cluster.time_scale != 0)
		return;
	first->compute.times_paced++;
	if (fabs(factor - 1) < pace_step)
		return;
	for (uint32_t i = 0; i < planning->members->n; i++)
		if (members_share_machine(first, &planning->members->list[i]) &&
		    planning->members->list[i].compute.alone_forward_s > 0)
			slow_down(planning, &planning->members->list[i],
				  fmax(factor, 1 / planning->members->list[i].compute.pace));
}

/* The start or the end of a task in a simulated plan */
struct turn {
	double at_s;
	int step; /* 1: a task starts; -1: a task ends */
};

static int order_turns(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	return x->at_s != y->at_s ? (x->at_s > y->at_s) - (x->at_s < y->at_s) : x->step - y->step;
}

/* Returns how many times as long tasks take on m's machine because several tasks share a core: the
 * number of simultaneous tasks per core, at least 1, averaged over the time of all tasks. turns:
 * scratch space, two entries for each task. */
static double shared_stretch(const struct members *members, const struct member *m,
			     const struct simulation *s, struct turn *turns)
{
	double took_s = 0, stretched_s = 0;
	int n = 0, running = 0;

	for (int i = 0; i < s->n_tasks; i++)
		if (members_share_machine(m, &members->list[s->tasks[i].node])) {
			turns[n++] = (struct turn){ s->tasks[i].start_s, 1 };
			turns[n++] = (struct turn){ s->tasks[i].end_s, -1 };
		}
	qsort(turns, (size_t)n, sizeof(*turns), order_turns);
	for (int i = 0; i + 1 < n; i++) {
		double s_each = turns[i + 1].at_s - turns[i].at_s;

		running += turns[i].step;
		took_s += running * s_each;
		stretched_s += running * s_each * fmax(1, (double)running / m->hello.cores);
	}
	return took_s > 0 ? stretched_s / took_s : 1;
}

/* Moves the pace of a machine's agents one step towards the slowdown that the simulated plan shows
 * at that pace. A slower pace changes which tasks overlap, so several steps are needed. Returns
 * true if the pace still changed. */
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
	for (uint32_t k = first->id; fabs(factor - 1) > pace_step / 2 && k < planning->members->n;
	     k++)
		if (members_share_machine(first, &planning->members->list[k]) &&
		    planning->members->list[k].compute.alone_forward_s > 0)
			slow_down(planning, &planning->members->list[k], factor);
	simulation_free(s);
	free(turns);
	return fabs(factor - 1) > pace_step / 2;
}

/* Returns true if no node with a smaller id is on m's machine. */
static bool is_first_of_machine(const struct members *members, const struct member *m)
{
	for (uint32_t i = 0; i < m->id; i++)
		if (members_share_machine(m, &members->list[i]))
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

/* Returns the reported microseconds of a task in seconds, limited to what is possible: more than
 * zero, and at most a second longer than the iteration, which began at began_us. */
static double took_s(const struct run *run, int64_t began_us, int64_t us)
{
	int64_t most_us = run->now_us - began_us + 1000000;

	return 1e-6 * (double)(us < 1 ? 1 : us > most_us ? most_us : us);
}

/* Returns the number of nodes that have ended tasks since they were last judged. */
static uint32_t count_judged(const struct members *members)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < members->n; i++)
		n += members->list[i].tasks.n > 0;
	return n;
}

/* Adds the measured and the planned time of an ended task to the node's totals. Both ends of the
 * task are read on the node's own clock: the estimated offset between that clock and the
 * controller's can change while the task runs. */
void drift_task(struct planning *planning, struct member *m, const struct msg_task_event *e,
		int64_t began_us)
{
	int64_t at_us = e->at_us - m->clock.offset_us;
	struct machine_pace w;

	if (e->type == WORK_STARTS)
		m->tasks.started_us = at_us;
	if (e->type != WORK_ENDS || !m->tasks.started_us)
		return;
	m->tasks.took_s += took_s(planning->run, began_us, at_us - m->tasks.started_us);
	m->tasks.planned_s += planning->run->unit_s *
			      cluster_task_s(planning->run->cluster, m->id,
					     member_stage(planning->run, m), e->kind);
	m->tasks.n++;
	m->tasks.started_us = 0;
	/* Only a node that seems far off is compared with all others: this is costly. */
	if (m->tasks.n % SOON_TASKS != 0 || !stands_out(ratio_of(m), 1))
		return;
	w = measure_pace(planning->members, m, 1);
	if ((w.shared && (planning->run->options.cluster.time_scale == 0 || is_overloaded(&w))) ||
	    2 * count_judged(planning->members) < members_live(planning->members))
		return;
	if (stands_out(ratio_of(m), w.compute_ratio) && judge_node(planning, m, &w))
		ask_for_next(planning);
}

/* Judges every node, and every machine whose agents share its cores. Runs once per iteration. */
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
			if (k != i && !members_share_machine(&planning->members->list[i],
							     &planning->members->list[k]))
				continue;
			judged[k] = true;
			if (planning->members->list[k].tasks.n > 0)
				judge_node(planning, &planning->members->list[k], &w);
		}
	}
}

/* Predicts the plan in force again by the corrected times. Returns the ratio of its new time to its
 * former time; < 0: the plan can no longer be carried out. */
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

/* Returns true if small corrections may cause a request for a better plan now. */
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
	/* A large change is worth a new plan at once, smaller ones only now and then. */
	if (is_different(ratio, 1)) {
		replan_if_better(planning, reason, true);
	} else if (may_be_bettered(planning)) {
		planning->drift.bettered_us = planning->run->now_us;
		replan_if_better(planning, reason, false);
	}
}
