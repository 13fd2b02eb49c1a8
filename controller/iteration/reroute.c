/* reroute.c - other ways for microbatches of the iteration under way: around a node that died, around a link
 * that is not there, and around one that has become slow.
 */
#include "controller/iteration/reroute.h"

#include <errno.h>
#include <stdlib.h>

#include "controller/controller.h"
#include "controller/history/finish.h"
#include "controller/history/record.h"
#include "controller/iteration/remaining.h"
#include "controller/iteration/takeover_record.h"
#include "controller/iteration/sums.h"
#include "controller/members/member.h"
#include "controller/operator/announce.h"
#include "controller/operator/journal.h"
#include "controller/planning/replan.h"

/* For news of links and compute, in one iteration: what was moved is done again where it goes, and more work
 * makes more delay. */
enum { REROUTES_MOST = 3 };

/* Consoles hear which ways the microbatches of this iteration take. */
void reroute_show(struct controller *c)
{
	c->progress.rerouted = true;
	consoles_plan(c, c->current);
}

void reroute_tell(struct controller *c, const uint32_t *changed, uint32_t n, const struct member *gone)
{
	struct msg_route *routes = malloc((n + 1) * sizeof(*routes));
	struct msg m = { .type = MSG_REROUTE };

	if (!routes) {
		controller_finish(c, 1, "out of memory");
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		routes[i] = c->routes.microbatches[changed[i]].route;
	m.u.reroute = (struct msg_reroute){ c->iteration, c->epoch,     n,
					    routes,       gone != NULL, gone ? &gone->id : NULL };
	sums_forget(c); /* what counts changes, and who counts it */
	takeover_record(c);
	if (c->phase != PHASE_FINISHED) {
		send_replicas(c, &m);
		reroute_show(c);
	}
	free(routes);
}

void reroute_tell_again(struct controller *c)
{
	uint32_t *changed = calloc(c->routes.n, sizeof(*changed)), n = 0;

	for (uint32_t i = 0; changed && i < c->routes.n; i++)
		if (c->routes.microbatches[i].route.attempt > c->first_attempt)
			changed[n++] = i;
	if (n > 0)
		reroute_tell(c, changed, n, NULL);
	free(changed);
}

struct ways {
	bool usable[MSG_NODES];
	int stage_of[MSG_NODES];
};

static void who_is_there(const struct controller *c, struct ways *w)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		/* A joiner that came for the reduction has not heard this iteration's start. */
		w->usable[i] = c->members[i].replica && c->members[i].state != NODE_SYNCING &&
			       !c->members[i].going;
		w->stage_of[i] = member_stage(c, &c->members[i]);
	}
}

/* A simulated task takes some 0.1 us: half a percent of the iteration's time, 10 ms at most. */
static int64_t effort_of(const struct controller *c)
{
	double tasks = c->current->plan->predicted.iteration_s * c->unit_s * 0.005 / 0.1e-6;

	return tasks < 100000 ? (int64_t)tasks : 100000;
}

/* Returns how many ids `changed` has then; the first n are of those that run again. */
static int improve_ways(struct controller *c, const struct ways *w, uint32_t *changed, int n)
{
	double now_s = (double)(c->now_us - c->progress.started_us) * 1e-6 / c->unit_s;

	if (takeover_recalls(c)) /* what has begun is not known yet */
		return n;
	if (c->options.algorithm != PLAN_BEST) /* a baseline's ways are its own, short or long */
		return n;
	return remaining_improve(c->cluster, &c->routes, c->first_attempt, now_s,
			     w->usable, w->stage_of, effort_of(c), changed, n);
}

/* What stands in asks for slots where what goes on holds others further along. Those could wait in a circle:
 * then all of these begin again. */
static void no_circle(struct controller *c, const uint32_t *changed, int n)
{
	double now_s = (double)(c->now_us - c->progress.started_us) * 1e-6 / c->unit_s;

	if (takeover_recalls(c) || remaining_until_s(c->cluster, &c->routes, c->first_attempt, now_s) >= 0)
		return;
	for (int k = 0; k < n; k++)
		routes_begin_again(&c->routes, changed[k]);
}

int reroute_without(struct controller *c, struct member *gone)
{
	uint32_t *changed = malloc(c->routes.n * sizeof(*changed));
	struct ways w;
	int n, all;

	who_is_there(c, &w);
	if (!changed || stage_replicas(c, member_stage(c, gone), NULL) == 0) {
		free(changed);
		return changed ? -ENOENT : -ENOMEM;
	}
	n = all = routes_replace(&c->routes, gone->id, w.usable, w.stage_of, c->cluster, changed);
	if (n > 0) {
		no_circle(c, changed, n);
		all = improve_ways(c, &w, changed, n);
	}
	if (n >= 0) {
		gone->lost_here = true;
		reroute_tell(c, changed, (uint32_t)all, gone);
	}
	free(changed);
	return n;
}

int reroute_around(struct controller *c, const struct member *a, const struct member *b)
{
	uint32_t *changed = malloc(c->routes.n * sizeof(*changed));
	struct ways w;
	int n, all;

	if (!changed)
		return -ENOMEM;
	who_is_there(c, &w);
	n = all = routes_around(&c->routes, a->id, b->id, w.usable, w.stage_of, c->cluster, changed);
	if (n > 0) {
		no_circle(c, changed, n);
		all = improve_ways(c, &w, changed, n);
		c->steps++;
		c->rerun_us = c->now_us;
		record_recovery(c, "rerun", -1, n, c->now_us);
		note(c, NOTE_EVENT, a->id, 0, "%d microbatches of it%llu go around the link n%02u - n%02u", n,
		     (unsigned long long)c->iteration, a->id, b->id);
		reroute_tell(c, changed, (uint32_t)all, NULL);
	}
	free(changed);
	return n;
}

void reroute_drifted(struct controller *c)
{
	uint32_t *changed;
	struct ways w;
	int n;

	if (c->phase != PHASE_COMPUTING || takeover_recalls(c) || c->progress.reroutes >= REROUTES_MOST)
		return; /* the next iteration has the new figures */
	c->progress.reroutes++;
	changed = malloc(c->routes.n * sizeof(*changed));
	if (!changed)
		return;
	who_is_there(c, &w);
	n = improve_ways(c, &w, changed, 0);
	if (n > 0) {
		note(c, NOTE_EVENT, -1, 0, "%d microbatches of it%llu take other ways",
		     n, (unsigned long long)c->iteration);
		reroute_tell(c, changed, (uint32_t)n, NULL);
	}
	free(changed);
	c->drift.corrected = false;
	replan(c, "links or compute have changed");
	c->sooner_plan = c->plan_wanted;
}
