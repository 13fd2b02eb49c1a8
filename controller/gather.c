/* gather.c - before the first iteration, and after a takeover: who is here, and in which stage.
 */
#include "controller/controller.h"

enum { REGATHER_US = 1200000, BUILD_US = 60000000 };

static const double watchable_s = 2.5;

static void first_assignments(struct controller *c)
{
	int stages[MSG_NODES], shard = 0;

	plan_stages(c->pending->plan, c->cluster->n_nodes, stages);
	for (uint32_t i = 0; i < c->n_members; i++)
		c->cluster->nodes[i].stage = c->members[i].home = stages[i];
	for (uint32_t i = 0; i < c->n_members; i++)
		c->shard_of[i] = stages[i] == 0 ? shard++ : -1;
	resume_save(c);
	for (uint32_t i = 0; i < c->n_members; i++)
		if (member_alive(&c->members[i]))
			members_assign(c, &c->members[i], stages[i], false);
}

/* Unless told otherwise, an iteration takes what a person can follow. */
static void choose_time_scale(struct controller *c)
{
	const struct plan_predicted *p = &c->pending->plan->predicted;

	if (c->options.time_scale < 0)
		c->options.time_scale = watchable_s / (p->iteration_s + p->sync_s);
	c->unit_s = c->options.time_scale > 0 ? c->options.time_scale : 1;
	consoles_run(c);
}

/* It builds its stage: not for ever. */
static bool builds(const struct controller *c, const struct member *m)
{
	int64_t most = BUILD_US > c->options.gather_us ? BUILD_US : c->options.gather_us;

	return member_alive(m) && !m->marked && !m->ready && c->now_us - m->assigned_us < most;
}

static void gather(struct controller *c)
{
	uint32_t here = 0, ready = 0, building = 0, assigned = 0;
	bool patient = c->now_us - c->committed_us < c->options.gather_us;

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		here += member_alive(m);
		ready += member_alive(m) && !m->marked && m->ready;
		building += builds(c, m);
		assigned += m->assignment != 0;
	}
	if (!c->pending || (here < c->n_members && patient))
		return;
	if (!assigned && here > 0) {
		choose_time_scale(c);
		members_welcome(c);
		first_assignments(c);
		return;
	}
	if (building > 0 || here == 0) {
		if (here == 0 && !patient)
			controller_finish(c, 1, "no agent came");
		return;
	}
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!member_alive(m) || m->marked || !m->ready)
			continue;
		m->replica = true;
		members_set(c, m, NODE_LIVE, "");
	}
	if (!replicas_everywhere(c)) {
		controller_finish(c, 1,
				  "some stage has no agent: start more, or fewer --stages");
		return;
	}
	note(c, NOTE_EVENT, -1, 0, "%u of %u agents are here", ready, c->n_members);
	c->committed_us = c->now_us;
	if (ready < c->n_members || c->options.time_scale == 0)
		replan(c, ready < c->n_members ? "not all agents came" : "compute was measured");
	if (c->options.time_scale == 0)
		replan_baseline(c);
	c->evaluation.wanted = c->options.eval_every > 0;
	set_phase(c, PHASE_PLANNING);
}

/* Some stage is held by nobody who came: a copy of it may be, or a checkpoint. */
static void gather_without(struct controller *c, bool all)
{
	if (!all) {
		for (uint32_t i = 0; i < c->n_members; i++)
			c->members[i].replica = false;
		return;
	}
	note(c, NOTE_ALERT, -1, 0, "not every stage has an agent with its weights of it%llu",
	     (unsigned long long)c->committed);
	c->stalled_us = c->committed_us = c->now_us;
	c->stalled_in = PHASE_PLANNING;
	set_phase(c, PHASE_STALLED);
}

static bool somebody_awaited(const struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if (m->awaited && !m->lost_here && !(member_alive(m) && m->ready))
			return true;
		if (member_alive(m) && m->ready && m->beat.beat == 0)
			return true; /* its clock is not known yet */
	}
	return false;
}

/* After a takeover: once those are back who were there at the last commit, or when time is up and
 * every stage is held by somebody. */
static void gather_again(struct controller *c)
{
	int64_t waited = c->now_us - c->committed_us;
	uint32_t ready = 0, here = 0;

	if (c->options.iterations && c->committed >= c->options.iterations) {
		controller_finish(c, 0, "done"); /* the predecessor died telling the agents */
		return;
	}
	for (uint32_t i = 0; i < c->n_members; i++) {
		here += member_alive(&c->members[i]) && c->members[i].welcomed;
		ready += member_alive(&c->members[i]) && c->members[i].ready;
	}
	if (here == 0 && waited > c->options.gather_us)
		controller_finish(c, 1, "no agent came");
	if (here == 0 || (somebody_awaited(c) && waited < REGATHER_US))
		return;
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		m->replica = member_alive(m) && m->ready && !m->marked;
		if (m->replica) {
			members_set(c, m, NODE_LIVE, "");
		} else if (!member_alive(m)) {
			members_set(c, m, NODE_DEAD, "did not come back");
			door_disown(c, m); /* it may have been expelled meanwhile */
		} else if (m->marked) {
			members_set(c, m, NODE_FAILED, "marked failed");
		}
	}
	if (!replicas_everywhere(c)) {
		gather_without(c, here == c->n_members || waited > c->options.gather_us);
		return;
	}
	note(c, NOTE_EVENT, -1, 0, "%u agents go on from it%llu", ready,
	     (unsigned long long)c->committed);
	c->committed_us = c->now_us;
	if (!carry_on(c))
		set_phase(c, PHASE_PLANNING);
	if (!c->plan_wanted)
		replan(c, "the run was taken over");
}

void gather_turn(struct controller *c)
{
	if (c->resumed)
		gather_again(c);
	else
		gather(c);
}
