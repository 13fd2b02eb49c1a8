/* sim_test.c - simulates many clusters, each from a seed (sim.h).
 *
 * Environment variables: SIM_SEEDS is the number of seeds (100), SIM_FROM the first seed (1). The
 * test ends after SIM_FAILURES failed runs (10). SIM_SEED=N prints the trace of a single run, and
 * SIM_LOG=1 adds the logs of its programs. Exit status 1: a check failed, or there were too few
 * changes of stages. If fewer than SEEDS seeds were run, any number of changes is enough. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/ground.h"
#include "tests/sim/world.h"

enum { SEEDS = 100, AGAIN = 25 /* every 25th seed is run twice */, FAILURES = 10 };

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void add(struct outcome *sum, const struct outcome *o)
{
	sum->delivered += o->delivered;
	sum->commits += o->commits;
	sum->kills += o->kills;
	sum->drains += o->drains;
	sum->takeovers += o->takeovers;
	sum->cuts += o->cuts;
	sum->narrows += o->narrows;
	sum->resets += o->resets;
	sum->sleeps += o->sleeps;
	sum->flips += o->flips;
	sum->acts += o->acts;
	sum->rewinds += o->rewinds;
	sum->recuts += o->recuts;
	sum->stacked += o->stacked;
	sum->exchanged += o->exchanged;
	sum->lasted_s += o->lasted_s;
}

static int run_one(struct ground *g, uint64_t seed)
{
	struct outcome o;

	world_run(g, seed, true, &o);
	printf("seed %" PRIu64 ": trace %016" PRIx64 ", %s\n", seed, o.hash,
	       o.wrong[0] ? o.wrong : "no failure");
	return o.wrong[0] != 0;
}

/* Returns true if many seeds gave so few changes of stages that the test hardly covers them. A
 * single seed may have no change. */
static bool is_too_narrow(const struct outcome *sum, uint64_t seeds)
{
	return seeds >= SEEDS && (sum->recuts < seeds / 5 || sum->exchanged < seeds / 10 ||
				  sum->stacked < seeds / 10);
}

static int run_many(struct ground *g, uint64_t from, uint64_t n)
{
	struct outcome sum = { .hash = 0 }, o, again;
	uint64_t failed = 0, limit = number("SIM_FAILURES", FAILURES), seed = from;

	for (; seed < from + n && failed < limit; seed++) {
		world_run(g, seed, false, &o);
		add(&sum, &o);
		if (seed % AGAIN == 0 && !o.wrong[0]) {
			world_run(g, seed, false, &again);
			if (again.hash != o.hash)
				snprintf(o.wrong, sizeof(o.wrong),
					 "the trace differs when the seed is run again");
		}
		if (!o.wrong[0])
			continue;
		failed++;
		printf("seed %" PRIu64 ": trace %016" PRIx64 ": %s\n", seed, o.hash, o.wrong);
		fflush(stdout);
	}
	printf("%" PRIu64 " seeds, %" PRIu64 " failed: %" PRIu64 " commits, %u deaths, "
	       "%u drains, %u takeovers, %u cuts, %u narrow links, %u resets, %u sleeps, "
	       "%u flips, %u acts, "
	       "%u restores of checkpoints, %u changes of stages, %u stackings, "
	       "%u exchanges of stages, %" PRIu64 " messages, %.0f s of virtual time\n",
	       seed - from, failed, sum.commits, sum.kills, sum.drains, sum.takeovers, sum.cuts,
	       sum.narrows, sum.resets, sum.sleeps, sum.flips, sum.acts, sum.rewinds, sum.recuts,
	       sum.stacked, sum.exchanged, sum.delivered, sum.lasted_s);
	if (failed)
		printf("SIM_SEED=N BUILD/tests/sim/sim_test prints the trace of a seed\n");
	if (is_too_narrow(&sum, seed - from))
		printf("too few changes of stages, exchanges of stages, or stackings\n");
	return failed != 0 || is_too_narrow(&sum, seed - from);
}

int main(void)
{
	struct ground *g = ground_new();
	uint64_t one = number("SIM_SEED", 0);
	int rc = 1;

	if (g)
		rc = one ? run_one(g, one) :
			   run_many(g, number("SIM_FROM", 1), number("SIM_SEEDS", SEEDS));
	ground_free(g);
	return rc;
}
