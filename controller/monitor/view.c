/* view.c - judges whether a run is healthy, from the state that consoles see. */
#include "controller/monitor/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	LISTED = 8, /* largest number of nodes that a reason names */
	/* A run is degraded if its last commit is more than QUIET_S seconds ago, and also more than
	 * QUIET_ITERATIONS times the duration of the newest iteration. */
	QUIET_S = 60,
	QUIET_ITERATIONS = 10
};

void view_count_states(const struct view *v, uint32_t counts[NODE_LAST + 1])
{
	for (unsigned s = 0; s <= NODE_LAST; s++)
		counts[s] = 0;
	for (uint32_t i = 0; i < v->n_nodes; i++)
		if (v->nodes[i].state <= NODE_LAST)
			counts[v->nodes[i].state]++;
}

/* The health found so far, and the function that receives the reasons. */
struct verdict {
	enum view_health health;
	void (*say)(void *context, const char *reason);
	void *context;
};

static void give_reason(struct verdict *d, enum view_health health, const char *reason)
{
	if (health > d->health)
		d->health = health;
	if (d->say)
		d->say(d->context, reason);
}

/* Reports the nodes in a state, as in "2 nodes are dead: n03, n11". */
static void judge_state(struct verdict *d, const struct view *v, unsigned state)
{
	char text[256];
	uint32_t n = 0, listed = 0;
	size_t at;

	for (uint32_t i = 0; i < v->n_nodes; i++)
		n += v->nodes[i].state == state;
	if (n == 0)
		return;
	at = (size_t)snprintf(text, sizeof(text), "%u node%s %s:", n, n == 1 ? " is" : "s are",
			      node_state_name(state));
	for (uint32_t i = 0; i < v->n_nodes && listed <= LISTED; i++) {
		if (v->nodes[i].state != state)
			continue;
		if (listed++ == LISTED)
			at += (size_t)snprintf(text + at, sizeof(text) - at, ", ...");
		else
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s n%02u",
					       listed > 1 ? "," : "", v->nodes[i].node);
	}
	give_reason(d, VIEW_DEGRADED, text);
}

/* A run that has ended, or has no controller, is stopped, whatever the state of its nodes. */
static bool judge_end(struct verdict *d, const struct view *v)
{
	if (v->status.phase == PHASE_FINISHED)
		give_reason(d, VIEW_STOPPED, "the run has ended");
	else if (v->is_left)
		give_reason(d, VIEW_STOPPED,
			    "no controller runs; skippipe controller --resume continues the run");
	return d->health == VIEW_STOPPED;
}

static void judge_phase(struct verdict *d, const struct view *v)
{
	if (v->status.phase == PHASE_GATHERING)
		give_reason(d, VIEW_DEGRADED, "training has not begun: agents gather");
	if (v->status.phase == PHASE_STALLED)
		give_reason(d, VIEW_DEGRADED,
			    "the run is stalled: a stage has no living copy of its weights");
	if (v->status.paused || v->status.phase == PHASE_PAUSED)
		give_reason(d, VIEW_DEGRADED, "an operator has paused the run");
	if (v->disk_waits)
		give_reason(d, VIEW_DEGRADED,
			    "the run waits: its record cannot be written (a full disk, or a lock)");
}

/* Reports a run that computes but has not committed for a long time. In a view that is not made by
 * the running controller, this is the only sign that the disk of the record is full. */
static void judge_progress(struct verdict *d, const struct view *v)
{
	double age_s = (double)(v->wall_us - v->last.wall_us) * 1e-6;
	char text[64];

	if (!v->has_last || v->status.phase == PHASE_GATHERING ||
	    age_s <= fmax(QUIET_S, QUIET_ITERATIONS * (double)v->last.real_s))
		return;
	snprintf(text, sizeof(text), "no iteration was committed for %.0f s", age_s);
	give_reason(d, VIEW_DEGRADED, text);
}

/* Reports that a checkpoint failed. The training continues in that case, so the run would otherwise
 * look healthy. */
static void judge_checkpoint(struct verdict *d, const struct view *v)
{
	const struct msg_see_status *s = &v->status;
	const struct checkpoint_failure *f = &s->checkpoint_failure;
	char text[320];
	int n;

	if (f->iteration == 0)
		return;
	n = snprintf(text, sizeof(text), "the checkpoint of it%llu failed: %s; ",
		     (unsigned long long)f->iteration, f->why);
	if (s->checkpoint > 0)
		snprintf(text + n, sizeof(text) - (size_t)n, "the newest is of it%llu",
			 (unsigned long long)s->checkpoint);
	else
		snprintf(text + n, sizeof(text) - (size_t)n, "there is none");
	give_reason(d, VIEW_DEGRADED, text);
}

enum view_health view_health(const struct view *v, void (*say)(void *context, const char *reason),
			     void *context)
{
	struct verdict d = { VIEW_HEALTHY, say, context };
	bool has_ended = judge_end(&d, v);
	char text[64];

	judge_checkpoint(&d, v);
	if (has_ended)
		return d.health;
	judge_phase(&d, v);
	judge_progress(&d, v);
	for (unsigned state = 0; state <= NODE_LAST; state++)
		if (node_presence(state) != NODE_TAKES_PART)
			judge_state(&d, v, state);
	if (v->status.faults > 0) {
		snprintf(text, sizeof(text), "%u injected fault%s active", v->status.faults,
			 v->status.faults == 1 ? " is" : "s are");
		give_reason(&d, VIEW_DEGRADED, text);
	}
	return d.health;
}

const char *view_health_name(enum view_health health)
{
	static const char *const names[] = { "healthy", "degraded", "stopped" };

	return names[health];
}

void view_fini(struct view *v)
{
	free(v->nodes);
	*v = (struct view){ .n_nodes = 0 };
}
