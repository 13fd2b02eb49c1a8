/* startup.c - before the first iteration, and after a takeover: who is here, and in which stage.
 *
 * A new run: agents come; links are measured, then compute, one agent of a machine at a time; a plan is made of that;
 * agents build their stages. What is emulated is planned at once. A run that is taken over waits for those who
 * were there at the last commit, and goes on with their weights where every stage is held by somebody.
 */
#include "controller/members/startup.h"

#include <math.h>
#include <string.h>

#include "controller/controller.h"
#include "controller/history/finish.h"
#include "controller/history/record.h"
#include "controller/history/run_state.h"
#include "controller/members/assign.h"
#include "controller/members/capacity.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/members/node_state.h"
#include "controller/members/peers.h"
#include "controller/network/measuring.h"
#include "controller/operator/announce.h"
#include "controller/operator/journal.h"
#include "controller/planning/drift.h"
#include "controller/planning/request.h"
#include "controller/planning/replan.h"
#include "controller/trust/agreement.h"
#include "controller/weights/checkpoints.h"

enum {
	REGATHER_US = 1200000, /* and as many round trips of the longest link: connecting takes four */
	REGATHER_TRIPS = 5,
	BUILD_US = 60000000,
	SLOTS_MOST = 8,    /* more microbatches at once than that shorten no plan */
	TIMED_OF_MACHINE = 2 /* agents of one machine and device compute alike */
};

static const double watchable_s = 2.5;
static const double memory_share = 0.7; /* of what a machine has free */
static const double task_messages_s = 0.003; /* of a processor: what a task's tensor and events cost where all share one */
static const double busy_share = 0.4; /* of an emulated iteration may be arithmetic */

/* ---- what is told of it ---- */

static uint8_t list_steps(const struct controller *c)
{
	unsigned measured = 1u << GATHER_LINKS | 1u << GATHER_PLAN, all = (1u << (GATHER_BUILD + 1)) - 1;

	if (c->resumed)
		return 1u << GATHER_COMING;
	if (!measuring_wanted(c))
		return (uint8_t)(all & ~measured);
	return (uint8_t)(c->options.measure_only ? (1u << GATHER_PLAN) - 1 : all);
}

/* Which steps there are depends on the run; how far a step is, on who has done its part. */
void startup_status(const struct controller *c, struct msg_see_status *s)
{
	uint32_t here = 0, ready = 0, timed = 0;
	char left[32] = "";

	for (uint32_t i = 0; i < c->n_members; i++) {
		here += member_alive(&c->members[i]);
		ready += member_alive(&c->members[i]) && c->members[i].ready;
		timed += member_alive(&c->members[i]) && c->members[i].alone_forward_s > 0;
	}
	s->steps = list_steps(c);
	s->step = (uint8_t)(c->resumed ? GATHER_COMING : c->gathering);
	s->parts = s->step == GATHER_COMING ? c->n_members : s->step == GATHER_PLAN ? 0 : here;
	s->part = s->step == GATHER_COMING ? here : s->step == GATHER_COMPUTE ? timed : ready;
	switch ((enum gather_step)s->step) {
	case GATHER_COMING:
		snprintf(s->doing, sizeof(s->doing), "gathering agents: %u of %u are here", s->part, s->parts);
		break;
	case GATHER_LINKS:
		s->left_s = (float)measuring_round(c, &s->part, &s->parts);
		if (s->left_s >= 1)
			snprintf(left, sizeof(left), ", about %.0f s left", (double)s->left_s);
		snprintf(s->doing, sizeof(s->doing), "measuring links: round %u of %u%s", s->part, s->parts, left);
		break;
	case GATHER_COMPUTE:
		snprintf(s->doing, sizeof(s->doing), "measuring how fast nodes compute: %u of %u", s->part, s->parts);
		break;
	case GATHER_PLAN:
		s->part = 0;
		snprintf(s->doing, sizeof(s->doing), "planning for what was measured");
		break;
	case GATHER_BUILD:
		snprintf(s->doing, sizeof(s->doing), "agents build their stages: %u of %u ready", s->part, s->parts);
		break;
	}
}

static void go_to_step(struct controller *c, enum gather_step to)
{
	static const char *const begins[] = {
		[GATHER_COMPUTE] = "measuring how fast nodes compute",
		[GATHER_PLAN] = "planning for what was measured",
		[GATHER_BUILD] = "agents build their stages",
	};

	c->gathering = to;
	c->stream.next_status_us = 0;
	if (begins[to]) /* of the links measuring_begin says more */
		note(c, NOTE_EVENT, -1, 0, "%s", begins[to]);
}

static void first_assignments(struct controller *c)
{
	int stages[MSG_NODES], shard = 0;

	plan_stages(c->pending->plan, c->cluster->n_nodes, stages);
	for (uint32_t i = 0; i < c->n_members; i++)
		c->cluster->nodes[i].stage = c->members[i].home = stages[i];
	for (uint32_t i = 0; i < c->n_members; i++)
		c->shard_of[i] = stages[i] == 0 ? shard++ : -1;
	resume_save(c);
	members_welcome(c); /* who came while others were measured gets its place later */
	for (uint32_t i = 0; i < c->n_members; i++)
		if (member_alive(&c->members[i]) && stages[i] >= 0)
			members_assign(c, &c->members[i], stages[i], false);
}

/* Seconds of the processors that an iteration's tasks and their messages take; *cores: of the machines there are. */
static double arithmetic_s(const struct controller *c, const struct plan *p, uint32_t *cores)
{
	double forward_s = 0, backward_s = 0, loss_s = 0, visits = 0;
	uint32_t n = 0;

	*cores = 0;
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];
		bool first = true;

		if (!member_alive(m))
			continue;
		for (uint32_t k = 0; k < i; k++)
			first = first && !(member_alive(&c->members[k]) && members_share_machine(m, &c->members[k]));
		*cores += first ? m->hello.cores : 0;
		forward_s += m->alone_forward_s;
		backward_s += m->alone_backward_s;
		loss_s += m->alone_loss_s;
		n++;
	}
	for (int i = 0; i < p->n_microbatches; i++)
		visits += p->path_length;
	if (n == 0)
		return 0;
	return (visits * (forward_s + backward_s) + p->n_microbatches * loss_s) / n +
	       (2 * visits + p->n_microbatches) * task_messages_s;
}

/* Unless told otherwise, an iteration takes what a person can follow, or as much longer as the machine needs for the
 * arithmetic. */
static void choose_time_scale(struct controller *c)
{
	const struct plan_predicted *p = &c->pending->plan->predicted;
	uint32_t cores;
	double most_s = watchable_s, busy_s = arithmetic_s(c, c->pending->plan, &cores);

	if (cores > 0 && busy_s / cores > busy_share * most_s)
		most_s = busy_s / cores / busy_share;
	if (c->options.time_scale < 0 && most_s > watchable_s)
		note(c, NOTE_EVENT, -1, 0, "an iteration takes %.1f s of %u cores: its time scale leaves it %.1f s",
		     busy_s, cores, most_s);
	if (c->options.time_scale < 0)
		c->options.time_scale = most_s / (p->iteration_s + p->sync_s);
	c->unit_s = c->options.time_scale > 0 ? c->options.time_scale : 1;
	consoles_run(c);
}

/* Whether m builds its stage: not for ever. */
static bool is_building(const struct controller *c, const struct member *m)
{
	int64_t most = BUILD_US > c->options.gather_us ? BUILD_US : c->options.gather_us;

	return member_alive(m) && !m->marked && !m->ready && c->now_us - m->assigned_us < most;
}

/* ---- how fast nodes compute, and how much they hold ---- */

static bool computes_alike(const struct member *a, const struct member *b)
{
	return members_share_machine(a, b) && strcmp(a->hello.device, b->hello.device) == 0;
}

/* How many microbatches each holds at once, from its share of its machine's free memory. A cluster file
 * says it itself. */
static void settle_slots(struct controller *c)
{
	uint64_t parameters = 0;

	for (uint32_t s = 0; s < c->model.n_stages; s++)
		parameters = c->stage_parameters[s] > parameters ? c->stage_parameters[s] : parameters;
	for (uint32_t i = 0; i < c->n_members && !c->options.cluster; i++) {
		const struct member *m = &c->members[i];
		double share = memory_share * (double)m->hello.memory_bytes;
		int n = 0;

		for (uint32_t k = 0; k < c->n_members; k++)
			n += member_alive(&c->members[k]) && members_share_machine(m, &c->members[k]);
		if (member_alive(m) && m->hello.memory_bytes > 0)
			c->cluster->nodes[i].memory = c->planned->nodes[i].memory =
				capacity_slots(&c->model, &c->recipe, parameters, share / n, SLOTS_MOST);
	}
}

/* A stage to measure with: not the one that reads text, where there is another. */
static void have_timed(struct controller *c, struct member *m)
{
	struct msg a = { .type = MSG_ASSIGN };

	m->assignment = ++c->assignments;
	m->assigned_us = c->now_us;
	m->ready = false;
	a.u.assign = (struct msg_assign){ m->assignment, c->cluster->n_stages > 1, false };
	members_set(c, m, NODE_SYNCING, "its compute is measured");
	member_send(c, m, &a);
}

/* Of its like: how many were timed, and whether one of its machine is at it. */
static int timed_like(const struct controller *c, const struct member *m, bool *busy, double *forward_s,
		      double *backward_s)
{
	int n = 0;

	*busy = false;
	*forward_s = *backward_s = 0;
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *other = &c->members[i];

		*busy = *busy || (members_share_machine(m, other) && other->assignment && is_building(c, other));
		if (other->alone_forward_s <= 0 || !other->assignment || !computes_alike(m, other))
			continue;
		*forward_s += other->alone_forward_s;
		*backward_s += other->alone_backward_s;
		n++;
	}
	return n;
}

/* One at a time on each machine, so that nobody is timed while another computes there. */
static bool all_timed(struct controller *c)
{
	bool all = true;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];
		double forward_s, backward_s;
		bool busy;
		int n;

		if (!member_alive(m) || m->alone_forward_s > 0)
			continue;
		if (m->assignment && m->ready) {
			m->alone_forward_s = m->measured_forward_s > 0 ? m->measured_forward_s : 1e-6;
			m->alone_backward_s = m->measured_backward_s > 0 ? m->measured_backward_s : 1e-6;
			continue;
		}
		n = timed_like(c, m, &busy, &forward_s, &backward_s);
		if (n >= TIMED_OF_MACHINE && !m->assignment) {
			m->alone_forward_s = forward_s / n;
			m->alone_backward_s = backward_s / n;
			continue;
		}
		if (m->assignment && !is_building(c, m)) {
			members_gone(c, m, "did not build a stage in time");
			continue;
		}
		all = false;
		if (!m->assignment && !busy)
			have_timed(c, m);
	}
	return all;
}

static void take_times(struct controller *c)
{
	double ratio = capacity_loss_ratio(&c->model, &c->recipe);

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m->alone_forward_s <= 0)
			continue;
		m->alone_loss_s = ratio * m->alone_forward_s;
		if (c->options.time_scale != 0)
			continue; /* what is emulated is as it was said to be */
		drift_set_times(c, m);
		record_compute(c, m->id);
	}
}

/* ---- the steps ---- */

static bool all_have_come(struct controller *c)
{
	bool patient = c->now_us - c->committed_us < c->options.gather_us;
	uint32_t here = 0;

	for (uint32_t i = 0; i < c->n_members; i++)
		here += member_alive(&c->members[i]);
	if (here == 0 && !patient)
		controller_finish(c, 1, "no agent came");
	return here > 0 && (here == c->n_members || !patient);
}

static void gather_coming(struct controller *c)
{
	if ((!measuring_wanted(c) && !c->pending) || !all_have_come(c))
		return;
	if (measuring_wanted(c))
		settle_slots(c);
	members_welcome(c);
	if (measuring_wanted(c)) {
		measuring_begin(c);
		go_to_step(c, GATHER_LINKS);
	} else {
		go_to_step(c, GATHER_COMPUTE);
	}
}

/* Of what is emulated the plan is there already; only the time scale was not known when agents were welcomed. */
static void begin_emulated(struct controller *c)
{
	choose_time_scale(c);
	for (uint32_t i = 0; i < c->n_members; i++) {
		c->members[i].assignment = 0;
		c->members[i].welcomed = false;
	}
	members_welcome(c);
	first_assignments(c);
	go_to_step(c, GATHER_BUILD);
}

static void gather_compute(struct controller *c)
{
	struct error err = { "" };

	if (!all_timed(c))
		return;
	if (!measuring_wanted(c)) {
		take_times(c);
		begin_emulated(c);
		return;
	}
	link_table_apply_all(c->links, c->cluster);
	take_times(c);
	if (record_cluster(c, &err) != 0) {
		controller_unrecorded(c, err.text);
		return;
	}
	for (uint32_t i = 0; i < c->n_members; i++)
		c->members[i].assignment = 0;
	if (c->options.measure_only) {
		controller_finish(c, 0, "the cluster is measured");
		return;
	}
	replan_first(c);
	go_to_step(c, GATHER_PLAN);
}

/* All build their stages, or have had their time. */
static void gather_built(struct controller *c)
{
	uint32_t ready = 0, building = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		ready += member_alive(m) && !m->marked && m->ready;
		building += is_building(c, m);
	}
	if (building > 0 || !all_have_come(c))
		return;
	agreement_at_first(c);
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
	if (c->options.time_scale == 0)
		drift_guess_pace(c, c->pending->plan);
	if (ready < c->n_members || c->options.time_scale == 0)
		replan(c, ready < c->n_members ? "not all agents came" : "compute was measured");
	if (c->options.time_scale == 0)
		replan_baseline(c);
	c->evaluation.wanted = c->options.eval_every > 0;
	set_phase(c, PHASE_PLANNING);
}

static void gather_new(struct controller *c)
{
	switch (c->gathering) {
	case GATHER_COMING:
		gather_coming(c);
		break;
	case GATHER_LINKS:
		if (measuring_turn(c))
			go_to_step(c, GATHER_COMPUTE);
		break;
	case GATHER_COMPUTE:
		gather_compute(c);
		break;
	case GATHER_PLAN:
		if (c->pending) {
			first_assignments(c);
			go_to_step(c, GATHER_BUILD);
		}
		break;
	case GATHER_BUILD:
		gather_built(c);
		break;
	}
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
	c->stall.since_us = c->committed_us = c->now_us;
	c->stall.in = PHASE_PLANNING;
	set_phase(c, PHASE_STALLED);
}

static bool somebody_awaited(const struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if (m->awaited && !(member_alive(m) && m->ready))
			return true;
		if (member_alive(m) && m->ready && m->beat.beat == 0)
			return true; /* its clock is not known yet */
	}
	return false;
}

static int64_t regather_us(const struct controller *c)
{
	double longest_s = 0;

	for (uint32_t i = 0; c->links && i < c->links->n * c->links->n; i++)
		longest_s = fmax(longest_s, (double)c->links->links[i].latency_s);
	return REGATHER_US + (int64_t)(REGATHER_TRIPS * 2e6 * longest_s);
}

/* Longer where only weights have come that nobody has told of: who has told may yet come. */
static bool is_patient(const struct controller *c, int64_t waited)
{
	return waited < regather_us(c) || (waited < c->options.gather_us && agreement_doubts(c));
}

/* After a takeover: once those are back who were there at the last commit, or when time is up and
 * every stage is held by somebody. Of a run that is over the last checkpoint may be missing: it is written if they
 * can, and nothing is computed again for it. */
static void gather_again(struct controller *c)
{
	int64_t waited = c->now_us - c->committed_us;
	uint32_t ready = 0, here = 0;

	if (run_is_done(c) && (checkpoint_is_there(c) || waited > c->options.gather_us)) {
		controller_finish(c, 0, "done"); /* the predecessor died telling the agents */
		return;
	}
	for (uint32_t i = 0; i < c->n_members; i++) {
		here += member_alive(&c->members[i]) && c->members[i].welcomed;
		ready += member_alive(&c->members[i]) && c->members[i].ready;
	}
	if (here == 0 && waited > c->options.gather_us)
		controller_finish(c, 1, "no agent came");
	if (here == 0 || (somebody_awaited(c) && is_patient(c, waited)))
		return;
	agreement_at_first(c);
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		m->replica = member_alive(m) && m->ready && !m->marked;
		if (m->replica) {
			members_set(c, m, NODE_LIVE, "");
		} else if (!member_alive(m)) {
			if (m->awaited) /* else it was out before */
				members_set(c, m, NODE_DEAD, "did not come back");
			member_disown(c, m); /* it may have been expelled meanwhile */
		} else if (m->marked) {
			members_set(c, m, NODE_FAILED, "marked failed");
		}
	}
	if (!replicas_everywhere(c)) {
		gather_without(c, !run_is_done(c) && (here == c->n_members || waited > c->options.gather_us));
		return;
	}
	agreement_copies(c);
	note(c, NOTE_EVENT, -1, 0, "%u agents go on from it%llu", ready,
	     (unsigned long long)c->committed);
	c->committed_us = c->now_us;
	set_phase(c, PHASE_PLANNING); /* the iteration under way restarts: no attempt of the predecessor counts */
	if (!c->plan_wanted)
		replan(c, "the run was taken over");
}

void startup_turn(struct controller *c)
{
	if (c->resumed)
		gather_again(c);
	else
		gather_new(c);
}
