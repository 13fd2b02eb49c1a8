/* recut_test.c - orders to change the stages. Tests how nodes are assigned to the new stages, the
 * order in the record, the files that were cut for an earlier order, and the preview of an
 * order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "controller/joining/recut.h"
#include "controller/joining/recut_files.h"
#include "controller/joining/recut_nodes.h"
#include "controller/joining/recut_order.h"
#include "controller/joining/recut_record.h"
#include "controller/members/saved_state.h"
#include "controller/operator/cut_preview.h"
#include "controller/run/outcome.h"
#include "controller/run/settings.h"
#include "controller/tests/under_way.h"
#include "model/cut.h"
#include "model/files/run_parts.h"

enum { MOST_NODES = 12, TRIES = 3000 };

struct dealt {
	struct model_config model;
	int was[MOST_NODES], stage_of[MOST_NODES], sizes[MSG_STAGES], places[MSG_STAGES];
	bool here[MOST_NODES];
	struct recut_nodes nodes;
	struct recut_order order;
	uint32_t n_here;
};

static void cut(struct model_config *model, const char *layers)
{
	struct stage_layers cut;
	struct error err = { "" };

	assert_int_equal(stage_layers_parse(&cut, "--cut", layers, &err), 0);
	assert_int_equal(model_preset("tiny", model, NULL, &err), 0);
	if (model_cut(model, &cut, "--cut", &err) != 0)
		fail_msg("%s", err.text);
}

static void count_sizes(struct dealt *d)
{
	memset(d->sizes, 0, sizeof(d->sizes));
	memset(d->places, 0, sizeof(d->places));
	for (uint32_t i = 0; i < d->nodes.n; i++) {
		if (d->stage_of[i] < 0)
			continue;
		d->places[d->stage_of[i]]++;
		d->sizes[d->stage_of[i]] += d->here[i];
	}
}

/* Checks the properties that every assignment must have. */
static void check_dealt(struct dealt *d)
{
	count_sizes(d);
	for (uint32_t s = 0; s < d->model.n_stages; s++) {
		assert_true(d->sizes[s] > 0);
		if (d->order.n_nodes > 0)
			assert_int_equal(d->places[s], d->order.nodes[s]);
	}
	assert_int_equal(d->nodes.n_microbatches % d->places[0], 0);
	for (uint32_t i = 0; i < d->nodes.n; i++) {
		assert_true(d->stage_of[i] < (int)d->model.n_stages);
		assert_true(d->stage_of[i] >= 0 || !d->here[i]);
		/* connected nodes keep their order along the stages, and nodes without a stage come
		 * last */
		for (uint32_t k = 0; k < d->nodes.n; k++)
			if (d->here[i] && d->here[k] && d->was[i] >= 0 &&
			    (d->was[k] < 0 || d->was[i] < d->was[k]))
				assert_true(d->stage_of[i] <= d->stage_of[k]);
	}
}

static void draw(struct dealt *d, struct rng *rng)
{
	static const char *const cuts[] = { "12", "0,12", "5,7", "0,7,5", "3,3,3,3", "1,1,10" };
	int left;

	*d = (struct dealt){ .n_here = 0 };
	cut(&d->model, cuts[rng_below(rng, 6)]);
	d->nodes = (struct recut_nodes){ .model = &d->model,
					 .n = 1 + (uint32_t)rng_below(rng, MOST_NODES),
					 .was = d->was,
					 .here = d->here,
					 .n_microbatches = 1 + (int)rng_below(rng, 24) };
	for (uint32_t i = 0; i < d->nodes.n; i++) {
		d->was[i] = (int)rng_below(rng, 6) - 1; /* -1: the node waits for a stage */
		d->here[i] = rng_below(rng, 4) > 0;
		d->n_here += d->here[i];
	}
	left = (int)d->nodes.n - (int)d->model.n_stages;
	if (left < 0 || rng_below(rng, 2) == 0)
		return;
	d->order.n_nodes = d->model.n_stages;
	for (uint32_t s = 0; s < d->model.n_stages; s++)
		d->order.nodes[s] = 1;
	for (; left > 0; left--)
		d->order.nodes[rng_below(rng, d->model.n_stages)]++;
}

TEST(nodes_are_dealt_to_all_stages)
{
	struct rng rng;
	int n_dealt = 0;

	rng_init_stream(&rng, 5, 2);
	for (int i = 0; i < TRIES; i++) {
		struct dealt d;
		struct error err = { "" };
		bool fits;
		int rc;

		draw(&d, &rng);
		fits = d.n_here >= d.model.n_stages &&
		       (d.order.n_nodes == 0 || d.nodes.n_microbatches % d.order.nodes[0] == 0) &&
		       (d.model.n_stages > 1 || d.nodes.n_microbatches % (int)d.nodes.n == 0);
		rc = recut_deal(&d.nodes, &d.order, d.stage_of, &err);
		assert_int_equal(rc, fits ? 0 : -EINVAL);
		assert_true(rc == 0 || err.text[0]);
		if (rc == 0)
			check_dealt(&d);
		n_dealt += rc == 0;
	}
	assert_true(n_dealt > TRIES / 4);
}

TEST(stages_get_nodes_in_proportion_to_their_work)
{
	struct dealt d = { .nodes.n = 8, .nodes.n_microbatches = 12 };
	struct error err = { "" };

	cut(&d.model, "3,9");
	d.nodes.model = &d.model;
	d.nodes.was = d.was;
	d.nodes.here = d.here;
	memset(d.here, true, sizeof(d.here));
	assert_int_equal(recut_deal(&d.nodes, &d.order, d.stage_of, &err), 0);
	count_sizes(&d);
	assert_int_equal(d.sizes[0], 2);
	assert_int_equal(d.sizes[1], 6);
}

TEST(an_order_is_read_as_it_was_written)
{
	struct recut_order o = { .layers = { 3, { 0, 7, 5 } },
				 .nodes = { 1, 2, 3 },
				 .n_nodes = 3,
				 .stage_of = { 0, 2, RECUT_AWAY, RECUT_LEFT_OUT },
				 .slots = { 1, 8, 3, 1 },
				 .n_places = 4,
				 .here = { 1, 0, 1 },
				 .n_here = 3 };
	struct recut_order *read = calloc(1, sizeof(*read));
	struct error err = { "" };
	char *text = recut_order_print(&o);

	assert_non_null(text);
	assert_int_equal(recut_order_parse(read, text, &err), 0);
	assert_memory_equal(read, &o, sizeof(o));
	free(text);
	free(read);
}

TEST(a_damaged_order_is_refused)
{
	static const char *const wrong[] = {
		"", "[]", "{}",
		"{\"layers\":[],\"nodes\":[],\"stage_of\":[],\"slots\":[],\"here\":[]}",
		"{\"layers\":[-1],\"nodes\":[],\"stage_of\":[],\"slots\":[],\"here\":[]}",
		"{\"layers\":[6,6],\"nodes\":[0,4],\"stage_of\":[],\"slots\":[],\"here\":[]}",
		"{\"layers\":[6,6],\"nodes\":[],\"stage_of\":[0,1],\"slots\":[1],\"here\":[]}",
		"{\"layers\":[6,6],\"nodes\":[],\"stage_of\":[0,64],\"slots\":[1,1],\"here\":[]}",
		"{\"layers\":[6,6],\"nodes\":[],\"stage_of\":[],\"slots\":[],\"here\":[2]}",
		"{\"layers\":[6,\"6\"],\"nodes\":[],\"stage_of\":[],\"slots\":[],\"here\":[]}",
	};
	struct recut_order *read = calloc(1, sizeof(*read));
	struct error err;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(recut_order_parse(read, wrong[i], &err), -EINVAL);
	free(read);
}

/* Simulates a node that is still writing its checkpoint of the first iteration. */
static void a_node_saves(struct controller *c)
{
	c->run.options.limits.overdue_us = SECOND;
	c->backups.saving.iteration = c->members.list[0].checkpoint.saving = 1;
	c->backups.saving.asked_us = c->run.now_us;
}

/* Commits the first iteration. The record then has all that a change of stages reads. */
static void commit(struct controller *c)
{
	char *options = resume_options(&c->run);

	under_way_all_is_done(c);
	under_way_all_tell_their_sums(c);
	assert_int_equal(resume_save(&c->members), 0);
	assert_int_equal(store_set(c->run.record.store, "options", options, NULL), 0);
	free(options);
}

static void make_part(const struct controller *c, char path[128])
{
	snprintf(path, 128, "%s/recut", c->run.options.run_dir);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/1");
	assert_int_equal(mkdir(path, 0700), 0);
}

/* Starts the thread that cuts the model, and waits for its end. The thread fails, because the run
 * has no checkpoint. */
static void start_cutting(struct controller *c)
{
	struct recut_record r = { .after = c->run.committed, .n_parts = 2 };
	struct recut *recut = &c->run.wanted.recut;
	struct error err;

	cut(&r.model, "5,7");
	assert_int_equal(recut_cutting_start(&c->run, &r, &recut->cutting, &err), 0);
	while (!recut_cutting_is_done(recut->cutting))
		usleep(1000);
}

static void order(struct controller *c, const char *layers)
{
	struct recut_order *o = calloc(1, sizeof(*o));
	struct outcome outcome;
	struct error err;

	assert_int_equal(stage_layers_parse(&o->layers, "cut", layers, &err), 0);
	recut_command(&c->run, o, &outcome);
	if (outcome.status != 0)
		fail_msg("%s", outcome.text);
	free(o);
}

/* A change of stages begins a new part of the run. The record must keep the cluster and the stages
 * of the former part, because a replay of the former part needs them. */
TEST_WITH(the_record_keeps_the_former_stages, under_way_begin, under_way_end)
{
	struct controller *c = *state;
	struct recut_order *o = calloc(1, sizeof(*o));
	struct recut_record r;
	struct run_parts parts;
	struct error err = { "" };
	char *saved;

	commit(c);
	assert_int_equal(stage_layers_parse(&o->layers, "cut", "5,7", &err), 0);
	assert_int_equal(recut_record_make(&r, c->run.record.store, o, "cut", &err), 0);
	assert_int_equal(run_parts_parse(&parts, r.parts_text, &err), 0);
	assert_int_equal(store_get(c->run.record.store, "controller", &saved, &err), 0);
	assert_int_equal(parts.n, 2);
	assert_string_equal(parts.list[0].state, saved);
	assert_string_equal(parts.list[0].cluster, store_run_of(c->run.record.store)->cluster);
	free(saved);
	run_parts_free(&parts);
	recut_record_free(&r);
	free(o);
}

/* Files that a thread has cut are removed once the order has changed. The result of that thread,
 * here a failure, does not concern the new order. */
TEST_WITH(files_of_an_earlier_order_are_dropped, under_way_begin, under_way_end)
{
	struct controller *c = *state;
	struct recut *recut = &c->run.wanted.recut;
	char path[128];

	commit(c);
	make_part(c, path);
	order(c, "5,7");
	start_cutting(c);
	order(c, "7,5");
	a_node_saves(c);
	assert_true(recut_turn(&c->backups));
	assert_true(recut->is_ordered);
	assert_null(recut->cutting);
	assert_int_equal(access(path, F_OK), -1);
	start_cutting(c);
	order(c, "6,6");
	assert_false(recut_turn(&c->backups));
	assert_null(recut->cutting);
	assert_false(recut->is_ordered || recut->is_stale);
	/* the order has not changed since its thread began, so the thread's failure ends the
	 * order */
	order(c, "5,7");
	start_cutting(c);
	assert_false(recut_turn(&c->backups));
	assert_false(recut->is_ordered);
}

/* The operator has ordered other stages. Then the run is resumed with a command line that gives
 * the present stages. The new command line takes the order back. */
TEST_WITH(a_resume_with_the_present_stages_takes_an_order_back, under_way_begin, under_way_end)
{
	struct controller *c = *state;
	struct options *o = &c->run.options;
	struct error err;
	char *text;

	commit(c);
	order(c, "5,7");
	assert_int_equal(store_get(c->run.record.store, RECUT_ORDER_KEY, &text, NULL), 0);
	free(text);
	assert_int_equal(stage_layers_parse(&o->training.cut, "--cut", "6,6", &err), 0);
	assert_int_equal(recut_begin(&c->run, &err), 0);
	assert_int_equal(store_get(c->run.record.store, RECUT_ORDER_KEY, &text, NULL), -ENOENT);
	assert_false(c->run.wanted.recut.is_ordered);
}

/* In a pause the order waits, because the operator may still change it or take it back. */
TEST_WITH(a_pause_outlasts_an_order, under_way_begin, under_way_end)
{
	struct controller *c = *state;

	c->run.committed = 1;
	c->run.phase = PHASE_PAUSED;
	c->run.wanted.recut.is_ordered = c->run.wanted.pause = c->run.wanted.step = true;
	a_node_saves(c);
	assert_false(recut_turn(&c->backups));
	c->run.wanted.step = false;
	assert_false(recut_turn(&c->backups));
	c->run.wanted.pause = false;
	/* the next iteration waits until the checkpoint is written */
	assert_true(recut_turn(&c->backups));
}

static struct console *attach(struct controller *c)
{
	struct stream *stream = &c->run.stream;

	stream->consoles = calloc(1, sizeof(*stream->consoles));
	assert_non_null(stream->consoles);
	stream->n_consoles = 1;
	stream->consoles[0].peer = 99;
	return &stream->consoles[0];
}

/* Sets the model and the nodes' devices, which a comparison of stages reads. */
static void describe(struct controller *c)
{
	struct training *t = &c->run.training;

	cut(&t->model, "6,6");
	assert_int_equal(model_preset("tiny", &(struct model_config){ 0 }, &t->hyper, NULL), 0);
	c->run.wanted.formats = (struct tensor_formats){ FORMAT_FP32, FORMAT_FP32 };
	for (int i = 0; i < NODES; i++)
		strcpy(c->members.list[i].hello.device, "cpu");
}

static void ask_preview(struct controller *c, uint64_t id, const char *layers)
{
	struct msg_command m = { .id = id, .verb = COMMAND_CUT };

	snprintf(m.text, sizeof(m.text), "preview %s", layers);
	cut_preview_ask(&c->operators, &c->run.stream.consoles[0], &m);
}

/* Waits for the answer. The sequence number counts the messages to the console. */
static void wait_for_answer(struct controller *c, uint64_t sequence)
{
	for (int i = 0; i < 30000 && c->run.stream.consoles[0].sequence < sequence; i++) {
		cut_preview_turn(&c->operators);
		usleep(1000);
	}
	assert_int_equal(c->run.stream.consoles[0].sequence, sequence);
}

static int order_cut(struct controller *c, const char *layers)
{
	struct msg_command m = { .verb = COMMAND_CUT };
	struct outcome o = { 0, "" };

	snprintf(m.text, sizeof(m.text), "%s", layers);
	act_cut(&c->operators, "test", &m, &o);
	return o.status;
}

/* An operator has seen a preview of the proposed stages and orders them. If the proposal has
 * changed since the preview, the controller refuses the order. */
TEST_WITH(a_proposal_that_changed_after_its_preview_is_refused, under_way_begin, under_way_end)
{
	struct controller *c = *state;
	struct stage_preview *p = &c->operators.stages;
	struct outcome o = { 0, "" };

	attach(c);
	commit(c);
	describe(c);
	p->proposal = calloc(1, sizeof(*p->proposal));
	assert_true(cut_order_read(p, &c->members, "7,5", p->proposal, &o));
	p->n_proposals = 1;
	ask_preview(c, 1, "");
	wait_for_answer(c, 1);
	/* another search for stages has ended, and may have changed the proposal */
	p->n_proposals = 2;
	assert_int_equal(order_cut(c, ""), -ESTALE);
	assert_int_equal(order_cut(c, "7,5"), 0);
	ask_preview(c, 2, "");
	wait_for_answer(c, 2);
	assert_int_equal(order_cut(c, ""), 0);
}

/* While the first preview is simulated, a second and a third are requested. The controller
 * refuses the second at once, and the third waits for the first. */
TEST_WITH(the_newest_preview_waits_for_the_first, under_way_begin, under_way_end)
{
	struct controller *c = *state;
	const struct cut_preview *p = &c->operators.cut;
	const struct console *console = attach(c);

	commit(c);
	describe(c);
	ask_preview(c, 1, "5,7");
	assert_non_null(p->comparison);
	ask_preview(c, 2, "7,5");
	assert_int_equal(console->sequence, 0);
	ask_preview(c, 3, "4,8");
	assert_int_equal(console->sequence, 1);
	assert_int_equal(p->command, 1);
	wait_for_answer(c, 2);
	assert_non_null(p->comparison);
	assert_int_equal(p->command, 3);
	assert_non_null(strstr(p->text, "-> 4,8;"));
	wait_for_answer(c, 3);
	assert_null(p->comparison);
	assert_false(p->has_next);
}
