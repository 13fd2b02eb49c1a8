/* drift.c - the plan's assumptions against what is measured.
 *
 * Agents tell how long their links take; task events tell how long their compute takes. Where that
 * is off by more than a quarter, and stays so, the cluster planned against is corrected; at once
 * where one node takes twice as long as the plan and as the others, and for all links of a node where
 * most of those that are used agree. The plan in
 * force is then predicted anew, and another one is adopted only when it gains more than a few
 * percent: noise does not make plans flap.
 */
#include "controller/controller.h"
#include "controller/list.h"

#include <math.h>
#include <string.h>

static const double off = 1.25;   /* a quarter: beyond it, or below its inverse */
static const double far_off = 2;  /* of one node alone: no noise */
static const double least_s = 0.02; /* real seconds: what is quicker is noise */
enum { STRIKES = 2, TASKS = 3, SOON_TASKS = 2, LINKS = 2, MANY_LINKS = 4 };

static bool differs(double measured, double believed)
{
	return measured > believed * off || measured < believed / off;
}

static double ratio_of(const struct member *m)
{
	return m->task_planned_s > 0 ? m->task_took_s / m->task_planned_s : 1;
}

/* What the machine they may share does to all of them; of those that ended so many tasks: *n. */
static double usual_ratio(const struct controller *c, uint32_t tasks, size_t *n)
{
	double ratios[MSG_NODES];

	*n = 0;
	for (uint32_t i = 0; i < c->n_members; i++)
		if (c->members[i].n_tasks >= tasks)
			ratios[(*n)++] = ratio_of(&c->members[i]);
	return *n ? list_median(ratios, *n) : 1;
}

static bool stands_out(double ratio, double usual)
{
	return (ratio > far_off && ratio > usual * far_off) ||
	       (ratio < 1 / far_off && ratio < usual / far_off);
}

static double *delay(const struct cluster *of, uint16_t from, uint16_t to)
{
	return &of->delay_s[from * of->n_nodes + to];
}

static void believe(struct controller *c, uint16_t from, uint16_t to, double s)
{
	*delay(c->cluster, from, to) = s;
	record_link(c, from, to);
	c->drifted = true;
}

void drift_link(struct controller *c, struct seen_link *s)
{
	const struct msg_link *l = &s->link;
	double believed = *delay(c->cluster, l->from, l->to), measured = (double)l->measured_delay_s;

	if (l->from == l->to || !(measured > 0))
		return;
	if (believed < 0 || !differs(measured, believed) ||
	    fabs(measured - believed) * c->unit_s < least_s) {
		s->strikes = 0;
		return;
	}
	if (++s->strikes < STRIKES)
		return;
	s->strikes = 0;
	note(c, NOTE_LOG, l->from, 0, "link n%02u>n%02u takes %.2f s, the plan said %.2f s", l->from,
	     l->to, measured, believed);
	believe(c, l->from, l->to, measured);
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
		    *delay(c->planned, m->id, to) * c->unit_s < least_s / 2)
			continue;
		ratios[(*n)++] = measured / *delay(c->planned, m->id, to);
	}
	if (*n < LINKS)
		return 0;
	middle = list_median(ratios, *n);
	for (size_t i = 0; i < *n; i++)
		alike += !differs(ratios[i], middle);
	return alike * 4 >= *n * 3 ? middle : 0;
}

/* What slows one link of a node often slows them all. Those that the plan avoids are not measured: they
 * follow the others, there and back. */
void drift_links(struct controller *c, struct member *m, const struct msg_links *l)
{
	size_t n;
	double ratio = common_ratio(c, m, l, &n), was = m->links_ratio;

	if (ratio > 0 && !differs(ratio, 1))
		ratio = 1;
	if (ratio <= 0 || ratio == was ||
	    (ratio != 1 && ratio < was * far_off && ratio > was / far_off)) {
		m->link_strikes = 0;
		return;
	}
	if (++m->link_strikes < STRIKES && n < MANY_LINKS)
		return;
	m->link_strikes = 0;
	m->links_ratio = ratio;
	if (ratio == 1)
		note(c, NOTE_EVENT, m->id, 0, "n%02u's links take as long as planned again", m->id);
	else
		note(c, NOTE_WARNING, m->id, 0, "n%02u's links take %.1f times as long as planned",
		     m->id, ratio);
	for (uint16_t to = 0; to < c->n_members; to++)
		if (to != m->id && *delay(c->planned, m->id, to) >= 0)
			believe(c, m->id, to, *delay(c->planned, m->id, to) * ratio);
	reroute_drifted(c);
}

static double planned_s(const struct controller *c, const struct cluster_node *n, uint8_t kind)
{
	switch (kind) {
	case WORK_FORWARD:
		return n->forward_s;
	case WORK_LOSS:
		return n->loss_s;
	case WORK_WEIGHTS:
		return cluster_weights_s(n);
	default:
		return c->current->plan->split_backward ? cluster_inputs_s(n) : n->backward_s;
	}
}

/* Whether it is believed to compute otherwise than before. */
static bool judge_node(struct controller *c, struct member *m, double usual)
{
	struct cluster_node *n = &c->cluster->nodes[m->id];
	double ratio = ratio_of(m);
	bool is_off = (m->n_tasks >= TASKS || stands_out(ratio, usual)) && differs(ratio, 1) &&
		      fabs(m->task_took_s - m->task_planned_s) / m->n_tasks * 4 > least_s;

	m->task_took_s = m->task_planned_s = 0;
	m->n_tasks = 0;
	m->strikes = is_off ? m->strikes + (stands_out(ratio, usual) ? STRIKES : 1) : 0;
	if (m->strikes < STRIKES)
		return false;
	m->strikes = 0;
	note(c, ratio > 1.5 ? NOTE_WARNING : NOTE_EVENT, m->id, 0,
	     "n%02u computes %.1f times as long as the plan said", m->id, ratio);
	n->forward_s *= ratio;
	n->backward_s *= ratio;
	n->weight_gradient_s *= ratio;
	n->loss_s *= ratio;
	record_compute(c, m->id);
	m->changed = true;
	c->drifted = true;
	return true;
}

/* Agents side by side without emulation take turns on the cores: that is no drift. */
static bool judges(const struct controller *c)
{
	return !(c->options.embedded && c->options.time_scale == 0);
}

/* Whatever the node says, no task takes less than no time, or much longer than the iteration until now. */
static double took_s(const struct controller *c, int64_t us)
{
	int64_t most_us = c->now_us - c->progress.started_us + 1000000;

	return 1e-6 * (double)(us < 1 ? 1 : us > most_us ? most_us : us);
}

/* A task that ended: what its node needed for it, and what was believed. By its own clock: how far that is
 * from ours is learned again and again, also between a task's start and its end. */
void drift_task(struct controller *c, struct member *m, const struct msg_task_event *e)
{
	const struct cluster_node *n = &c->cluster->nodes[m->id];
	int64_t at_us = e->at_us - m->clock_offset_us;
	size_t n_others;
	double usual;

	if (e->type == WORK_STARTS)
		m->task_started_us = at_us;
	if (e->type != WORK_ENDS || !m->task_started_us)
		return;
	m->task_took_s += took_s(c, at_us - m->task_started_us);
	m->task_planned_s += c->unit_s * planned_s(c, n, e->kind);
	m->n_tasks++;
	m->task_started_us = 0;
	/* Looking at all others is for the few that seem to stand out, and not for each of their tasks. */
	if (m->n_tasks % SOON_TASKS != 0 || !judges(c) || !stands_out(ratio_of(m), 1))
		return;
	usual = usual_ratio(c, 1, &n_others);
	if (2 * n_others >= members_live(c) && stands_out(ratio_of(m), usual) &&
	    judge_node(c, m, usual))
		reroute_drifted(c);
}

void drift_turn(struct controller *c)
{
	size_t n;
	double usual = usual_ratio(c, TASKS, &n);
	struct simulation *s;
	struct error err;
	bool much;

	for (uint32_t i = 0; i < c->n_members && judges(c); i++)
		judge_node(c, &c->members[i], usual);
	if (!c->drifted || !c->current || c->plan_wanted)
		return;
	c->drifted = false;
	if (simulate(c->cluster, c->current->plan, &s, &err) != 0) {
		replan(c, "the links have changed");
		return;
	}
	much = differs(s->iteration_s, c->current->plan->predicted.iteration_s);
	note(c, NOTE_PREDICTION, -1, 0, "the plan in force: %.3g s expected, now %.3g s",
	     c->current->plan->predicted.iteration_s, s->iteration_s);
	c->current->plan->predicted.expected_s *=
		s->iteration_s / c->current->plan->predicted.iteration_s;
	c->current->plan->predicted.iteration_s = s->iteration_s;
	c->current->plan->predicted.total_s = s->total_s;
	simulation_free(c->current->trace);
	c->current->trace = s;
	if (much)
		replan(c, "links or compute have changed");
	else
		replan_if_better(c, "links or compute have changed");
}
