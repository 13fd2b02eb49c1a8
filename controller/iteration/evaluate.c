/* evaluate.c - validates the model between iterations, on the agents of the run.
 *
 * The microbatches of the validation set pass forward through every stage. Emulated delays do not
 * apply, because validation is a measurement and not a part of the emulated training. */
#include "controller/iteration/evaluate.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/stall_detector.h"
#include "controller/members/member.h"
#include "controller/network/failed_links.h"
#include "controller/run/journal.h"
#include "controller/run/phase.h"
#include "controller/run/record.h"
#include "controller/run/stream.h"

/* Returns the k-th replica of the stage, counted modulo the number of replicas. */
static uint16_t replica_of(const struct members *members, int stage, uint32_t k)
{
	uint32_t n = stage_replicas(members, stage, NULL), at = 0;

	if (n == 0)
		return 0;
	k %= n;
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (member_is_replica(m) && !m->is_marked &&
		    member_stage(members->run, m) == stage && at++ == k)
			return m->id;
	}
	return 0;
}

/* Returns true if no data can pass from one node to the other because the link is cut or was never
 * established. */
static bool is_absent(const struct members *members, uint16_t from, uint16_t to)
{
	const struct cluster *c = members->run->cluster;

	return link_failures_between(members, from, to) ||
	       c->delay_s[(size_t)from * (size_t)c->n_nodes + to] < 0;
}

/* Returns the first replica, from the k-th on, that has a link from the previous hop. A replica at
 * the last hop also needs a link to the data node. If no replica has these links, returns the
 * k-th. */
static uint16_t choose_evaluator(const struct members *members, const struct microbatch *mb,
				 int stage, uint32_t k)
{
	uint32_t n = stage_replicas(members, stage, NULL);

	for (uint32_t i = 0; stage > 0 && i < n; i++) {
		uint16_t id = replica_of(members, stage, k + i);

		if (!is_absent(members, mb->route.nodes[stage - 1], id) &&
		    (stage + 1 < members->run->cluster->n_stages ||
		     !is_absent(members, id, mb->route.nodes[0])))
			return id;
	}
	return replica_of(members, stage, k);
}

bool evaluation_needs(const struct iteration *it, uint16_t a, uint16_t b)
{
	const struct evaluation *e = &it->evaluation;
	uint32_t hops = (uint32_t)it->run->cluster->n_stages;

	for (uint32_t i = 0; i < e->n; i++) {
		const uint16_t *nodes = e->microbatches[i].route.nodes;

		for (uint32_t h = 0; !e->answered[i] && h < hops; h++) {
			uint16_t x = nodes[h], y = nodes[(h + 1) % hops];

			if ((x == a && y == b) || (x == b && y == a))
				return true;
		}
	}
	return false;
}

/* Sends each validation microbatch through one replica of every stage. The replicas of a stage take
 * turns, and cut links are avoided. The attempt number distinguishes the answers of this validation
 * from answers of an earlier validation. */
void evaluation_begin(struct iteration *it)
{
	struct evaluation *e = &it->evaluation;
	struct msg m = { .type = MSG_EVALUATE };
	uint32_t n = it->run->options.eval_batches, stages = (uint32_t)it->run->cluster->n_stages;
	struct route *routes;

	if (!e->microbatches) {
		e->microbatches = alloc_array(n, sizeof(*e->microbatches));
		e->answered = alloc_array(n, sizeof(*e->answered));
	}
	routes = alloc_array(n, sizeof(*routes));
	e->wanted = false;
	e->n = n;
	e->done = 0;
	e->loss = 0;
	e->iteration = it->run->committed;
	e->started_us = it->run->now_us;
	it->run->progress++;
	e->attempt++;
	for (uint32_t i = 0; i < n; i++) {
		struct microbatch *mb = &e->microbatches[i];

		e->answered[i] = false;
		for (uint32_t s = 0; s < stages; s++) {
			mb->route.nodes[s] = choose_evaluator(it->members, mb, (int)s, i);
			mb->route.stages[s] = (uint8_t)s;
		}
		mb->route.microbatch = mb->route.wave = i;
		mb->route.attempt = e->attempt;
		mb->route.n_hops = stages;
		routes[i] = mb->route;
	}
	m.u.evaluate = (struct msg_evaluate){ it->run->committed, n, routes,
					      (uint8_t)it->run->cluster->formats.wire };
	send_replicas(it->members, &m);
	free(routes);
	set_phase(it->run, PHASE_EVALUATING);
}

void iteration_evaluated(struct iteration *it, struct member *m, const struct msg_evaluated *r)
{
	struct evaluation *e = &it->evaluation;
	struct msg shown = { .type = MSG_SEE_VALIDATION };

	if (it->run->phase != PHASE_EVALUATING || r->iteration != e->iteration ||
	    r->microbatch >= e->n || e->answered[r->microbatch] ||
	    m->id != e->microbatches[r->microbatch].route.nodes[0])
		return;
	e->answered[r->microbatch] = true;
	it->run->progress++;
	e->loss += r->loss;
	if (++e->done < e->n)
		return;
	if (isfinite(e->loss)) {
		shown.u.see_validation =
			(struct msg_see_validation){ e->iteration, (float)(e->loss / e->n), 0 };
		record_validation(it->run, &shown.u.see_validation);
		consoles_tell(it->run, &shown);
	} else {
		note(it->run, NOTE_WARNING, -1, 0, "the validation loss of it%llu is not finite",
		     (unsigned long long)e->iteration);
	}
	set_phase(it->run, PHASE_PLANNING);
}

/* After the time limit, drops the nodes that hang. If no node reports work, abandons the
 * validation. */
void evaluation_turn(struct iteration *it)
{
	const struct evaluation *e = &it->evaluation;
	char awaited[120];

	if (!stall_look(it) || !stall_hung(it, e->n) || stall_drop_hanging(it->members))
		return;
	stall_name_awaited(it->members, awaited, sizeof(awaited));
	note(it->run, NOTE_WARNING, -1, 0,
	     "validation of it%llu abandoned: %u of %u answers arrived (%s)",
	     (unsigned long long)e->iteration, e->done, e->n, awaited);
	set_phase(it->run, PHASE_PLANNING);
}

void evaluation_fini(struct iteration *it)
{
	free(it->evaluation.microbatches);
	free(it->evaluation.answered);
}
