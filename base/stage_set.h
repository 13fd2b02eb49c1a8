/* stage_set.h - a set of stages as a bit mask, bit s for stage s, and as text.
 *
 * Clusters and plans have the set of stages that every microbatch visits in this form (CC1 is the
 * case of stage 0 alone).
 */
#ifndef BASE_STAGE_SET_H
#define BASE_STAGE_SET_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t stage_set;

enum { STAGE_SET_TEXT = 256 }; /* number of bytes that hold any set as text */

/* Returns true if a set from a peer or a file contains stage 0 and no stage from n_stages on. */
static inline bool stage_set_fits(stage_set set, int n_stages)
{
	return (set & 1) && (n_stages >= 64 || set >> n_stages == 0);
}

static inline bool stage_set_has(stage_set set, int stage)
{
	return stage >= 0 && stage < 64 && (set >> stage & 1);
}

int stage_set_count(stage_set set);

/* Returns the source of a stage: the trained stage whose layers the stage copies when microbatches
 * begin to visit it (stacking). `set` has the trained stages and is not empty. A trained stage is
 * its own source. The other stages take the trained stages in turn: if 0 and 5 are trained, the
 * stages 0 to 5 get the sources 0, 5, 0, 5, 0, 5. This is the operator G_stack of Du et al.
 * (arXiv:2405.15319), "Stacking Your Transformers". On the test bed `deep`, the loss ends higher
 * if each stage copies the nearest trained stage (0, 0, 0, 5, 5, 5; docs/convergence.md). */
int stage_set_source(stage_set set, int stage);

/* Reads a list of stages below n_stages, such as "0,5". *out also gets stage 0. Returns false and
 * leaves *out unchanged if the text is not such a list. */
bool stage_set_parse(const char *text, int n_stages, stage_set *out);
/* Writes the set as a text such as "0,5" to `out`, which has room for STAGE_SET_TEXT bytes. */
void stage_set_format(stage_set set, char *out);

/* Finds the first stage of a path of n stages that breaks the order of CC2: each stage is greater
 * than all before it, except that stages s and s + 1 may be exchanged. The first stage takes part
 * in no exchange, and exchanges do not overlap. Returns the index of the first wrong stage, and
 * sets *after to the stage that it would have to follow; returns -1 if the path keeps the
 * order. */
int stage_path_misplaced(const int *stages, int n, int *after);

/* Gives the smallest and the largest number of visits to a stage under CC3 (equal exposure). The
 * paths of the n_mb microbatches have `visits` visits in total. A stage in `always` gets n_mb
 * visits. The other stages share the remaining visits equally, to within one. */
void stage_set_exposure(stage_set always, int stage, int n_stages, long n_mb, long visits, int *low,
			int *high);

#endif
