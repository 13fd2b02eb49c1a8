/* checks.c - the checks of a simulated run. They check the members during the run, the controller's
 * exit status when it has ended, and the record and the agents' weights at the end. */
#include <inttypes.h>
#include <string.h>

#include "store/store.h"
#include "tests/sim/agent_process.h"
#include "tests/sim/world_private.h"
#include "verify/compare.h"
#include "wire/msg.h"

static struct world *current;

void checks_begin(struct world *w)
{
	current = w;
}

/* Checks that the store contains a commit before the controller announces it. */
void sim_sends(uint32_t process, const void *data, size_t size)
{
	struct world *w = current;
	struct msg m;
	struct store *s;
	struct error err = { "" };

	if (process != CONTROLLER || msg_decode(&m, data, size) != 0)
		return;
	if (m.type == MSG_COMMIT && m.u.commit.iteration > w->durable) {
		w->out->stacked += m.u.commit.stack_from != 0;
		if (store_open(&s, w->ground->run, &err) == 0) {
			store_last_commit(s, &w->durable, &err);
			store_close(s);
		}
		if (m.u.commit.iteration > w->durable)
			world_go_wrong(w,
				       "commit %" PRIu64 " is announced, but the store has %" PRIu64
				       " %s",
				       m.u.commit.iteration, w->durable, err.text);
	}
	msg_clear(&m);
}

static bool is_marked(const struct world *w, uint32_t i)
{
	for (uint32_t k = 0; k < w->n_mishaps; k++)
		if (w->mishaps[k].kind == MARK && w->mishaps[k].a == i && w->mishaps[k].given)
			return true;
	return false;
}

/* Returns true if a bit of an encoded sum may have flipped. The flip may have made a scale that no
 * computation gives. In that case the controller has rightly excluded the sender. */
static bool is_scale_flipped(const struct world *w)
{
	bool flipped = false;
	bool encoded = w->controller->run.options.training.formats.sum_wire != FORMAT_FP32;

	for (uint32_t k = 0; k < w->n_mishaps; k++) {
		flipped |= w->mishaps[k].kind == FLIP && w->mishaps[k].done;
		encoded |= w->mishaps[k].kind == SUM_WIRE;
	}
	return flipped && encoded;
}

/* Returns true if draining agents are the only mishaps. Returns false with long steps, because the
 * controller may drop an agent whose step takes long. */
static bool only_drains(const struct world *w)
{
	if (w->step_us > 0)
		return false;
	for (uint32_t k = 0; k < w->n_mishaps; k++)
		if (w->mishaps[k].kind != DRAIN)
			return false;
	return w->n_mishaps > 0;
}

/* If draining agents are the only mishaps, no task may run again. Without any mishap, no agent may
 * miss a commit, even if its step takes long. */
void checks_turn(struct world *w)
{
	const struct iteration *it = &w->controller->iteration;

	if (only_drains(w) && (it->rerun_us != 0 || it->progress.voided > 0))
		world_go_wrong(w, "tasks of iteration %" PRIu64 " run again",
			       w->controller->run.iteration);
	for (uint32_t i = 0; w->n_mishaps == 0 && i < w->n_agents; i++) {
		const struct member *m = &w->controller->members.list[i];

		if (m->state == MEMBER_DEAD && strstr(m->why, "another iteration"))
			world_go_wrong(w, "agent %u was dropped: it %s", i, m->why);
	}
}

void checks_controller_ended(struct world *w, int status)
{
	const struct controller *c = w->controller;
	bool excused = is_scale_flipped(w); /* true: the exclusion of one sender is no error */

	if (status != 0)
		world_go_wrong(w, "the controller ended with %d after iteration %" PRIu64, status,
			       c->run.committed);
	else if (c->run.committed != w->iterations)
		world_go_wrong(w, "the run ended after iteration %" PRIu64 " of %u",
			       c->run.committed, w->iterations);
	for (uint32_t i = 0; i < w->n_agents; i++) {
		const struct member *m = &c->members.list[i];

		if ((!m->is_marked && !m->peers.is_excluded) || is_marked(w, i) ||
		    m->move.drain == DRAIN_EXCLUDED)
			continue;
		if (!excused)
			world_go_wrong(w, "agent %u was shut out: %s", i, m->why);
		excused = false;
	}
}

void checks_ask_agents(struct world *w)
{
	uint64_t committed;

	for (uint32_t i = 0; i < SIM_AGENTS; i++) {
		struct held *h = &w->held[i];

		/* After a restore, a node that has not returned has weights that the run has
		 * discarded. */
		if (w->out->rewinds && w->controller && i < w->controller->members.n &&
		    !member_is_replica(&w->controller->members.list[i]))
			h->stage = -1;
		else if (!w->agents[i] ||
			 !agent_process_holds(w->agents[i], &h->stage, &committed, &h->hash) ||
			 committed != w->iterations)
			h->stage = -1;
	}
}

static int compare_held(void *context, const struct store_hash *h)
{
	struct held *held = context;

	for (int i = 0; i < SIM_AGENTS; i++)
		if (held[i].stage == h->stage) {
			held[i].announced = true;
			held[i].matches = held[i].hash == h->hash;
		}
	return 0;
}

/* Compares the weights of all agents with the announced hashes of their stages. */
static void check_held(struct world *w, struct store *s)
{
	struct error err = { "" };

	if (store_each_hash(s, w->iterations, compare_held, w->held, &err) != 0)
		world_go_wrong(w, "%s", err.text);
	for (uint32_t i = 0; i < w->n_agents; i++)
		if (w->held[i].announced && !w->held[i].matches)
			world_go_wrong(w,
				       "agent %u holds other weights of stage %d than announced",
				       i, w->held[i].stage);
}

void checks_record(struct world *w)
{
	const struct compare_options o = { .from = 1, .workers = 1 };
	struct compare_result r;
	struct error err = { "" };
	struct store *s;

	if (store_open(&s, w->ground->run, &err) != 0) {
		world_go_wrong(w, "%s", err.text);
		return;
	}
	if (compare_run(s, &o, &r, &err) != 0)
		world_go_wrong(w, "verify: %s", err.text);
	else if (r.broken_rule.text[0])
		world_go_wrong(w, "verify: a rule is broken: %s", r.broken_rule.text);
	else if (r.weights.differing)
		world_go_wrong(w,
			       "verify: %" PRIu64 " of %" PRIu64 " hashes differ, the first of "
			       "node %u in stage %u after %" PRIu64,
			       r.weights.differing, r.weights.compared,
			       r.weights.first_differing.node, r.weights.first_differing.stage,
			       r.weights.first_differing.iteration);
	else if (!compare_equal(&r) || r.last != w->iterations || r.tolerance_from ||
		 r.losses.equal_bits != r.losses.compared)
		world_go_wrong(w,
			       "verify: %" PRIu64 " iterations, %" PRIu64 " of %" PRIu64
			       " losses equal",
			       r.last, r.losses.equal_bits, r.losses.compared);
	else
		w->out->commits = r.last;
	check_held(w, s);
	store_close(s);
}
