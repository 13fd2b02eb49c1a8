/* drift.c - the plan's assumptions against what is measured.
 *
 * Agents tell how long their links take; task events tell how long their compute takes. Where that
 * is off by more than a quarter, and stays so, the cluster planned against is corrected; at once
 * where one node takes twice as long as the plan and as the others, and for all links of a node where
 * most of those that are used agree. The plan in
 * force is then predicted anew, and another one is adopted only when it gains more than a few
 * percent: noise does not make plans flap.
 */
#include "controller/planning/drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "controller/iteration/iteration.h"
#include "controller/history/record.h"
#include "controller/iteration/predict.h"
#include "controller/members/admission.h"
#include "controller/members/member.h"
#include "controller/network/observed_links.h"
#include "controller/operator/journal.h"
#include "controller/planning/replan.h"

static const double off = 1.25;   /* a quarter: beyond it, or below its inverse */
static const double far_off = 2;  /* of one node alone: no noise */
static const double least_s = 0.02; /* real seconds: what is quicker is noise */
/* Of a transfer's time in what is believed of its link: as usual, and where it is news; of their deviation; of what is
 * told of a link by which nothing travels, each time. */
static const double way_share = 0.15, news_share = 0.4, deviation_share = 0.25, fading_share = 0.05;
static const double pace_part = 0.25; /* of a machine's pace in what is believed of it, at least */
static const double pace_step = 0.05; /* a machine's pace that changes by less stays as it is */
static const double told_again = 1.05; /* likewise what a plan is expected to take */
enum {
	STRIKES = 2,
	TASKS = 3,
	SOON_TASKS = 2,
	LINKS = 2,
	MANY_LINKS = 4,
	CROWD = 3,
	PACE_STEPS = 12,
	ASKED_MOST = 3, /* plans in one iteration: drift_turn asks for the rest after it */
	CORRECTIONS = 32, /* at once, beside two of every link */
	BETTER_EVERY_US = 15000000 /* a better plan is asked for no more often for small changes */
};

static bool is_different(double measured, double believed)
{
	return measured > believed * off || measured < believed / off;
}

static double ratio_of(const struct member *m)
{
	return m->tasks.planned_s > 0 ? m->tasks.took_s / m->tasks.planned_s : 1;
}

/* The agents of one machine. */
struct crowd {
	uint32_t agents;  /* at work */
	uint32_t judged;  /* of them, ended so many tasks since they were last judged */
	double usual;     /* the median of these one's ratios; of few: 1 */
	double ways;      /* likewise of their links; 1 */
	bool shared;      /* they are more than the machine has cores */
};

static struct crowd crowd_of(const struct members *members, const struct member *m, uint32_t tasks)
{
	double ratios[MSG_NODES], ways[MSG_NODES];
	struct crowd w = { .usual = 1, .ways = 1 };
	size_t n_ways = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *other = &members->list[i];

		if ((other->state != NODE_LIVE && other->state != NODE_SUSPECT) ||
		    (m->hello.machine[0] && !members_share_machine(m, other)))
			continue; /* of whom nothing is known all count as one machine's */
		w.agents++;
		if (other->tasks.n >= tasks)
			ratios[w.judged++] = ratio_of(other);
		if (other->links.delay_ratio > 0)
			ways[n_ways++] = other->links.delay_ratio;
	}
	if (w.judged >= CROWD || !m->hello.machine[0])
		w.usual = array_median(ratios, w.judged);
	if (n_ways)
		w.ways = array_median(ways, n_ways);
	w.shared = m->hello.cores > 0 && w.agents > m->hello.cores;
	return w;
}

/* Of fewer agents nobody can say that all of a machine are late. */
static bool is_overloaded(const struct crowd *w)
{
	return w->shared && w->agents >= CROWD && ((w->judged >= CROWD && w->usual > off) || w->ways > off);
}

/* Whether all agents of m's machine are late together: no news of one of them, nor of the network. */
static bool machine_is_overloaded(const struct members *members, const struct member *m)
{
	struct crowd w = crowd_of(members, m, 1);

	return is_overloaded(&w);
}

static bool stands_out(double ratio, double usual)
{
	return (ratio > far_off && ratio > usual * far_off) ||
	       (ratio < 1 / far_off && ratio < usual / far_off);
}

static double *delay_of(const struct cluster *of, uint16_t from, uint16_t to)
{
	return &of->delay_s[from * of->n_nodes + to];
}

/* Whether to believe something else of so many links of m: who contradicts itself without end is not listened to. */
static bool may_correct(struct members *members, struct member *m, uint32_t links)
{
	const double n = members->n;

	if (rate_limit_take(&m->quota.corrections, links, 2 * n + CORRECTIONS, (n + 3) / 60,
			    members->run->now_us))
		return true;
	admission_ignored(members->run, m, "tells other things of its links again and again");
	return false;
}

static void believe_way(struct planning *planning, uint16_t from, uint16_t to, double s)
{
	*delay_of(planning->run->cluster, from, to) = s;
	if (planning->members->links && planning->run->cluster->sync_pair_s)
		planning->run->cluster->sync_pair_s[from * planning->run->cluster->n_nodes + to] =
			link_table_sync_pair_s(planning->members->links, from, to);
	record_link(planning->run, from, to);
	planning->drift.corrected = true;
}

/* An activation travelled. Where packets are lost some take several times as long as others: what is within three
 * deviations of the mean counts for little, what is not for much, as the link may have changed. */
static void take_way(struct link_seen *seen, double way_s, double latency_s)
{
	double stray_s = way_s - seen->way_s;

	if (seen->way_s > 0) {
		seen->way_s += stray_s * (fabs(stray_s) > 3 * seen->way_deviation_s ? news_share : way_share);
		seen->way_deviation_s += (fabs(stray_s) - seen->way_deviation_s) * deviation_share;
	} else {
		seen->way_s = way_s;
		seen->way_deviation_s = way_s / 4;
	}
	seen->way_latency_s = latency_s;
}

/* None did: what the last took fades, and is forgotten where the link has become another. */
static void fade_way(struct link_seen *seen, double told_s, double latency_s)
{
	if (is_different(latency_s, seen->way_latency_s) && fabs(latency_s - seen->way_latency_s) > least_s)
		seen->way_s = 0;
	else
		seen->way_s += (told_s - seen->way_s) * fading_share;
}

/* What an activation takes on a measured link: as those that travelled took, or by its latency and bandwidth.
 * A tensor that took longer than these say met a narrower link: sums will, too. */
static double measured_way_s(const struct members *members, const struct msg_link *l)
{
	struct link_seen *seen = link_table_at(members->links, l->from, l->to);
	double told_s = link_table_transfer_s(members->links, l->from, l->to,
					      members->links->activation_bytes),
	       bytes_s;

	if (!(l->measured_delay_s > 0)) {
		if (seen->way_s > 0)
			fade_way(seen, told_s, (double)l->latency_s);
		return seen->way_s > 0 ? seen->way_s : told_s;
	}
	take_way(seen, (double)l->measured_delay_s, (double)l->latency_s);
	bytes_s = seen->way_s - (double)l->latency_s;
	if (bytes_s > least_s && members->links->activation_bytes / bytes_s < seen->bandwidth)
		seen->bandwidth = members->links->activation_bytes / bytes_s;
	return seen->way_s;
}

void drift_link(struct planning *planning, struct observed_link *s)
{
	const struct msg_link *l = &s->link;
	double believed = *delay_of(planning->run->cluster, l->from, l->to);
	double measured = planning->members->links ? measured_way_s(planning->members, l)
						   : (double)l->measured_delay_s;

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
	if (!may_correct(planning->members, &planning->members->list[l->from], 1))
		return;
	note(planning->run, NOTE_LOG, l->from, 0,
	     "link n%02u>n%02u takes %.2f s, the plan said %.2f s", l->from, l->to, measured,
	     believed);
	believe_way(planning, l->from, l->to, measured);
}

/* How many times as long as planned what the node has just measured takes, if that is the same for
 * nearly all of it; 0: it is not. *n: so many links. */
static double common_ratio(const struct members *members, const struct member *m,
			   const struct msg_links *l, size_t *n)
{
	double ratios[MSG_NODES], middle;
	size_t alike = 0;

	*n = 0;
	for (uint32_t i = 0; i < l->n_links && *n < MSG_NODES; i++) {
		uint16_t to = l->links[i].to;
		double measured = (double)l->links[i].measured_delay_s;

		if (to >= members->n || to == m->id || !(measured > 0) ||
		    *delay_of(members->run->cluster_as_given, m->id, to) * members->run->unit_s <
			    least_s / 2)
			continue;
		ratios[(*n)++] = measured / *delay_of(members->run->cluster_as_given, m->id, to);
	}
	if (*n < LINKS)
		return 0;
	middle = array_median(ratios, *n);
	for (size_t i = 0; i < *n; i++)
		alike += !is_different(ratios[i], middle);
	return alike * 4 >= *n * 3 ? middle : 0;
}

/* Asks for a plan by the corrected times, so that it is ready when the next iteration starts. */
static void ask_for_next(struct planning *planning)
{
	struct drift *d = &planning->drift;

	d->asked = d->asked_in == planning->run->iteration ? d->asked : 0;
	d->asked_in = planning->run->iteration;
	if (planning->run->phase != PHASE_COMPUTING || d->asked >= ASKED_MOST)
		return;
	d->asked++;
	d->corrected = false;
	replan(planning, "links or compute have changed");
}

/* What slows one link of a node often slows them all. Those that the plan avoids are not measured: they
 * follow the others, there and back. */
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
	    (ratio != 1 && ratio < was * far_off && ratio > was / far_off)) {
		m->links.strikes = 0;
		return;
	}
	if (++m->links.strikes < STRIKES && n < MANY_LINKS)
		return;
	m->links.strikes = 0;
	if (!may_correct(planning->members, m, planning->members->n - 1))
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
			believe_way(planning, m->id, to,
				    *delay_of(planning->run->cluster_as_given, m->id, to) * ratio);
	ask_for_next(planning);
}

static double planned_s(const struct cluster_node *n, uint8_t kind)
{
	switch (kind) {
	case TASK_FORWARD:
		return n->forward_s;
	case TASK_LOSS:
		return n->loss_s;
	default:
		return n->backward_s;
	}
}

static void slow_down(struct planning *planning, struct member *m, double ratio)
{
	struct cluster_node *n = &planning->run->cluster->nodes[m->id];

	m->compute.pace *= ratio;
	n->forward_s *= ratio;
	n->backward_s *= ratio;
	n->loss_s *= ratio;
	record_compute(planning->run, m->id);
	m->shown.is_stale = true;
	planning->drift.corrected = true;
}

/* Whether it is believed to compute otherwise than before. Where agents take turns on a machine's cores, short
 * tasks wait for long: there only who stands out among them is judged, by what it takes more than they. */
static bool judge_node(struct planning *planning, struct member *m, const struct crowd *w)
{
	double usual = w->shared ? w->usual : 1, ratio = ratio_of(m) / usual;
	bool noisy = w->shared && planning->run->options.cluster.time_scale == 0,
	     apart = stands_out(ratio_of(m), w->usual);
	bool is_off =
		(m->tasks.n >= TASKS || apart) && is_different(ratio, 1) &&
		(apart || !is_overloaded(w)) &&
		fabs(m->tasks.took_s - m->tasks.planned_s * usual) / m->tasks.n * (noisy ? 1 : 4) >
			least_s;

	m->tasks.took_s = m->tasks.planned_s = 0;
	m->tasks.n = 0;
	m->tasks.strikes = is_off ? m->tasks.strikes + (apart && !noisy ? STRIKES : 1) : 0;
	if (m->tasks.strikes < STRIKES)
		return false;
	m->tasks.strikes = 0;
	note(planning->run, ratio > 1.5 ? NOTE_WARNING : NOTE_EVENT, m->id, 0,
	     "n%02u computes %.1f times as long as the plan said", m->id, ratio);
	slow_down(planning, m, ratio);
	return true;
}

/* Without emulation agents that share cores wait for one another: all are as slow as half of them show to be. What is
 * measured varies: the first two are believed, as connections and caches are cold in the first iteration, and later ones count for a
 * part, as in a mean. */
static void judge_machine(struct planning *planning, struct member *first, const struct crowd *w)
{
	double part = fmax(1.0 / (first->compute.times_paced > 1 ? first->compute.times_paced : 1),
			   pace_part),
	       factor = pow(w->usual, part);

	if (!w->shared || w->judged < CROWD || planning->run->options.cluster.time_scale != 0)
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

struct turn {
	double at_s;
	int step; /* a task starts: 1; ends: -1 */
};

static int order_turns(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	return x->at_s != y->at_s ? (x->at_s > y->at_s) - (x->at_s < y->at_s) : x->step - y->step;
}

/* How many times as long tasks take on a machine that has fewer cores than tasks at a time: the mean over the time
 * that they take of how many there are for each core, at least 1. turns: (n), room for 2 for each task. */
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

/* One step towards the pace at which the plan's tasks come to take so long by taking turns. Whether it was one. */
static bool guess_machine(struct planning *planning, struct member *first, const struct plan *p)
{
	struct simulation *s = NULL;
	struct turn *turns = NULL;
	struct error err;
	double factor = 1;

	if (simulate(planning->run->cluster, p, &s, &err) == 0)
		turns = malloc(2 * (size_t)s->n_tasks * sizeof(*turns));
	if (turns)
		factor = sqrt(shared_stretch(planning->members, first, s, turns) /
			      first->compute.pace);
	for (uint32_t k = first->id; fabs(factor - 1) > pace_step / 2 && k < planning->members->n;
	     k++)
		if (members_share_machine(first, &planning->members->list[k]) &&
		    planning->members->list[k].compute.alone_forward_s > 0)
			slow_down(planning, &planning->members->list[k], factor);
	simulation_free(s);
	free(turns);
	return fabs(factor - 1) > pace_step / 2;
}

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
		    !crowd_of(planning->members, m, 1).shared || m->compute.pace != 1)
			continue;
		for (int steps = 0; steps < PACE_STEPS && guess_machine(planning, m, p); steps++)
			;
	}
}

/* Whatever the node says, no task takes less than no time, or much longer than the iteration until now. */
static double took_s(const struct iteration *it, int64_t us)
{
	int64_t most_us = it->run->now_us - it->progress.started_us + 1000000;

	return 1e-6 * (double)(us < 1 ? 1 : us > most_us ? most_us : us);
}

static uint32_t all_judged(const struct members *members)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < members->n; i++)
		n += members->list[i].tasks.n > 0;
	return n;
}

/* A task that ended: what its node needed for it, and what was believed. By its own clock: how far that is
 * from ours is learned again and again, also between a task's start and its end. */
void drift_task(struct iteration *it, struct member *m, const struct msg_task_event *e)
{
	const struct cluster_node *n = &it->run->cluster->nodes[m->id];
	int64_t at_us = e->at_us - m->clock.offset_us;
	struct crowd w;

	if (e->type == WORK_STARTS)
		m->tasks.started_us = at_us;
	if (e->type != WORK_ENDS || !m->tasks.started_us)
		return;
	m->tasks.took_s += took_s(it, at_us - m->tasks.started_us);
	m->tasks.planned_s += it->run->unit_s * planned_s(n, e->kind);
	m->tasks.n++;
	m->tasks.started_us = 0;
	/* Looking at all others is for the few that seem to stand out, and not for each of their tasks. */
	if (m->tasks.n % SOON_TASKS != 0 || !stands_out(ratio_of(m), 1))
		return;
	w = crowd_of(it->members, m, 1);
	if ((w.shared && (it->run->options.cluster.time_scale == 0 || is_overloaded(&w))) ||
	    2 * all_judged(it->members) < members_live(it->members))
		return;
	if (stands_out(ratio_of(m), w.usual) && judge_node(it->planning, m, &w))
		ask_for_next(it->planning);
}

/* Every node, and every machine whose agents share its cores, once an iteration. */
static void judge_all(struct planning *planning)
{
	bool judged[MSG_NODES] = { false };

	for (uint32_t i = 0; i < planning->members->n; i++) {
		struct crowd w;

		if (judged[i])
			continue;
		w = crowd_of(planning->members, &planning->members->list[i], TASKS);
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

/* The plan in force is predicted anew. How much longer it takes now; < 0: it cannot be done any more. */
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

/* Another plan is looked for where what was measured makes much of a difference, and now and then where it makes
 * some. */
void drift_turn(struct planning *planning)
{
	double was, ratio;

	judge_all(planning);
	if (!planning->drift.corrected || !planning->run->plan || planning->wanted_id)
		return;
	planning->drift.corrected = false;
	was = planning->run->plan->plan->predicted.iteration_s;
	ratio = predict_again(planning->members);
	if (ratio < 0) {
		replan(planning, "the links have changed");
		return;
	}
	if (ratio > told_again || ratio < 1 / told_again)
		note(planning->run, NOTE_PREDICTION, -1, 0,
		     "the plan in force: %.3g s expected, now %.3g s", was, was * ratio);
	if (is_different(ratio, 1)) {
		replan(planning, "links or compute have changed");
	} else if (planning->run->now_us - planning->drift.bettered_us > BETTER_EVERY_US) {
		planning->drift.bettered_us = planning->run->now_us;
		replan_if_better(planning, "links or compute have changed");
	}
}
