/* reroute.c - reroutes microbatches of the iteration under way around a node that died or a link that is cut, and tells
 * the agents. routes.c chooses the substitutes.
 */
#include "controller/iteration/reroute.h"

#include <errno.h>
#include <stdlib.h>

#include "controller/controller.h"
#include "controller/history/finish.h"
#include "controller/history/record.h"
#include "controller/iteration/sums.h"
#include "controller/members/member.h"
#include "controller/operator/announce.h"
#include "controller/operator/journal.h"

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
	send_replicas(c, &m);
	reroute_show(c);
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

int reroute_without(struct controller *c, struct member *gone)
{
	uint32_t *changed = malloc(c->routes.n * sizeof(*changed));
	struct ways w;
	int n;

	who_is_there(c, &w);
	if (!changed || stage_replicas(c, member_stage(c, gone), NULL) == 0) {
		free(changed);
		return changed ? -ENOENT : -ENOMEM;
	}
	n = routes_replace(&c->routes, gone->id, w.usable, w.stage_of, c->cluster, changed);
	if (n >= 0)
		reroute_tell(c, changed, (uint32_t)n, gone);
	free(changed);
	return n;
}

int reroute_around(struct controller *c, const struct member *a, const struct member *b)
{
	uint32_t *changed = malloc(c->routes.n * sizeof(*changed));
	struct ways w;
	int n;

	if (!changed)
		return -ENOMEM;
	who_is_there(c, &w);
	n = routes_around(&c->routes, a->id, b->id, w.usable, w.stage_of, c->cluster, changed);
	if (n > 0) {
		c->steps++;
		c->rerun_us = c->now_us;
		record_recovery(c, "rerun", -1, n, c->now_us);
		note(c, NOTE_EVENT, a->id, 0, "%d microbatches of it%llu go around the link n%02u - n%02u", n,
		     (unsigned long long)c->iteration, a->id, b->id);
		reroute_tell(c, changed, (uint32_t)n, NULL);
	}
	free(changed);
	return n;
}
