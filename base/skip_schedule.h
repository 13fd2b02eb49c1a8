/* skip_schedule.h - how many stages the microbatches skip, in each phase of a run.
 *
 * A run can skip many stages at first and fewer later. The schedule is an option of train, demo and
 * controller, and a text in the record of a run.
 */
#ifndef BASE_SKIP_SCHEDULE_H
#define BASE_SKIP_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* ---- skip ratios ----
 *
 * A ratio is a number of skipped stages and a share: the percentage of each data node's
 * microbatches that skip them, 1 to 99. The other microbatches visit every stage. Share 0: all
 * microbatches skip. */

/* Reads "2", or "30%:2" for a share of the microbatches, from *at, and advances *at. most: limit of
 * skipped stages. -EINVAL: the message says what was expected. */
int skip_share_read(const char **at, uint32_t most, uint32_t *share, uint32_t *skip,
		    struct error *err);
/* Reads a whole text such as "30%:2", in which the share is required. option: name of the option,
 * for the message. */
int skip_share_parse(const char *option, const char *text, uint32_t most, uint32_t *share,
		     uint32_t *skip, struct error *err);

/* Packs a share and a number of skipped stages into one number. Share 0, with which all
 * microbatches skip, packs to the number of stages alone. skip_share_of and skip_share_stages
 * unpack. */
static inline int64_t skip_share_pack(uint32_t share, uint32_t skip)
{
	return (int64_t)share << 8 | skip;
}

static inline uint32_t skip_share_of(int64_t packed)
{
	return (uint32_t)(packed >> 8);
}

static inline uint32_t skip_share_stages(int64_t packed)
{
	return (uint32_t)(packed & 255);
}

enum { SKIP_SHARE_TEXT = 24 }; /* bytes that hold a ratio as text */

/* Writes "2/6" if two of six stages are skipped, or "2/6 in 30%" if only 30% of the microbatches
 * skip them. */
void skip_share_format(uint32_t share, uint32_t skip, uint32_t n_stages, char out[SKIP_SHARE_TEXT]);

/* Returns how many of n microbatches of a data node skip stages: the nearest whole number, and the
 * larger one if two are equally near. */
static inline int skip_share_count(int share, int n)
{
	return share > 0 ? (int)(((long)n * share + 50) / 100) : n;
}

/* Returns true if microbatch i of n of a data node skips stages. The microbatches that skip are
 * spread evenly.
 */
static inline bool skip_share_takes(int share, int n, int i)
{
	long count = skip_share_count(share, n);

	return (i + 1) * count / n > i * count / n;
}

/* ---- schedules ---- */

enum { SKIP_SCHEDULE_MOST = 32 }; /* limit of the phases of a schedule */

struct skip_phase {
	uint64_t from; /* first iteration of the phase, from 1 */
	uint32_t skip; /* number of stages that a microbatch skips */
	/* Percent of the microbatches that skip stages; 0: all. */
	uint32_t share;
};

struct skip_schedule {
	uint32_t n;                                   /* number of phases; 0: no schedule */
	/* Array of n: phases in ascending order; the first begins at iteration 1. */
	struct skip_phase phases[SKIP_SCHEDULE_MOST];
};

/* Reads a schedule. "4,3,1,0": numbers of skipped stages in four equal parts of the run.
 * "4@0,3@25%,1@50%,0@800": each phase begins after the part of the run that stands behind its @, a
 * share or a number of iterations. "30%:2" in place of a number of stages, as in "4@0,30%:2@30%":
 * 30% of the microbatches skip two stages. iterations: length of the run; 0: the run has no end, so
 * each phase must begin after a number of iterations. most: the number of stages that may be
 * skipped. -EINVAL: the message names the phase. */
int skip_schedule_parse(struct skip_schedule *out, const char *text, uint64_t iterations,
			uint32_t most, struct error *err);

/* Number of bytes that hold the schedule of any recipe, as text. */
enum { SKIP_SCHEDULE_RECIPE = 96 };

/* The help of --recipe in every program that has the option. Its figures were measured with the
 * model `deep`: those of `speed` with the schedule WSD (docs/rates.md), those of `robust` with a
 * cosine (docs/convergence.md). */
#define SKIP_SCHEDULE_RECIPE_HELP \
	"grow the model from its ends: first train only the first and the last stage, then start " \
	"the middle stages as copies of them. speed: microbatches make 80% of the visits to " \
	"stages, and the loss ends 2.9% lower. robust: later on, 30% of the microbatches skip " \
	"half of the middle stages. Along plans they make 77% of the visits, the loss ends 2.4% " \
	"higher, and skipping half of the middle stages then costs 5%. With the paths that train " \
	"draws without a plan: 79%, 1.3% and 7%"

/* Writes the skip schedule of a recipe (--recipe) for a run in which `droppable` stages may be
 * skipped. The first and the last stage are always visited, and all other stages start from these
 * two (stage_set_source). -EINVAL: there is no such recipe, or no stage may be skipped. */
int skip_schedule_of_recipe(char out[SKIP_SCHEDULE_RECIPE], const char *name, uint32_t droppable,
			    struct error *err);

/* Returns the index of the phase to which an iteration belongs. Iterations count from 1. The
 * schedule must have phases. */
uint32_t skip_schedule_at(const struct skip_schedule *s, uint64_t iteration);

#endif
