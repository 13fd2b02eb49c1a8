/* resume_test.c - a new controller resumes a run. Tests for which nodes it waits, whose weights it
 * accepts, and which records it refuses. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "controller/controller.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/iteration_record.h"
#include "controller/joining/agents.h"
#include "controller/joining/resume.h"
#include "controller/joining/startup.h"
#include "controller/members/lifecycle.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/members/saved_state.h"
#include "controller/operator/acts.h"
#include "controller/operator/command.h"
#include "controller/operator/consoles.h"
#include "controller/planning/spares.h"
#include "controller/run/outcome.h"
#include "controller/run/settings.h"
#include "controller/setup.h"
#include "controller/tests/recorded.h"
#include "controller/weights/copies.h"
#include "schedule/search/search.h"

enum { COMMITS = 4, N = RECORDED_NODES };

struct taken_over {
	char folder[64];
	uint32_t n_acts; /* number of acts; act i is due before iteration COMMITS + i */
	struct controller *c;
};

/* Opens a post for messages to nodes. The messages are lost, because no agent runs. */
static void open_post(struct controller *c)
{
	struct post_options o = { 0 };

	assert_int_equal(keys_generate(&c->run.keys.own, NULL), 0);
	o.identity = c->run.keys.own;
	assert_int_equal(post_open(&c->run.post, &o, NULL), 0);
}

/* Records the last commit. n00 is alone in its stage. n01 and n03 summed the gradients of the other
 * stage, while n02 was dead. */
static void last_commit(struct store *s)
{
	static const uint16_t first[] = { 0 }, second[] = { 1, 3 };
	static const struct store_reduction reductions[] = { { 0, 1, first }, { 1, 2, second } };
	struct store_commit c = { .iteration = COMMITS, .epoch = 2, .scale = 0.5f, .lr = 1e-3f,
				  .alive = 3, .path_length = 2, .n_reductions = 2,
				  .reductions = reductions, .attempt = 7, .stack_from = 1 };

	assert_int_equal(store_commit(s, &c, NULL), 0);
	store_close(s);
}

static void begin(struct taken_over *t)
{
	struct controller *c = t->c = controller_new();
	const char *text;

	assert_int_equal(store_resume(&c->run.record.store, t->folder, NULL), 0);
	text = store_run_of(c->run.record.store)->cluster;
	assert_int_equal(cluster_parse(text, strlen(text), &c->run.cluster, NULL), 0);
	c->run.cluster_as_given = cluster_copy(c->run.cluster);
	assert_int_equal(planner_start(&c->planning.planner, NULL), 0);
	open_post(c);
	c->run.options.run_dir = t->folder;
	c->run.options.limits.gather_us = 30000000;
	c->run.options.iterations = 100;
	c->run.options.changed[CHANGE_ITERATIONS] = true;
	c->run.options.n_acts = t->n_acts;
	for (uint32_t i = 0; i < t->n_acts; i++)
		c->run.options.acts[i].iteration = COMMITS + i;
	c->run.supervisor = -1;
	c->members.n = N;
	c->members.list = calloc(N, sizeof(*c->members.list));
	c->run.training.shard_of = calloc(N, sizeof(*c->run.training.shard_of));
	assert_true(c->members.list && c->run.training.shard_of);
	for (uint16_t i = 0; i < N; i++)
		c->members.list[i] =
			(struct member){ .id = i, .copy.stage = -1, .weights.stage = MSG_NO_STAGE };
	assert_int_equal(resume_begin(&c->backups, NULL), 0);
}

static int take_over(void **state)
{
	struct taken_over *t = calloc(1, sizeof(*t));
	struct recorded_options o = { 0 };
	struct store *s;

	strcpy(t->folder, "/tmp/skippipe-resume-XXXXXX");
	recorded_make(t->folder, &o, &s);
	last_commit(s);
	begin(t);
	*state = t;
	return 0;
}

static void end(struct controller *c)
{
	planner_stop(c->planning.planner);
	post_close(c->run.post);
	keys_free(c->run.keys.own);
	store_close(c->run.record.store);
	cluster_free(c->run.cluster);
	cluster_free(c->run.cluster_as_given);
	consoles_fini(&c->run);
	free(c->members.list);
	free(c->run.training.shard_of);
	free(c->run.wanted.schedule_text);
	free(c);
}

static int free_resumed(void **state)
{
	struct taken_over *t = *state;
	char command[128];

	end(t->c);
	snprintf(command, sizeof(command), "rm -rf '%s'", t->folder);
	free(t);
	return system(command);
}

static void node_returns(struct controller *c, int node, bool with_weights)
{
	struct member *m = &c->members.list[node];

	m->peer = (post_peer_id)node + 1;
	m->state = with_weights ? MEMBER_READY : MEMBER_JOINING;
	m->assigned.is_welcomed = true;
	m->beat.beat = 1;
}

static bool start_if_ready(struct controller *c, int64_t now_us)
{
	c->run.now_us = now_us;
	startup_turn(&c->iteration);
	return c->run.phase != PHASE_GATHERING;
}

#define FIXTURE_TEST(name) TEST_WITH(name, take_over, free_resumed)

FIXTURE_TEST(nodes_of_the_last_commit_are_awaited)
{
	const struct controller *c = ((struct taken_over *)*state)->c;

	assert_int_equal(c->run.committed, COMMITS);
	for (int i = 0; i < N; i++)
		assert_int_equal(c->members.list[i].is_awaited, i != 2);
}

/* An agent that missed the commit must make the same step as the other agents. */
FIXTURE_TEST(the_last_commit_is_repeated_as_recorded)
{
	const struct taken_over *t = *state;
	const struct msg_commit *m = &t->c->run.last_commit;

	assert_int_equal(m->iteration, COMMITS);
	assert_int_equal(m->attempt, 7);
	assert_true(m->scale == 0.5f);
	assert_true(m->lr == 1e-3f);
	assert_int_equal(m->stack_from, 1);
}

FIXTURE_TEST(nodes_are_recognised_by_their_keys)
{
	struct taken_over *t = *state;

	for (int i = 0; i < N; i++)
		assert_false(member_has_key(&t->c->members.list[i]));
	memset(t->c->members.list[1].key.bytes, 7, sizeof(t->c->members.list[1].key.bytes));
	assert_int_equal(resume_save(&t->c->members), 0);
	end(t->c);
	begin(t);
	for (int i = 0; i < N; i++)
		assert_int_equal(member_has_key(&t->c->members.list[i]), i == 1);
	assert_int_equal(t->c->members.list[1].key.bytes[31], 7);
}

/* The node is marked because the choice of stages left it out, and not because of its data. Its
 * weights may therefore be used. */
FIXTURE_TEST(a_node_that_was_left_out_may_be_taken_in_after_a_restart)
{
	struct taken_over *t = *state;
	struct member *list = t->c->members.list;

	list[1].is_marked = list[1].assigned.is_left_out = list[2].is_marked = true;
	assert_int_equal(resume_save(&t->c->members), 0);
	end(t->c);
	begin(t);
	list = t->c->members.list;
	assert_true(list[1].is_marked && list[2].is_marked);
	assert_true(list[1].assigned.is_left_out && !list[2].assigned.is_left_out);
	assert_true(!list[1].peers.is_excluded && list[2].peers.is_excluded);
}

static const char kept[] =
	"{\"skip\":2,\"time_scale\":0.25,\"iterations\":70,\"eval_every\":3,\"eval_batches\":9,"
	"\"checkpoint_every\":11,\"skip_bad_steps\":5,\"serialise\":true,\"overlap_sync\":true,"
	"\"no_swaps\":true,\"stack\":true,\"phase_moves\":true,\"by_visits\":true,"
	"\"keep_tasks\":7,\"silence_us\":900000,\"overdue_us\":3000000,\"gather_us\":4000000,"
	"\"budget_s\":0.75,\"ahead_s\":0.0,"
	"\"given_assignment\":true,\"least_agents\":3,"
	"\"algorithm\":\"best\","
	"\"skip_schedule\":\"2@0,0@40\"}";

/* The iteration under way restarts in the formats with which it began. The next iteration has the
 * formats that the operator wants. */
FIXTURE_TEST(formats_are_kept)
{
	struct taken_over *t = *state;
	const struct run *run = &t->c->run;

	assert_int_equal(run->cluster->formats.wire, FORMAT_FP32);
	assert_int_equal(run->cluster->formats.sum_wire, FORMAT_FP32);
	assert_int_equal(run->wanted.formats.wire, FORMAT_Q8);
	assert_int_equal(run->wanted.formats.sum_wire, FORMAT_Q4);
}

FIXTURE_TEST(the_command_line_overrides_recorded_settings)
{
	struct controller *c = ((struct taken_over *)*state)->c;
	struct options *o = &c->run.options;
	char *text;

	assert_int_equal(store_set(c->run.record.store, "options", kept, NULL), 0);
	o->iterations = 100; /* the command line sets this value */
	assert_int_equal(resume_options_again(&c->run, NULL), 0);
	assert_int_equal(o->skip, 2);
	assert_true(o->cluster.time_scale == 0.25);
	assert_int_equal(o->iterations, 100);
	assert_int_equal(o->eval_every, 3);
	assert_int_equal(o->eval_batches, 9);
	assert_int_equal(o->checkpoint_every, 11);
	assert_int_equal(o->skip_bad_steps, 5);
	assert_true(o->cluster.serialise && o->planning.overlap_sync && o->stack &&
		    o->training.by_visits && o->planning.phase_moves && o->planning.no_swaps &&
		    o->cluster.assignment_given);
	assert_int_equal(o->keep_tasks, 7);
	assert_int_equal(o->cluster.least_agents, 3);
	assert_int_equal(o->limits.silence_us, 900000);
	assert_int_equal(o->limits.overdue_us, 3000000);
	assert_int_equal(o->limits.gather_us, 4000000);
	assert_true(o->planning.budget_s == 0.75 && o->planning.ahead_s == 0);
	assert_string_equal(c->run.wanted.schedule_text, "2@0,0@40");
	o->iterations = 70;
	text = resume_options(&c->run);
	assert_string_equal(text, kept);
	free(text);
}

/* Stores the options `kept` with `was` replaced by `is`. */
static void store_options(struct controller *c, const char *was, const char *is)
{
	const char *at = strstr(kept, was);
	char text[1024];

	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - kept), kept, is, at + strlen(was));
	assert_int_equal(store_set(c->run.record.store, "options", text, NULL), 0);
}

FIXTURE_TEST(a_record_without_the_least_number_of_agents_is_resumed)
{
	struct controller *c = ((struct taken_over *)*state)->c;

	store_options(c, "\"least_agents\":3,", "");
	assert_int_equal(resume_options_again(&c->run, NULL), 0);
	assert_int_equal(c->run.options.skip, 2);
	assert_int_equal(c->run.options.cluster.least_agents, 0);
}

/* In each case one value in the record is impossible or missing. The controller refuses each of
 * these records. */
FIXTURE_TEST(damaged_settings_are_refused)
{
	static const char *const bad[][2] = {
		{ "\"skip\":2", "\"skip\":-1" },
		{ "\"skip\":2", "\"slip\":2" },
		{ "\"time_scale\":0.25", "\"time_scale\":2e6" },
		{ "\"iterations\":70", "\"iterations\":7.5" },
		{ "\"eval_batches\":9", "\"eval_batches\":0" },
		{ "\"serialise\":true", "\"serialise\":1" },
		{ "\"checkpoint_every\"", "\"checkpoint\"" },
		{ "\"skip_bad_steps\":5", "\"skip_bad_steps\":-1" },
		{ "\"silence_us\":900000", "\"silence_us\":-1" },
		{ "\"least_agents\":3", "\"least_agents\":1000000" },
		{ "\"ahead_s\":0.0", "\"ahead\":0.0" },
		{ "\"best\"", "\"worst\"" },
		{ "\"2@0,0@40\"", "2" },
		{ "}", "" },
	};
	struct controller *c = ((struct taken_over *)*state)->c;
	struct error err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		store_options(c, bad[i][0], bad[i][1]);
		c->run.options.skip = 5;
		assert_int_equal(resume_options_again(&c->run, &err), -EINVAL);
		assert_non_null(strstr(err.text, "options of the run are damaged"));
		assert_int_equal(c->run.options.skip, 5);
	}
}

FIXTURE_TEST(the_run_continues_once_the_needed_nodes_are_back)
{
	struct controller *c = ((struct taken_over *)*state)->c;

	assert_false(start_if_ready(c, 1));
	node_returns(c, 0, true);
	node_returns(c, 1, true);
	assert_false(start_if_ready(c, 2));
	node_returns(c, 3, false); /* n03 returns as a new process, without weights */
	assert_false(start_if_ready(c, 3));
	c->members.list[3].state = MEMBER_READY;
	assert_true(start_if_ready(c, 4)); /* the run starts although n02 has not been heard */
	assert_int_equal(c->run.phase, PHASE_PLANNING);
	for (int i = 0; i < N; i++)
		assert_int_equal(member_is_replica(&c->members.list[i]), i != 2);
	/* n02 was absent before the restart */
	assert_int_equal(c->members.list[2].state, MEMBER_ABSENT);
}

/* Resumes the run. Under the previous controller, n03 was a spare of the stage of n01 and n02. */
static void resume_with_spare(struct taken_over *t)
{
	memset(t->c->members.list[1].key.bytes, 7, sizeof(t->c->members.list[1].key.bytes));
	t->c->members.list[3].move.use = USE_SPARE;
	assert_int_equal(resume_save(&t->c->members), 0);
	end(t->c);
	begin(t);
	node_returns(t->c, 0, true);
	node_returns(t->c, 3, true);
}

FIXTURE_TEST(a_spare_stays_a_spare)
{
	struct taken_over *t = *state;
	bool excluded[N] = { false };

	resume_with_spare(t);
	node_returns(t->c, 1, true);
	assert_true(start_if_ready(t->c, 1));
	assert_true(spares_wait(&t->c->members, &t->c->members.list[3]));
	spares_exclude(&t->c->members, t->c->planning.spares, excluded);
	for (int i = 0; i < N; i++)
		assert_int_equal(excluded[i], i == 3);
}

FIXTURE_TEST(a_spare_replaces_a_node_that_does_not_return)
{
	struct taken_over *t = *state;
	const struct member *list;

	resume_with_spare(t);
	list = t->c->members.list;
	assert_true(start_if_ready(t->c, 10000000));
	assert_int_equal(list[1].state, MEMBER_DEAD);
	assert_true(member_is_replica(&list[3]));
	assert_int_equal(list[3].move.use, USE_ALWAYS);
}

/* n02 had just loaded its weights when the previous controller ended, and was not in the last sums.
 * The run needs only three agents, so n02 waits as a spare. */
FIXTURE_TEST(a_late_node_waits_as_a_spare_if_enough_others_work)
{
	struct controller *c = ((struct taken_over *)*state)->c;
	const struct member *late = &c->members.list[2];

	c->run.options.cluster.least_agents = 3;
	for (int i = 0; i < N; i++)
		node_returns(c, i, true);
	c->members.list[2].move.use = USE_UNDECIDED;
	assert_true(start_if_ready(c, 1));
	assert_true(spares_wait(&c->members, late));
}

FIXTURE_TEST(a_paused_run_stays_paused)
{
	struct taken_over *t = *state;

	assert_false(t->c->run.wanted.pause); /* the record has no entry for a pause */
	t->c->run.wanted.pause = true;
	assert_int_equal(resume_save(&t->c->members), 0);
	end(t->c);
	begin(t);
	assert_true(t->c->run.wanted.pause);
	for (int i = 0; i < N; i++)
		node_returns(t->c, i, true);
	assert_true(start_if_ready(t->c, 1));
	iteration_boundary(&t->c->iteration);
	assert_int_equal(t->c->run.phase, PHASE_PAUSED);
}

static struct planned *make_plan(const struct controller *c)
{
	struct planned *p = calloc(1, sizeof(*p));
	struct plan_request q;

	plan_request_init(&q);
	q.path_length = 2;
	q.evaluations = 20;
	assert_int_equal(plan_search(c->run.cluster, &q, &p->plan, NULL), 0);
	return p;
}

/* A restarted controller takes saved state as a sign that the stages are assigned. A pause before
 * the stages are assigned is therefore saved only together with the stages. */
FIXTURE_TEST(a_pause_before_the_first_stages_is_saved_with_them)
{
	struct controller *c = ((struct taken_over *)*state)->c;
	const struct msg_command pause = { .verb = COMMAND_PAUSE };
	struct outcome o;
	char *text;

	c->run.resumed = false;
	c->members.gathering = GATHER_COMING;
	assert_int_equal(store_set(c->run.record.store, "controller", NULL, NULL), 0);
	act_pause(&c->operators, "operator", &pause, &o);
	member_mark(&c->members, &c->members.list[2], true);
	assert_int_equal(store_get(c->run.record.store, "controller", &text, NULL), -ENOENT);
	c->members.gathering = GATHER_PLAN;
	c->planning.pending = make_plan(c);
	startup_turn(&c->iteration);
	assert_int_equal(c->members.gathering, GATHER_BUILD);
	assert_int_equal(store_get(c->run.record.store, "controller", &text, NULL), 0);
	assert_non_null(strstr(text, "\"paused\":true"));
	free(text);
	planned_free(c->planning.pending);
	command_fini(&c->operators);
}

/* Consoles see past iterations with the algorithm of the plan that was in force. */
FIXTURE_TEST(the_history_names_the_algorithm)
{
	const struct controller *c = ((struct taken_over *)*state)->c;

	assert_int_equal(c->run.record.curves.n_iterations, COMMITS);
	for (uint32_t i = 0; i < COMMITS; i++)
		assert_string_equal(c->run.record.curves.iterations[i].algorithm, "best");
}

/* Events have times of the agent's clock. The controller knows this clock only after the agent's
 * first heartbeat, so the run does not start before this heartbeat. */
FIXTURE_TEST(the_run_waits_for_each_clock)
{
	struct controller *c = ((struct taken_over *)*state)->c;

	node_returns(c, 0, true);
	node_returns(c, 1, true);
	node_returns(c, 3, true);
	c->members.list[1].beat.beat = 0;
	assert_false(start_if_ready(c, 1));
	c->members.list[1].beat.beat = 1;
	assert_true(start_if_ready(c, 2));
}

FIXTURE_TEST(the_wait_for_clocks_ends)
{
	struct controller *c = ((struct taken_over *)*state)->c;

	node_returns(c, 0, true);
	node_returns(c, 1, true);
	assert_false(start_if_ready(c, 1));
	assert_true(start_if_ready(c, 10000000));
	assert_true(member_is_replica(&c->members.list[1]));
	assert_int_equal(c->members.list[3].state, MEMBER_DEAD);
}

/* If no connected node holds a stage, the controller waits longer, because a node that holds it may
 * return. */
FIXTURE_TEST(the_run_waits_for_a_stage_that_no_node_holds)
{
	struct controller *c = ((struct taken_over *)*state)->c;

	node_returns(c, 1, true);
	node_returns(c, 3, true);
	assert_false(start_if_ready(c, 10000000));
	assert_false(member_is_replica(&c->members.list[1]));
	node_returns(c, 0, true);
	assert_true(start_if_ready(c, 10000001));
	assert_int_equal(c->run.phase, PHASE_PLANNING);
}

/* ---- all iterations are committed ---- */

static int take_over_the_end(void **state)
{
	take_over(state);
	((struct taken_over *)*state)->c->run.options.iterations = COMMITS;
	((struct taken_over *)*state)->c->run.options.checkpoint_every = 50;
	return 0;
}

#define AT_THE_END(name) TEST_WITH(name, take_over_the_end, free_resumed)

AT_THE_END(the_holders_write_the_checkpoint)
{
	struct controller *c = ((struct taken_over *)*state)->c;

	assert_false(start_if_ready(c, 1));
	for (int i = 0; i < N; i++)
		node_returns(c, i, true);
	assert_true(start_if_ready(c, 2));
	assert_int_equal(c->run.phase, PHASE_PLANNING);
}

/* n00, the only node of its stage, has returned as a new process without weights. After the time
 * limit for gathering, the run ends without the last checkpoint. */
AT_THE_END(a_stage_without_a_holder_cannot_be_written)
{
	struct controller *c = ((struct taken_over *)*state)->c;

	for (int i = 0; i < N; i++)
		node_returns(c, i, i > 0);
	assert_false(start_if_ready(c, c->run.options.limits.gather_us));
	assert_true(start_if_ready(c, c->run.options.limits.gather_us + 1));
	assert_int_equal(c->run.phase, PHASE_FINISHED);
	assert_int_equal(c->run.ending.exit_status, 0);
}

AT_THE_END(the_wait_for_writers_ends)
{
	struct controller *c = ((struct taken_over *)*state)->c;

	assert_false(start_if_ready(c, c->run.options.limits.gather_us));
	assert_true(start_if_ready(c, c->run.options.limits.gather_us + 1));
	assert_int_equal(c->run.phase, PHASE_FINISHED);
	assert_int_equal(c->run.ending.exit_status, 0);
}

/* The record says that the last checkpoint is complete, so the run ends before any node returns. */
AT_THE_END(a_written_checkpoint_ends_the_run)
{
	struct taken_over *t = *state;
	struct store_shard shard = { .iteration = COMMITS, .host = "here", .hash = 5, .bytes = 9 };

	for (shard.stage = 0; shard.stage < 2; shard.stage++)
		assert_int_equal(store_shard(t->c->run.record.store, &shard, NULL), 0);
	end(t->c);
	begin(t);
	t->c->run.options.iterations = COMMITS;
	t->c->run.options.checkpoint_every = 50;
	assert_true(start_if_ready(t->c, 1));
	assert_int_equal(t->c->run.phase, PHASE_FINISHED);
}

/* An earlier controller ordered the node to read a checkpoint, and died. The node reports the
 * result to the new controller. */
FIXTURE_TEST(an_order_of_the_previous_controller_does_not_count)
{
	struct controller *c = ((struct taken_over *)*state)->c;
	struct msg_ready read = { .stage = 1, .iteration = COMMITS - 1, .hash = 7 };

	node_returns(c, 0, true);
	node_returns(c, 1, true);
	node_returns(c, 3, false);
	members_ready(&c->members, &c->members.list[3], &read);
	assert_false(start_if_ready(c, 1));
	assert_true(start_if_ready(c, 10000000));
	assert_false(member_is_replica(&c->members.list[3]));
}

/* ---- which weights belong to the last commit ---- */

/* The node returns with the same process as before, and reports its weights. */
static struct member *says_it_holds(struct controller *c, int node, uint64_t committed,
				    uint64_t hash)
{
	struct member *m = &c->members.list[node];

	node_returns(c, node, false);
	m->hello = (struct msg_hello){ .run = c->run.id,
				       .stage = (uint8_t)member_stage(&c->run, m),
				       .committed = committed,
				       .hash = hash,
				       .keeps = MSG_NO_STAGE };
	resume_member(&c->members, m);
	return m;
}

static void add_hash(struct controller *c, uint16_t node, uint64_t hash)
{
	struct store_hash h = { COMMITS, hash, node,
				(uint8_t)member_stage(&c->run, &c->members.list[node]) };

	assert_int_equal(store_hashes(c->run.record.store, &h, 1, NULL), 0);
}

/* n03 reports wrong weights: the record has only the hash that n01 reported. The controller
 * therefore waits for n01 to return with the right weights. */
FIXTURE_TEST(nodes_with_recorded_hashes_are_awaited)
{
	struct controller *c = ((struct taken_over *)*state)->c;

	add_hash(c, 1, 7);
	says_it_holds(c, 0, COMMITS, 5);
	says_it_holds(c, 3, COMMITS, 6);
	assert_false(start_if_ready(c, 10000000));
	says_it_holds(c, 1, COMMITS, 7);
	assert_true(start_if_ready(c, 10000001));
	assert_true(member_is_replica(&c->members.list[1]));
	assert_true(c->members.list[3].weights.differ);
}

FIXTURE_TEST(the_wait_for_recorded_hashes_ends)
{
	struct controller *c = ((struct taken_over *)*state)->c;

	add_hash(c, 1, 7);
	says_it_holds(c, 0, COMMITS, 5);
	says_it_holds(c, 3, COMMITS, 6);
	assert_false(start_if_ready(c, c->run.options.limits.gather_us - 1));
	assert_true(start_if_ready(c, c->run.options.limits.gather_us));
	assert_true(member_is_replica(&c->members.list[3]));
}

/* Records that stage 1 was restored with other weights after the last commit. If `other` is true,
 * node 1 also returns, with the weights from before the restore. */
static void put_back_after(void **state, bool other)
{
	struct store_restore made = { .iteration = COMMITS,
				      .last = COMMITS,
				      .stage = 1,
				      .hash = 6,
				      .n_from = 1,
				      .weight = { 1 } };
	struct controller *c = ((struct taken_over *)*state)->c;

	add_hash(c, 1, 7);
	assert_int_equal(store_restore(c->run.record.store, &made, 1, NULL), 0);
	says_it_holds(c, 0, COMMITS, 5);
	says_it_holds(c, 3, COMMITS, 6);
	if (other)
		/* node 1 was suspended when the stage was restored */
		says_it_holds(c, 1, COMMITS, 7);
	assert_true(start_if_ready(c, 10000000));
	assert_true(member_is_replica(&c->members.list[3]));
	assert_int_equal(member_is_replica(&c->members.list[1]), 0);
}

FIXTURE_TEST(restored_weights_have_recorded_hashes_too)
{
	put_back_after(state, false);
}

FIXTURE_TEST(hashes_from_before_a_restore_are_ignored)
{
	put_back_after(state, true);
}

/* The run waits for lost stages. A node that joins late may have the only weights of its stage, or
 * the only copy of another stage, so the controller remembers both. */
FIXTURE_TEST(weights_of_a_late_node_are_used)
{
	struct controller *c = ((struct taken_over *)*state)->c;
	struct member *m;

	c->run.phase = PHASE_STALLED;
	m = says_it_holds(c, 1, COMMITS, 7);
	assert_false(member_is_ready(m));
	assert_int_equal(m->weights.stage, 1);
	m->hello.keeps = 0;
	m->hello.kept = COMMITS;
	resume_member(&c->members, m);
	assert_true(copy_needed(&c->members, m));
}

/* The previous controller went back to a checkpoint and died before it announced this. The run
 * then repeats the iterations after the checkpoint. The repeated commits get the same numbers as
 * the undone ones, but have other weights. */
FIXTURE_TEST(weights_after_the_last_commit_are_not_used)
{
	struct controller *c = ((struct taken_over *)*state)->c;
	struct member *m = says_it_holds(c, 1, COMMITS + 1, 7);

	m->hello.keeps = 0;
	m->hello.kept = COMMITS + 1;
	resume_member(&c->members, m);
	assert_int_equal(m->copy.stage, -1);
	m->beat.stage = 1;
	m->beat.committed = c->run.committed = COMMITS + 1;
	assert_false(member_holds(&c->run, m, 1));
}

FIXTURE_TEST(a_copy_of_the_last_two_commits_counts)
{
	struct controller *c = ((struct taken_over *)*state)->c;

	for (uint64_t missed = 0; missed < 3; missed++) {
		struct member *m = says_it_holds(c, 1, COMMITS, 7);

		m->hello.keeps = 0;
		m->hello.kept = COMMITS - missed;
		m->copy.stage = -1;
		m->copy.state = COPY_FETCHING;
		resume_member(&c->members, m);
		assert_int_equal(copy_whole(m, 0), missed < 2);
		assert_int_equal(copy_usable(&c->run, m, 0), missed == 0);
	}
}

/* A copy's hash is needed to check the nodes that fetch from the copy, and to compare the copy with
 * the replicas of its stage. */
FIXTURE_TEST(a_copy_is_fetched_with_its_hash)
{
	struct controller *c = ((struct taken_over *)*state)->c;
	struct member *m = says_it_holds(c, 1, COMMITS, 7);

	m->hello.keeps = 0;
	m->hello.kept = COMMITS;
	m->hello.kept_hash = 99;
	resume_member(&c->members, m);
	assert_int_equal(copies_hash(&c->members, 0, COMMITS), 99);
}

FIXTURE_TEST(a_marked_node_stays_excluded)
{
	struct controller *c = ((struct taken_over *)*state)->c;

	c->members.list[3].is_marked = true;
	node_returns(c, 0, true);
	node_returns(c, 1, true);
	node_returns(c, 3, true);
	assert_true(start_if_ready(c, 1));
	assert_false(member_is_replica(&c->members.list[3]));
	assert_int_equal(c->members.list[3].state, MEMBER_FAILED);
}

static int take_plan(void *context, const struct store_plan *p)
{
	struct plan **out = context;

	return *out ? 0 : plan_parse(p->plan, strlen(p->plan), out, NULL);
}

/* If the controller cannot write a plan's file, it only warns, because the record contains the
 * plans. A restarted controller does the same. */
FIXTURE_TEST(a_plans_file_is_not_needed)
{
	struct taken_over *t = *state;
	struct planned p = { .epoch = 77, .iteration = COMMITS + 1, .reason = "a test" };
	char command[256];

	snprintf(command, sizeof(command), "rm -rf '%s/plans'; touch '%s/plans'", t->folder,
		 t->folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(store_each_plan(t->c->run.record.store, 0, take_plan, &p.plan, NULL), 0);
	assert_non_null(p.plan);
	assert_int_equal(record_plan(&t->c->run, &p, NULL), 0);
	plan_free(p.plan);
	assert_int_equal(t->c->run.phase, PHASE_GATHERING);
	assert_non_null(strstr(t->c->run.journal.notes[t->c->run.journal.n_notes - 1].text,
			       "plans/0077.json"));
	end(t->c);
	begin(t);
	assert_int_equal(t->c->run.epoch, 77);
}

static bool says(const struct controller *c, const char *words)
{
	for (uint32_t i = 0; i < c->run.journal.n_notes; i++)
		if (strstr(c->run.journal.notes[i].text, words))
			return true;
	return false;
}

/* A record without its newest rows still looks like a run. Only files next to the record, which
 * the controller wrote after the rows, show that rows are missing. */
FIXTURE_TEST(a_record_that_lost_rows_is_reported)
{
	static const char *const commands[] = {
		"true",
		"mkdir -p checkpoints/00000099", /* an incomplete checkpoint proves nothing */
		"touch checkpoints/00000099/manifest.json",
		"rm -r checkpoints",
		"touch plans/9999.json",
	};
	static const char *const expected[] = {
		NULL, NULL, "a checkpoint of iteration 99. Was run.db-wal", NULL,
		"plan 9999. Was run.db-wal"
	};
	struct taken_over *t = *state;
	char command[256];

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		snprintf(command, sizeof(command), "cd '%s' && %s", t->folder, commands[i]);
		assert_int_equal(system(command), 0);
		end(t->c);
		begin(t);
		assert_int_equal(says(t->c, "has lost its newest rows"), expected[i] != NULL);
		assert_true(!expected[i] || says(t->c, expected[i]));
	}
}

/* A controller may die after a commit and before it carries out the acts of the next iteration. The
 * next controller carries out these acts, except those that are already in the record. A command
 * of an operator is no such act, even if the operator's key is named "script". */
FIXTURE_TEST(acts_that_nobody_carried_out_are_still_due)
{
	struct taken_over *t = *state;
	struct store_command given = { .id = 1, .iteration = COMMITS + 1, .who = "script",
				       .verb = "skip", .text = "", .reply = "" };

	for (int i = 0; i < 3; i++) {
		const struct scripted_act *acts;

		t->n_acts = 3;
		end(t->c);
		begin(t);
		acts = t->c->run.options.acts;
		assert_true(acts[0].done);
		assert_int_equal(acts[1].done, i == 2);
		assert_false(acts[2].done);
		if (i == 1)
			given.who = STORE_SCRIPT;
		assert_int_equal(store_command(t->c->run.record.store, &given, NULL), 0);
	}
}

/* The journal names every option that a resumed run may change. */
FIXTURE_TEST(the_journal_has_the_changed_options)
{
	const struct journal *j = &((struct taken_over *)*state)->c->run.journal;
	const char *changed = NULL;

	for (uint32_t i = 0; i < j->n_notes; i++)
		if (strncmp(j->notes[i].text, "options changed: ", 17) == 0)
			changed = j->notes[i].text;
	assert_non_null(changed);
	assert_non_null(strstr(changed, "iterations 100, "));
	assert_non_null(strstr(changed, ", at most 0 bad steps skipped; silence 0.45 s, "));
	assert_non_null(strstr(changed, "plans ahead 1 s"));
}

/* Hashes made with different hash functions cannot be compared. The error names both functions. */
FIXTURE_TEST(hashes_of_another_function_are_refused)
{
	struct taken_over *t = *state;
	struct error err = { "" };

	assert_int_equal(store_set(t->c->run.record.store, "hash", "other", NULL), 0);
	store_close(t->c->run.record.store);
	assert_int_equal(store_resume(&t->c->run.record.store, t->folder, NULL), 0);
	assert_int_equal(resume_begin(&t->c->backups, &err), -EPROTONOSUPPORT);
	assert_non_null(strstr(err.text, "hashes are other"));
}

/* However often a run is resumed, each controller's numbers are above those of all earlier
 * controllers, and within the range that agents accept. */
TEST(every_controller_has_its_own_attempts)
{
	uint32_t before = 0, first;

	for (uint64_t n = 1; n <= 70000; n++) {
		assert_int_equal(resume_numbers(n, &first), 0);
		assert_true(first >= before + 512 && first <= 1u << 30);
		before = first;
	}
	assert_int_equal(resume_numbers(1, &first), 0);
	assert_int_equal(first, 1 << 16);
	assert_int_equal(resume_numbers(UINT64_C(1) << 48, &first), -ERANGE);
}

/* Two controllers resume the run, one after the other. The second has higher attempt numbers than
 * the first, so agents drop late messages from the first. */
FIXTURE_TEST(a_later_controller_has_higher_attempts)
{
	struct taken_over *t = *state;
	uint32_t first = t->c->run.first_attempt;

	end(t->c);
	begin(t);
	assert_true(first >= 1 << 16);
	assert_true(t->c->run.first_attempt > first);
}
