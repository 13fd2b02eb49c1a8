/* recut_test.c - orders of other stages: how nodes are assigned to these stages, and the order in
 * the record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "controller/joining/recut.h"
#include "controller/joining/recut_nodes.h"
#include "controller/joining/recut_order.h"
#include "controller/tests/under_way.h"
#include "model/cut.h"

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

/* The controller that begins again does not know of a pause. */
TEST_WITH(a_pause_outlasts_an_order, under_way_begin, under_way_end)
{
	struct controller *c = *state;

	c->run.committed = 1;
	c->run.phase = PHASE_PAUSED;
	c->run.wanted.recut.is_ordered = c->run.wanted.pause = c->run.wanted.step = true;
	c->run.options.limits.overdue_us = SECOND;
	c->backups.saving.iteration = c->members.list[0].checkpoint.saving = 1;
	c->backups.saving.asked_us = c->run.now_us;
	assert_false(recut_turn(&c->backups));
	c->run.wanted.step = false;
	assert_false(recut_turn(&c->backups));
	c->run.wanted.pause = false;
	/* the next iteration waits until the checkpoint is written */
	assert_true(recut_turn(&c->backups));
}
