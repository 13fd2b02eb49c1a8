/* Explains why a microbatch waits. The explanation is made from the console's state alone. Thus the
 * operator gets it at once, and it costs the controller nothing. */
#include "tui/input/why.h"

#include <stdio.h>
#include <string.h>

#include "tui/screen/glyphs.h"

static double planned_s(const struct state_node *n, enum task_kind kind)
{
	return (double)(kind == TASK_FORWARD    ? n->see.forward_s
			: kind == TASK_BACKWARD ? n->see.backward_s
						: n->see.loss_s);
}

/* Returns the time until the end of the node's running task, in plan seconds; 0 if no task
 * runs. */
static double rest_s(const struct state *s, const struct state_node *n, int64_t now_us)
{
	const struct state_segment *g = state_newest(n);
	double left;

	if (!n->running || !g)
		return 0;
	left = planned_s(n, (enum task_kind)g->kind) - state_plan_s(s, now_us - g->start_us);
	return left > 0 ? left : 0;
}

/* Returns how long a task that arrived at from_us still has to wait, in plan seconds. Sets *ahead
 * to the number of tasks that will run before this task. */
static double wait_s(const struct state *s, const struct state_node *n, int64_t from_us,
		     int64_t now_us, uint32_t *ahead)
{
	double left = rest_s(s, n, now_us);

	*ahead = 0;
	for (uint32_t i = 0; i < n->n_queue && n->queue[i].from_us < from_us; i++) {
		left += planned_s(n, (enum task_kind)n->queue[i].kind);
		++*ahead;
	}
	return left;
}

/* Sets *out to the transfer time of an activation, in plan seconds. Returns false if it is
 * unknown. */
static bool delay_s(const struct state *s, uint16_t from, uint16_t to, double *out)
{
	const struct msg_link *l = state_link(s, from, to);

	if (!l)
		l = state_link(s, to, from);
	if (!l || (l->measured_delay_s <= 0 && l->planned_delay_s < 0))
		return false;
	*out = (double)(l->measured_delay_s > 0 ? l->measured_delay_s : l->planned_delay_s);
	return true;
}

/* Sets *out to the transfer time from the previous hop to `node`, plus the transfer time from
 * `node` to the next hop. Returns false if either is unknown. */
static bool detour_s(const struct state *s, const struct state_flight *f, uint16_t node,
		  double *out)
{
	uint32_t p = f->position;
	double in, on = 0;

	if (!delay_s(s, f->route.nodes[p - 1], node, &in))
		return false;
	if (p + 1 < f->route.n_hops && !delay_s(s, node, f->route.nodes[p + 1], &on))
		return false;
	*out = in + on;
	return true;
}

static bool could_take(const struct state_node *n, uint8_t stage)
{
	return n->known && n->see.stage == stage && n->see.state == NODE_LIVE &&
	       (n->see.memory == 0 || n->slots < n->see.memory);
}

static void find_alternative(struct why *w, const struct state *s, const struct state_flight *f,
			     int64_t now_us)
{
	double here, there, link;
	uint32_t ahead;

	if (!detour_s(s, f, w->node, &here))
		return;
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		const struct state_node *n = &s->nodes[i];

		if (i == w->node || !could_take(n, state_chain_stage(f, f->position)) ||
		    !detour_s(s, f, (uint16_t)i, &there))
			continue;
		link = there - here;
		there = link + wait_s(s, n, INT64_MAX, now_us, &ahead) - w->waited_s -
			w->left_s;
		if (w->alternative && there >= w->change_s)
			continue;
		w->alternative = true;
		w->other = (uint16_t)i;
		w->link_s = link;
		w->change_s = there;
	}
}

void why_make(struct why *w, const struct state *s, const struct state_flight *f,
	      int64_t now_us)
{
	const struct state_node *n;
	const struct state_segment *g;

	memset(w, 0, sizeof(*w));
	w->waits = f->phase == FLIGHT_WAITING;
	if (!w->waits)
		return;
	w->node = state_chain_node(f, f->position);
	n = &s->nodes[w->node];
	g = state_newest(n);
	w->busy = n->running && g;
	if (w->busy) {
		w->runs = g->microbatch;
		w->kind = (enum task_kind)g->kind;
	}
	w->full = n->see.memory > 0 && n->slots >= n->see.memory;
	w->waited_s = state_plan_s(s, now_us - f->since_us);
	w->left_s = wait_s(s, n, f->since_us, now_us, &w->ahead);
	w->choice = f->position > 0 && f->position < f->route.n_hops;
	if (w->choice)
		find_alternative(w, s, f, now_us);
}

/* Writes three parts: where the microbatch waits and how long, what it waits for, and whether
 * another node would be faster. */
void why_text(const struct why *w, char text[160])
{
	char waited[16], left[16];
	int n;

	*text = '\0';
	if (!w->waits)
		return;
	glyphs_age(w->waited_s, waited);
	glyphs_age(w->left_s, left);
	n = snprintf(text, 160, "waits %s at n%02u: ", waited, (unsigned)w->node);
	if (w->busy)
		n += snprintf(text + n, 160 - (size_t)n, "the node runs m%02u %c", w->runs,
			      glyphs_task_letter(w->kind));
	else
		n += snprintf(text + n, 160 - (size_t)n, "%s",
			      w->full ? "all memory slots are in use"
				      : "its task is about to start");
	if (w->ahead > 0)
		n += snprintf(text + n, 160 - (size_t)n, ", %u before it", w->ahead);
	n += snprintf(text + n, 160 - (size_t)n, ", ~%s more", left);
	if (!w->choice)
		snprintf(text + n, 160 - (size_t)n, "; no other node can take it");
	else if (w->alternative)
		snprintf(text + n, 160 - (size_t)n, "; via n%02u: link %+.1fs, in all %+.1fs",
			 (unsigned)w->other, w->link_s, w->change_s);
	else
		snprintf(text + n, 160 - (size_t)n, "; no other node is free");
}
