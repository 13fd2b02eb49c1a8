/* reroute.c - reroutes microbatches of the iteration under way around a node that died or a link
 * that is cut, and announces the new routes to the agents. routes.c chooses the substitutes. */
#include "controller/iteration/reroute.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/plan_message.h"
#include "controller/iteration/sums.h"
#include "controller/members/member.h"
#include "controller/run/journal.h"
#include "controller/run/record.h"

/* Sends consoles the routes of this iteration. */
void reroute_show(struct iteration *it)
{
	it->progress.rerouted = true;
	consoles_plan(it, it->run->plan);
}

void reroute_announce(struct iteration *it, const uint32_t *changed, uint32_t n,
		      const struct member *gone)
{
	struct route *routes = alloc_array(n, sizeof(*routes));
	struct msg m = { .type = MSG_REROUTE };

	for (uint32_t i = 0; i < n; i++)
		routes[i] = it->routes.microbatches[changed[i]].route;
	m.u.reroute = (struct msg_reroute){ it->run->iteration,
					    it->run->epoch,
					    n,
					    routes,
					    gone != NULL,
					    gone ? &gone->id : NULL,
					    (uint8_t)it->run->cluster->formats.wire };
	sums_forget(it); /* the sums are void, because the set of counted gradients changes */
	send_replicas(it->members, &m);
	reroute_show(it);
	free(routes);
}

void reroute_announce_all(struct iteration *it)
{
	uint32_t *changed = alloc_array(it->routes.n, sizeof(*changed)), n = 0;

	for (uint32_t i = 0; i < it->routes.n; i++)
		if (it->routes.microbatches[i].route.attempt > it->run->first_attempt)
			changed[n++] = i;
	if (n > 0)
		reroute_announce(it, changed, n, NULL);
	free(changed);
}

struct usable_nodes {
	bool usable[MSG_NODES];
	int stage_of[MSG_NODES];
};

static void find_usable(const struct members *members, struct usable_nodes *w)
{
	for (uint32_t i = 0; i < members->n; i++) {
		w->usable[i] = member_computes(&members->list[i]);
		w->stage_of[i] = member_stage(members->run, &members->list[i]);
	}
}

int reroute_without(struct iteration *it, struct member *gone)
{
	int n, stage = member_stage(it->run, gone);
	uint32_t *changed;
	struct usable_nodes w;

	/* The dead node's stage may be assigned to another node already. */
	if (stage >= 0 && stage_replicas(it->members, stage, NULL) == 0)
		return -ENOENT;
	find_usable(it->members, &w);
	changed = alloc_array(it->routes.n, sizeof(*changed));
	n = routes_replace(&it->routes, gone->id, w.usable, w.stage_of, it->run->cluster, changed);
	if (n >= 0)
		reroute_announce(it, changed, (uint32_t)n, gone);
	free(changed);
	return n;
}

int reroute_around(struct iteration *it, const struct member *a, const struct member *b)
{
	uint32_t *changed = alloc_array(it->routes.n, sizeof(*changed));
	struct usable_nodes w;
	int n;

	find_usable(it->members, &w);
	n = routes_around(&it->routes, a->id, b->id, w.usable, w.stage_of, it->run->cluster,
			  changed);
	if (n > 0) {
		it->run->progress++;
		it->rerun_us = it->run->now_us;
		record_recovery(it->run, "rerun", -1, n, it->run->now_us);
		note(it->run, NOTE_EVENT, a->id, 0,
		     "%d microbatches of it%llu go around the link n%02u - n%02u", n,
		     (unsigned long long)it->run->iteration, a->id, b->id);
		reroute_announce(it, changed, (uint32_t)n, NULL);
	}
	free(changed);
	return n;
}
