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
#include "controller/controller.h"
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
	return m->task_planned_s > 0 ? m->task_took_s / m->task_planned_s : 1;
}

/* The agents of one machine. */
struct crowd {
	uint32_t agents;  /* at work */
	uint32_t judged;  /* of them, ended so many tasks since they were last judged */
	double usual;     /* the median of these one's ratios; of few: 1 */
	double ways;      /* likewise of their links; 1 */
	bool shared;      /* they are more than the machine has cores */
};

static struct crowd crowd_of(const struct controller *c, const struct member *m, uint32_t tasks)
{
	double ratios[MSG_NODES], ways[MSG_NODES];
	struct crowd w = { .usual = 1, .ways = 1 };
	size_t n_ways = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *other = &c->members[i];

		if ((other->state != NODE_LIVE && other->state != NODE_SUSPECT) ||
		    (m->hello.machine[0] && !members_share_machine(m, other)))
			continue; /* of whom nothing is known all count as one machine's */
		w.agents++;
		if (other->n_tasks >= tasks)
			ratios[w.judged++] = ratio_of(other);
		if (other->way_ratio > 0)
			ways[n_ways++] = other->way_ratio;
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
static bool machine_is_overloaded(const struct controller *c, const struct member *m)
{
	struct crowd w = crowd_of(c, m, 1);

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
static bool may_correct(struct controller *c, struct member *m, uint32_t links)
{
	const double n = c->n_members;

	if (rate_limit_take(&m->corrections, links, 2 * n + CORRECTIONS, (n + 3) / 60, c->now_us))
		return true;
	admission_ignored(c, m, "tells other things of its links again and again");
	return false;
}

static void believe_way(struct controller *c, uint16_t from, uint16_t to, double s)
{
	*delay_of(c->cluster, from, to) = s;
	if (c->links && c->cluster->sync_pair_s)
		c->cluster->sync_pair_s[from * c->cluster->n_nodes + to] = link_table_sync_pair_s(c->links, from, to);
	record_link(c, from, to);
	c->drift.corrected = true;
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
static double measured_way_s(const struct controller *c, const struct msg_link *l)
{
	struct link_seen *seen = link_table_at(c->links, l->from, l->to);
	double told_s = link_table_transfer_s(c->links, l->from, l->to, c->links->activation_bytes), bytes_s;

	if (!(l->measured_delay_s > 0)) {
		if (seen->way_s > 0)
			fade_way(seen, told_s, (double)l->latency_s);
		return seen->way_s > 0 ? seen->way_s : told_s;
	}
	take_way(seen, (double)l->measured_delay_s, (double)l->latency_s);
	bytes_s = seen->way_s - (double)l->latency_s;
	if (bytes_s > least_s && c->links->activation_bytes / bytes_s < seen->bandwidth)
		seen->bandwidth = c->links->activation_bytes / bytes_s;
	return seen->way_s;
}

void drift_link(struct controller *c, struct observed_link *s)
{
	const struct msg_link *l = &s->link;
	double believed = *delay_of(c->cluster, l->from, l->to);
	double measured = c->links ? measured_way_s(c, l) : (double)l->measured_delay_s;

	if (l->from == l->to || !(measured > 0))
		return;
	if (believed < 0 || !is_different(measured, believed) ||
	    fabs(measured - believed) * c->unit_s < least_s) {
		s->strikes = 0;
		return;
	}
	if (++s->strikes < STRIKES)
		return;
	s->strikes = 0;
	if (!may_correct(c, &c->members[l->from], 1))
		return;
	note(c, NOTE_LOG, l->from, 0, "link n%02u>n%02u takes %.2f s, the plan said %.2f s", l->from,
	     l->to, measured, believed);
	believe_way(c, l->from, l->to, measured);
}

/* How many times as long as planned what the node has just measured takes, if that is the same for
 * nearly all of it; 0: it is not. *n: so many links. */
static double common_ratio(const struct controller *c, const struct member *m,
			   const struct msg_links *l, size_t *n)
{
	double ratios[MSG_NODES], middle;
	size_t alike = 0;

	*n = 0;
	for (uint32_t i = 0; i < l->n_links && *n < MSG_NODES; i++) {
		uint16_t to = l->links[i].to;
		double measured = (double)l->links[i].measured_delay_s;

		if (to >= c->n_members || to == m->id || !(measured > 0) ||
		    *delay_of(c->planned, m->id, to) * c->unit_s < least_s / 2)
			continue;
		ratios[(*n)++] = measured / *delay_of(c->planned, m->id, to);
	}
	if (*n < LINKS)
		return 0;
	middle = array_median(ratios, *n);
	for (size_t i = 0; i < *n; i++)
		alike += !is_different(ratios[i], middle);
	return alike * 4 >= *n * 3 ? middle : 0;
}

/* Asks for a plan by the corrected times, so that it is ready when the next iteration starts. */
static void ask_for_next(struct controller *c)
{
	struct drift *d = &c->drift;

	d->asked = d->asked_in == c->iteration ? d->asked : 0;
	d->asked_in = c->iteration;
	if (c->phase != PHASE_COMPUTING || d->asked >= ASKED_MOST)
		return;
	d->asked++;
	d->corrected = false;
	replan(c, "links or compute have changed");
}

/* What slows one link of a node often slows them all. Those that the plan avoids are not measured: they
 * follow the others, there and back. */
void drift_links(struct controller *c, struct member *m, const struct msg_links *l)
{
	size_t n;
	double ratio = common_ratio(c, m, l, &n), was = m->links_ratio;

	if (ratio > 0)
		m->way_ratio = ratio / was;
	if (machine_is_overloaded(c, m))
		return;
	if (ratio > 0 && !is_different(ratio, 1))
		ratio = 1;
	if (ratio <= 0 || ratio == was ||
	    (ratio != 1 && ratio < was * far_off && ratio > was / far_off)) {
		m->link_strikes = 0;
		return;
	}
	if (++m->link_strikes < STRIKES && n < MANY_LINKS)
		return;
	m->link_strikes = 0;
	if (!may_correct(c, m, c->n_members - 1))
		return;
	m->links_ratio = ratio;
	if (ratio == 1)
		note(c, NOTE_EVENT, m->id, 0, "n%02u's links take as long as planned again", m->id);
	else
		note(c, NOTE_WARNING, m->id, 0, "n%02u's links take %.1f times as long as planned",
		     m->id, ratio);
	for (uint16_t to = 0; to < c->n_members; to++)
		if (to != m->id && *delay_of(c->planned, m->id, to) >= 0)
			believe_way(c, m->id, to, *delay_of(c->planned, m->id, to) * ratio);
	ask_for_next(c);
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

static void slow_down(struct controller *c, struct member *m, double ratio)
{
	struct cluster_node *n = &c->cluster->nodes[m->id];

	m->pace *= ratio;
	n->forward_s *= ratio;
	n->backward_s *= ratio;
	n->loss_s *= ratio;
	record_compute(c, m->id);
	m->changed = true;
	c->drift.corrected = true;
}

/* Whether it is believed to compute otherwise than before. Where agents take turns on a machine's cores, short
 * tasks wait for long: there only who stands out among them is judged, by what it takes more than they. */
static bool judge_node(struct controller *c, struct member *m, const struct crowd *w)
{
	double usual = w->shared ? w->usual : 1, ratio = ratio_of(m) / usual;
	bool noisy = w->shared && c->options.time_scale == 0, apart = stands_out(ratio_of(m), w->usual);
	bool is_off = (m->n_tasks >= TASKS || apart) && is_different(ratio, 1) && (apart || !is_overloaded(w)) &&
		      fabs(m->task_took_s - m->task_planned_s * usual) / m->n_tasks * (noisy ? 1 : 4) > least_s;

	m->task_took_s = m->task_planned_s = 0;
	m->n_tasks = 0;
	m->strikes = is_off ? m->strikes + (apart && !noisy ? STRIKES : 1) : 0;
	if (m->strikes < STRIKES)
		return false;
	m->strikes = 0;
	note(c, ratio > 1.5 ? NOTE_WARNING : NOTE_EVENT, m->id, 0,
	     "n%02u computes %.1f times as long as the plan said", m->id, ratio);
	slow_down(c, m, ratio);
	return true;
}

/* Without emulation agents that share cores wait for one another: all are as slow as half of them show to be. What is
 * measured varies: the first two are believed, as connections and caches are cold in the first iteration, and later ones count for a
 * part, as in a mean. */
static void judge_machine(struct controller *c, struct member *first, const struct crowd *w)
{
	double part = fmax(1.0 / (first->times_paced > 1 ? first->times_paced : 1), pace_part), factor = pow(w->usual, part);

	if (!w->shared || w->judged < CROWD || c->options.time_scale != 0)
		return;
	first->times_paced++;
	if (fabs(factor - 1) < pace_step)
		return;
	for (uint32_t i = 0; i < c->n_members; i++)
		if (members_share_machine(first, &c->members[i]) && c->members[i].alone_forward_s > 0)
			slow_down(c, &c->members[i], fmax(factor, 1 / c->members[i].pace));
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
static double shared_stretch(const struct controller *c, const struct member *m, const struct simulation *s,
			     struct turn *turns)
{
	double took_s = 0, stretched_s = 0;
	int n = 0, running = 0;

	for (int i = 0; i < s->n_tasks; i++)
		if (members_share_machine(m, &c->members[s->tasks[i].node])) {
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
static bool guess_machine(struct controller *c, struct member *first, const struct plan *p)
{
	struct simulation *s = NULL;
	struct turn *turns = NULL;
	struct error err;
	double factor = 1;

	if (simulate(c->cluster, p, &s, &err) == 0)
		turns = malloc(2 * (size_t)s->n_tasks * sizeof(*turns));
	if (turns)
		factor = sqrt(shared_stretch(c, first, s, turns) / first->pace);
	for (uint32_t k = first->id; fabs(factor - 1) > pace_step / 2 && k < c->n_members; k++)
		if (members_share_machine(first, &c->members[k]) && c->members[k].alone_forward_s > 0)
			slow_down(c, &c->members[k], factor);
	simulation_free(s);
	free(turns);
	return fabs(factor - 1) > pace_step / 2;
}

static bool is_first_of_machine(const struct controller *c, const struct member *m)
{
	for (uint32_t i = 0; i < m->id; i++)
		if (members_share_machine(m, &c->members[i]))
			return false;
	return true;
}

void drift_guess_pace(struct controller *c, const struct plan *p)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!is_first_of_machine(c, m) || !crowd_of(c, m, 1).shared || m->pace != 1)
			continue;
		for (int steps = 0; steps < PACE_STEPS && guess_machine(c, m, p); steps++)
			;
	}
}

/* Whatever the node says, no task takes less than no time, or much longer than the iteration until now. */
static double took_s(const struct controller *c, int64_t us)
{
	int64_t most_us = c->now_us - c->progress.started_us + 1000000;

	return 1e-6 * (double)(us < 1 ? 1 : us > most_us ? most_us : us);
}

static uint32_t all_judged(const struct controller *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++)
		n += c->members[i].n_tasks > 0;
	return n;
}

/* A task that ended: what its node needed for it, and what was believed. By its own clock: how far that is
 * from ours is learned again and again, also between a task's start and its end. */
void drift_task(struct controller *c, struct member *m, const struct msg_task_event *e)
{
	const struct cluster_node *n = &c->cluster->nodes[m->id];
	int64_t at_us = e->at_us - m->clock_offset_us;
	struct crowd w;

	if (e->type == WORK_STARTS)
		m->task_started_us = at_us;
	if (e->type != WORK_ENDS || !m->task_started_us)
		return;
	m->task_took_s += took_s(c, at_us - m->task_started_us);
	m->task_planned_s += c->unit_s * planned_s(n, e->kind);
	m->n_tasks++;
	m->task_started_us = 0;
	/* Looking at all others is for the few that seem to stand out, and not for each of their tasks. */
	if (m->n_tasks % SOON_TASKS != 0 || !stands_out(ratio_of(m), 1))
		return;
	w = crowd_of(c, m, 1);
	if ((w.shared && (c->options.time_scale == 0 || is_overloaded(&w))) || 2 * all_judged(c) < members_live(c))
		return;
	if (stands_out(ratio_of(m), w.usual) && judge_node(c, m, &w))
		ask_for_next(c);
}

/* Every node, and every machine whose agents share its cores, once an iteration. */
static void judge_all(struct controller *c)
{
	bool judged[MSG_NODES] = { false };

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct crowd w;

		if (judged[i])
			continue;
		w = crowd_of(c, &c->members[i], TASKS);
		judge_machine(c, &c->members[i], &w);
		for (uint32_t k = i; k < c->n_members; k++) {
			if (k != i && !members_share_machine(&c->members[i], &c->members[k]))
				continue;
			judged[k] = true;
			if (c->members[k].n_tasks > 0)
				judge_node(c, &c->members[k], &w);
		}
	}
}

/* The plan in force is predicted anew. How much longer it takes now; < 0: it cannot be done any more. */
static double predict_again(struct controller *c)
{
	struct plan_predicted *p = &c->current->plan->predicted;
	double was = p->iteration_s;
	struct simulation *s;
	struct error err;

	if (simulate(c->cluster, c->current->plan, &s, &err) != 0)
		return -1;
	p->iteration_s = s->iteration_s;
	p->total_s = s->total_s;
	simulation_free(c->current->trace);
	c->current->trace = s;
	predict(c, c->current);
	return p->iteration_s / was;
}

/* Another plan is looked for where what was measured makes much of a difference, and now and then where it makes
 * some. */
void drift_turn(struct controller *c)
{
	double was, ratio;

	judge_all(c);
	if (!c->drift.corrected || !c->current || c->plan_wanted)
		return;
	c->drift.corrected = false;
	was = c->current->plan->predicted.iteration_s;
	ratio = predict_again(c);
	if (ratio < 0) {
		replan(c, "the links have changed");
		return;
	}
	if (ratio > told_again || ratio < 1 / told_again)
		note(c, NOTE_PREDICTION, -1, 0, "the plan in force: %.3g s expected, now %.3g s", was, was * ratio);
	if (is_different(ratio, 1)) {
		replan(c, "links or compute have changed");
	} else if (c->now_us - c->drift.bettered_us > BETTER_EVERY_US) {
		c->drift.bettered_us = c->now_us;
		replan_if_better(c, "links or compute have changed");
	}
}
