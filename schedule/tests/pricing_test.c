/* Tests pricing.h: compares the highest total price of a data node's trips with the highest price
 * that a plain enumeration of all orders of tasks finds. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "schedule/bound/pricing.h"

enum { MB = 4, ROUTES = 3 };

/* The state of a microbatch in the plain enumeration. */
struct priced_task {
	int route, step; /* step 0: to be sent; 1: under way; 2: back */
	double back_s;
};

static double latest(double a, double b)
{
	return a > b ? a : b;
}

/* Tries every order of the tasks, each started as early as possible, for given routes of the
 * microbatches. */
static bool some_order_fits(const struct pricing_request *of, struct priced_task *jobs,
			    double free_s, double end_s, double within_s)
{
	int under_way = 0, back = 0;

	if (end_s > within_s)
		return false;
	for (int i = 0; i < of->n; i++) {
		under_way += jobs[i].step == 1;
		back += jobs[i].step == 2;
	}
	if (back == of->n)
		return true;
	for (int i = 0; i < of->n; i++) {
		struct priced_task was = jobs[i], *j = &jobs[i];
		double end;

		if (j->step == 2 || (j->step == 0 && under_way == of->slots))
			continue;
		end = j->step == 0 ? free_s + of->forward_s
				   : latest(free_s, j->back_s) + of->backward_s;
		j->back_s = end + of->loss_s + of->route_s[j->route];
		j->step++;
		if (some_order_fits(of, jobs, end + of->overhead_s, end, within_s)) {
			*j = was;
			return true;
		}
		*j = was;
	}
	return false;
}

static double most_by_enumeration(const struct pricing_request *of, double within_s)
{
	int choices = 1;
	double best = -INFINITY;

	for (int i = 0; i < of->n; i++)
		choices *= of->n_routes;
	for (int choice = 0; choice < choices; choice++) {
		struct priced_task jobs[MB] = { { 0 } };
		double worth = 0;

		for (int i = 0, left = choice; i < of->n; i++, left /= of->n_routes) {
			jobs[i].route = left % of->n_routes;
			worth += of->worth[jobs[i].route];
		}
		if (worth > best && some_order_fits(of, jobs, 0, 0, within_s))
			best = worth;
	}
	return best;
}

struct shortest_paths {
	double route_s[ROUTES], worth[ROUTES];
	uint64_t stages[ROUTES];
};

static struct pricing_request random_machine(struct rng *r, struct shortest_paths *w)
{
	struct pricing_request of = {
		.forward_s = rng_uniform(r),
		.loss_s = rng_uniform(r) / 2,
		.backward_s = 2 * rng_uniform(r),
		.overhead_s = rng_uniform(r) / 4,
		.n = 1 + (int)rng_below(r, MB),
		.slots = 1 + (int)rng_below(r, 3),
		.n_routes = 1 + (int)rng_below(r, ROUTES),
		.route_s = w->route_s,
		.worth = w->worth,
		.stages = w->stages,
	};
	double route_s = 0, worth = -2;

	for (int i = 0; i < of.n_routes; i++) {
		route_s += 3 * rng_uniform(r);
		worth += 2 * rng_uniform(r);
		w->route_s[i] = route_s;
		w->worth[i] = worth;
		w->stages[i] = UINT64_C(1) << i | (i == 1 ? UINT64_C(1) << 63 : 0);
	}
	return of;
}

static double worth_of(const struct pricing_request *of, const int *visits)
{
	double worth = 0;

	for (int i = 0; i < of->n_routes; i++)
		worth += of->worth[i] * visits[i];
	return worth;
}

TEST(equals_plain_enumeration)
{
	struct arena arena = { 0 };
	struct pricing *t = pricing_new(&arena, 2000), *few = pricing_new(&arena, 2);
	int fit = 0, not = 0, merged = 0;
	struct rng r;

	rng_init(&r, 11);
	for (int round = 0; round < 600; round++) {
		struct shortest_paths w;
		struct pricing_request of = random_machine(&r, &w);
		double within_s = 4 + 14 * rng_uniform(&r), most;
		double best = most_by_enumeration(&of, within_s);
		int visits[PRICING_STAGES] = { 0 }, total = 0;

		most = pricing_most(t, &of, within_s, visits);
		if (isinf(best)) {
			assert_true(isinf(most) && most < 0);
			not++;
			continue;
		}
		assert_true(fabs(most - best) < 1e-9);
		assert_true(fabs(worth_of(&of, visits) - best) < 1e-9);
		for (int i = 0; i < of.n_routes; i++)
			total += visits[i];
		assert_int_equal(total, of.n);
		assert_int_equal(visits[63], of.n_routes > 1 ? visits[1] : 0);
		memset(visits, 0, sizeof(visits));
		most = pricing_most(few, &of, within_s, visits);
		/* If few states are kept, the result is never too low */
		assert_true(most >= best - 1e-9);
		merged += most > best + 1e-9;
		fit++;
	}
	print_message("%d fit, %d did not, %d became more with few states\n", fit, not, merged);
	assert_true(fit > 150 && not > 100 && merged > 5);
	arena_free(&arena);
}

TEST(counts_hundreds_of_microbatches)
{
	static const double route_s = 1, worth = 2;
	static const uint64_t stages = 2;
	struct pricing_request of = { .forward_s = 1, .backward_s = 1, .n = 600, .slots = 1,
				      .n_routes = 1, .route_s = &route_s, .worth = &worth,
				      .stages = &stages };
	struct arena arena = { 0 };
	struct pricing *t = pricing_new(&arena, 2);
	int visits[PRICING_STAGES] = { 0 };

	assert_true(pricing_most(t, &of, 1800, visits) == 1200);
	assert_int_equal(visits[1], 600);
	assert_true(isinf(pricing_most(t, &of, 1799.9, visits)));
	arena_free(&arena);
}
