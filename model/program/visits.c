/* Draws the stages that each microbatch of an iteration visits, and their order, from the seed
 * alone. Each of the rules for paths can be switched off by itself, to compare the results.
 */
#include "model/program/visits.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/skip_schedule.h"

bool visit_rules_always(stage_set always, uint32_t stage)
{
	return stage == 0 || (stage < 64 && stage_set_has(always, (int)stage));
}

uint32_t visit_rules_droppable(stage_set always, uint32_t n_stages)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < n_stages; s++)
		n += !visit_rules_always(always, s);
	return n;
}

int visit_rules_check(const struct visit_rules *r, uint32_t n_stages, struct error *err)
{
	uint32_t most = visit_rules_droppable(r->always, n_stages);

	for (uint32_t s = n_stages; s < 64; s++)
		if (visit_rules_always(r->always, s))
			return error_set(err, -EINVAL, "--always: there is no stage %" PRIu32, s);
	if (r->skip > most)
		return error_set(err, -EINVAL,
				 "cannot leave out %" PRIu32 " of %" PRIu32
				 " stages: at most %" PRIu32,
				 r->skip, n_stages, most);
	return 0;
}

uint32_t visits_skip(const struct visit_rules *r, uint64_t iteration, uint64_t iterations,
		     uint32_t *share)
{
	*share = r->share;
	if (r->schedule.n > 0) {
		const struct skip_phase *p =
			&r->schedule.phases[skip_schedule_at(&r->schedule, iteration + 1)];

		*share = p->share;
		return p->skip;
	}
	return iteration < r->whole_first || iteration + r->whole_last >= iterations ? 0
										     : r->skip;
}

static void shuffle_stages(struct rng *r, uint32_t *x, uint32_t n)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = rng_below(r, i), t = x[j];

		x[j] = x[i - 1];
		x[i - 1] = t;
	}
}

/* Exchanges neighbouring stages of a path with probability `chance`, if their numbers differ by 1.
 * A stage is exchanged at most once. */
static void swap_neighbours(struct rng *r, float chance, uint32_t *path, uint32_t n)
{
	for (uint32_t i = 0; i + 1 < n; i++) {
		if (path[i] + 1 != path[i + 1] || rng_uniform(r) >= (double)chance)
			continue;
		path[i]++;
		path[i + 1]--;
		i++;
	}
}

/* Chooses at random, without replacement, the stages to skip. Stage s has a weight of s
 * squared. */
static void draw_unequal(struct rng *r, uint32_t n_stages, stage_set always, uint32_t skip,
			 bool *out)
{
	while (skip-- > 0) {
		double sum = 0, at;
		uint32_t s = 0;

		for (uint32_t i = 1; i < n_stages; i++)
			sum += out[i] || visit_rules_always(always, i) ? 0 : (double)i * i;
		at = rng_uniform(r) * sum;
		for (uint32_t i = 1; i < n_stages && at >= 0; i++)
			if (!out[i] && !visit_rules_always(always, i)) {
				at -= (double)i * i;
				s = i;
			}
		out[s] = true;
	}
}

/* Gives all stages equal exposure. The stages that may be skipped form a circle in random order.
 * The microbatches that skip stages are chosen in random order. Each of them skips the next `skip`
 * stages of the circle. */
void visits_draw(const struct visit_rules *rules, uint32_t n_stages, uint32_t microbatches,
		 uint64_t seed, uint64_t iteration, uint32_t *paths, uint32_t *lengths)
{
	uint32_t skipping = (uint32_t)skip_share_count((int)rules->share, (int)microbatches);
	uint32_t droppable = visit_rules_droppable(rules->always, n_stages);
	uint32_t *circle = alloc_array(n_stages, sizeof(*circle));
	uint32_t *turn = alloc_array(microbatches, sizeof(*turn));
	bool *out = alloc_array(n_stages, sizeof(*out));
	struct rng r;

	assert(rules->skip <= droppable);
	rng_init_stream(&r, seed, iteration);
	for (uint32_t i = 0, s = 1; s < n_stages; s++)
		if (!visit_rules_always(rules->always, s))
			circle[i++] = s;
	for (uint32_t i = 0; i < microbatches; i++)
		turn[i] = i;
	shuffle_stages(&r, circle, droppable);
	shuffle_stages(&r, turn, microbatches);
	for (uint32_t m = 0; m < microbatches; m++) {
		uint32_t *path = paths + (size_t)m * n_stages, n = 0;
		uint32_t skip = turn[m] < skipping ? rules->skip : 0;

		for (uint32_t s = 0; s < n_stages; s++)
			out[s] = false;
		if (rules->unequal)
			draw_unequal(&r, n_stages, rules->always, skip, out);
		else
			for (uint32_t k = 0; k < skip; k++)
				out[circle[((uint64_t)turn[m] * skip + k) %
					   (droppable ? droppable : 1)]] = true;
		for (uint32_t s = 1; s < n_stages; s++)
			if (!out[s])
				path[n++] = s;
		if (rules->any_order)
			shuffle_stages(&r, path, n);
		else
			swap_neighbours(&r, rules->swap, path, n);
		lengths[m] = n;
	}
	free(circle);
	free(turn);
	free(out);
}
