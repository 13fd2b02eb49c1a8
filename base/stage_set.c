/* Sets of stages: the stages that every microbatch visits. Options, cluster files and plans contain
 * such a set. */
#include "base/stage_set.h"

#include <stdio.h>
#include <stdlib.h>

int stage_set_count(stage_set set)
{
	return __builtin_popcountll(set);
}

int stage_set_source(stage_set set, int stage)
{
	int n = set ? stage % stage_set_count(set) : 0;

	if (stage_set_has(set, stage))
		return stage;
	for (int s = 0; s < 64; s++)
		if (stage_set_has(set, s) && n-- == 0)
			return s;
	return 0;
}

bool stage_set_parse(const char *text, int n_stages, stage_set *out)
{
	stage_set set = 1;

	for (;;) {
		char *end;
		long stage = strtol(text, &end, 10);

		if (end == text || stage < 0 || stage >= n_stages || stage >= 64)
			return false;
		set |= (stage_set)1 << stage;
		if (*end == '\0')
			break;
		if (*end != ',')
			return false;
		text = end + 1;
	}
	*out = set;
	return true;
}

void stage_set_format(stage_set set, char *out)
{
	size_t n = 0;

	out[0] = '\0';
	for (int s = 0; s < 64; s++)
		if (stage_set_has(set, s))
			n += (size_t)snprintf(out + n, STAGE_SET_TEXT - n, "%s%d", n ? "," : "", s);
}

/* Follows the path from the left. If the next stage is lower by one, the two stages are exchanged.
 * The loop passes both at once, so exchanges cannot overlap. The lower stage of an exchange must be
 * greater than all stages before the exchange. The stages after the exchange must be greater than
 * its higher stage. */
int stage_path_misplaced(const int *stages, int n, int *after)
{
	int last = -1;

	for (int h = 0; h < n;) {
		int next = h > 0 && h + 1 < n ? stages[h + 1] : -1;
		bool exchanged = next >= 1 && next == stages[h] - 1;

		if ((exchanged ? next : stages[h]) <= last) {
			*after = last;
			return h;
		}
		last = stages[h];
		h += exchanged ? 2 : 1;
	}
	return -1;
}

void stage_set_exposure(stage_set always, int stage, int n_stages, long n_mb, long visits, int *low,
			int *high)
{
	int n_always = stage_set_count(always);
	long others = n_stages - n_always;

	if (stage_set_has(always, stage)) {
		*low = *high = (int)n_mb;
		return;
	}
	visits -= n_mb * n_always;
	*low = (int)(visits / others);
	*high = (int)((visits + others - 1) / others);
}
