/* Tests the comparison of recipes for a given time. Each recipe gets as many iterations as fit and
 * no more, in the phases of its skip schedule. At the measured lengths of a run, the loss is the
 * measured one; outside the range of these lengths there is no loss. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/skip_schedule.h"
#include "base/tests/test.h"
#include "schedule/recipes/hours.h"
#include "schedule/tests/fixture.h"

static void request(struct hours_request *q, double seconds)
{
	*q = (struct hours_request){ .seconds = seconds, .state_ratio = 3 };
	plan_request_init(&q->search);
	q->search.evaluations = 300;
	q->search.overlap_sync = true;
	q->search.free_assignment = true;
}

static void compare(struct cluster *c, const struct hours_request *q, struct hours_row *rows)
{
	struct error err = { "" };

	if (hours_compare(c, q, rows, &err) != 0)
		fail_msg("%s", err.text);
}

/* Returns the seconds of a run without the delay of its fetches. */
static double seconds_of(const struct hours_row *r, uint64_t iterations)
{
	uint64_t first = r->grows_at > 0 ? r->grows_at - 1 : 0;

	if (first > iterations)
		first = iterations;
	return (double)first * r->first_s + (double)(iterations - first) * r->then_s;
}

TEST(fills_the_time)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	const double seconds = 500000; /* so long that no fetch outlasts the phase before it */
	struct hours_row rows[RECIPES];
	struct hours_request q;

	request(&q, seconds);
	compare(c, &q, rows);
	for (int i = 0; i < RECIPES; i++) {
		const struct hours_row *r = &rows[i];

		assert_true(seconds_of(r, r->iterations) <= seconds);
		assert_true(seconds_of(r, r->iterations + 1) + r->then_s > seconds);
		assert_true(isnan(r->change));
	}
	/* The longer the first phase, whose iterations are short, the more iterations fit. */
	assert_true(rows[1].first_s < rows[1].then_s);
	for (int i = 1; i <= 2; i++)
		assert_true(rows[i].iterations > rows[i - 1].iterations);
	cluster_free(c);
}

TEST(grows_as_the_schedule_says)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	struct hours_row rows[RECIPES];
	struct hours_request q;

	request(&q, 123456);
	compare(c, &q, rows);
	for (int i = 0; i < RECIPES; i++) {
		struct skip_schedule s;
		char options[HOURS_OPTIONS], text[64] = "";
		struct error err = { "" };

		hours_options(&rows[i], c, options);
		if (sscanf(options, "--skip-schedule %63s", text) != 1)
			continue;
		assert_int_equal(skip_schedule_parse(&s, text, rows[i].iterations, 4, &err), 0);
		assert_int_equal(s.n, 2);
		assert_int_equal(s.phases[1].from, rows[i].grows_at);
	}
	cluster_free(c);
}

TEST(names_stages_that_are_always_visited)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	struct hours_row row = { .recipe = &recipes[1] };
	char options[HOURS_OPTIONS];

	c->always = 1 | 1 << 5;
	hours_options(&row, c, options);
	assert_string_equal(options, "--recipe speed");
	c->always |= 1 << 3;
	hours_options(&row, c, options);
	assert_string_equal(options, "--recipe speed --always 0,3,5");
	row.recipe = &recipes[2];
	hours_options(&row, c, options);
	assert_string_equal(options, "--skip-schedule 3@0,0@50% --stack --always 0,3,5 --no-swaps "
				     "--grad-norm visits");
	cluster_free(c);
}

/* The user can end the program while it compares recipes. Without cancelling, the program would
 * first finish its searches. */
TEST(ends_when_it_is_cancelled)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	atomic_bool cancel = true;
	struct hours_row rows[RECIPES];
	struct error err = { "" };
	struct hours_request q;

	request(&q, 1000);
	q.search.evaluations = (int64_t)1 << 40; /* takes years */
	q.search.cancel = &cancel;
	(void)hours_compare(c, &q, rows, &err);
	cluster_free(c);
}

TEST(finds_measured_losses)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	struct hours_row rows[RECIPES];
	struct hours_request q;
	struct model_shape shape = { .n_layers = 1, .layer_weights = 1, .batch = 1 };
	double low, high;

	recipe_lengths(&recipes[0], &low, &high);
	low *= 1 + 1e-9;
	request(&q, 500000);
	compare(c, &q, rows);
	/* The model has one weight. Each iteration gets so many tokens that the whole run of the
	 * recipe `full` has as many tokens as the shortest measured run of this recipe. */
	shape.tokens = low / (double)rows[0].iterations /
		       (c->stages[0] * c->microbatches_per_data_node);
	q.shape = &shape;
	compare(c, &q, rows);
	assert_true(rows[0].change == 0);
	assert_true(rows[1].change < 0);
	assert_ptr_equal(hours_best(rows)->recipe, &recipes[1]);
	/* With half of the tokens, the run is shorter than all measured runs: no loss is known. */
	shape.tokens /= 2;
	compare(c, &q, rows);
	assert_true(isnan(rows[0].change) && isnan(rows[1].change));
	assert_null(hours_best(rows));
	cluster_free(c);
}

TEST(interpolates_between_lengths)
{
	for (int i = 0; i < RECIPES; i++) {
		const struct recipe *r = &recipes[i];
		double low, high, middle;

		recipe_lengths(r, &low, &high);
		assert_float_equal(recipe_loss(r, low), r->measured[0].loss, 1e-9);
		middle = recipe_loss(r, sqrt(low * high));
		assert_true(middle < recipe_loss(r, low) && middle > recipe_loss(r, high));
		assert_true(isnan(recipe_loss(r, low * 0.99)));
		assert_true(isnan(recipe_loss(r, high * 1.01)));
	}
	/* On a logarithmic scale, 1,414 iterations are halfway between 1,000 and 2,000. */
	assert_float_equal(recipe_loss(&recipes[0], sqrt(2) * 1000 * 7680.0 / 587328),
			   (recipes[0].measured[0].loss + recipes[0].measured[1].loss) / 2, 1e-3);
}

TEST(refuses_what_cannot_skip)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	struct hours_row rows[RECIPES];
	struct error err = { "" };
	struct hours_request q;

	request(&q, 1000);
	c->always = 63;
	assert_true(hours_compare(c, &q, rows, &err) < 0);
	assert_non_null(strstr(err.text, "may be skipped"));
	cluster_free(c);
}
