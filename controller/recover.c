/* recover.c - a stage has lost its last replica: who takes it over, and from what.
 *
 * A whole copy that a keeper holds is of the last commit: nothing is lost but the iteration
 * under way, which begins anew. The keeper takes the stage over itself when its own has another
 * replica; else a node of the richest stage fetches it from the keeper; where no stage can
 * spare a node the run waits for one (the supervisor of an embedded cluster is told to start
 * it).
 */
#include "controller/controller.h"

enum { ASK_AGAIN_US = 10000000, LOST_STAGE_PATIENCE_US = 30000000 };

static bool coming(const struct controller *c, int stage)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if (member_alive(m) && !m->marked && !m->replica && member_stage(c, m) == stage)
			return true;
	}
	return false;
}

static bool can_spare(const struct controller *c, const struct member *m)
{
	return !m->replica || stage_replicas(c, member_stage(c, m), NULL) >= 2;
}

/* A node of the richest stage; NULL: none has two. */
static struct member *spare(struct controller *c)
{
	struct member *best = NULL;
	uint32_t most = 1;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];
		uint32_t n = stage_replicas(c, member_stage(c, m), NULL);

		if (m->replica && m->state == NODE_LIVE && !m->marked && n > most) {
			best = m;
			most = n;
		}
	}
	return best;
}

static void ask_for_node(struct controller *c, int stage, const struct member *holder)
{
	if (c->now_us < c->next_ask_us)
		return;
	c->next_ask_us = c->now_us + ASK_AGAIN_US;
	note(c, NOTE_ALERT, -1, 0, "S%d is kept by n%02u, and no stage can spare a node for it",
	     stage, holder->id);
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if (member_stage(c, m) == stage && !member_alive(m) && !m->marked &&
		    supervisor_tell(c, "start", m->id))
			note(c, NOTE_EVENT, m->id, 0, "n%02u is started again for S%d", m->id,
			     stage);
	}
}

/* false: nobody has it. */
static bool take_over(struct controller *c, int stage)
{
	struct member *holder = copies_holder(c, stage), *taker;

	if (!holder)
		return false;
	if (coming(c, stage))
		return true;
	taker = can_spare(c, holder) ? holder : spare(c);
	if (!taker) {
		ask_for_node(c, stage, holder);
		return true;
	}
	c->taken_over = true;
	note(c, NOTE_EVENT, taker->id, 'R',
	     "n%02u takes S%d over, from the copy of it%llu at n%02u", taker->id, stage,
	     (unsigned long long)c->committed, holder->id);
	copies_move(c, taker, stage);
	return true;
}

static void admit(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m->state != NODE_SYNCING || !m->ready || m->marked ||
		    m->holds != c->committed)
			continue;
		m->replica = true;
		m->held_stage = (uint8_t)member_stage(c, m);
		members_set(c, m, NODE_LIVE, "");
		copies_release(c, m);
		c->taken_over = true;
	}
}

/* The iteration that was under way begins anew: another epoch says so to the agents, and higher
 * attempts tell the reports of the one from those of the other. */
void recover_restart(struct controller *c, const char *why)
{
	uint32_t most = c->reduce_attempt;

	for (uint32_t i = 0; i < c->routes.n; i++)
		if (c->routes.microbatches[i].route.attempt > most)
			most = c->routes.microbatches[i].route.attempt;
	c->first_attempt = most + 1;
	c->redo = true;
	c->taken_over = false;
	set_phase(c, PHASE_PLANNING);
	replan(c, why);
}

void recover_turn(struct controller *c)
{
	bool all = true, hope = true;

	admit(c);
	for (int s = 0; s < c->cluster->n_stages; s++) {
		if (stage_replicas(c, s, NULL) > 0)
			continue;
		all = false;
		hope = take_over(c, s) && hope;
	}
	if (all)
		recover_restart(c, "a stage was taken over");
	else if (hope)
		c->stalled_us = c->now_us;
	else if (c->jsonl && c->now_us - c->stalled_us > LOST_STAGE_PATIENCE_US)
		controller_finish(c, 1,
				  "a stage lost its last copy, and nobody brought it back");
}
