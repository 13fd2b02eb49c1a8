/* outputs.c - keeps copies of the tensors that this node has sent in the iteration. A substitute
 * for a dead node receives them again, so that they are not recomputed. */
#include "agent/tensors/outputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { KINDS = TASK_BACKWARD + 1 };

struct outputs {
	uint32_t n;
	float *kept[MSG_MICROBATCHES][KINDS]; /* NULL: nothing */
};

struct outputs *outputs_new(void)
{
	struct outputs *o = alloc_new(sizeof(*o));

	return o;
}

void outputs_free(struct outputs *o)
{
	if (o)
		outputs_forget(o);
	free(o);
}

int outputs_keep(struct outputs *o, uint32_t microbatch, enum task_kind kind, const float *out,
		 size_t floats)
{
	float **kept = &o->kept[microbatch][kind];

	if (!*kept) {
		*kept = malloc(floats * sizeof(float));
		if (!*kept)
			return -ENOMEM;
		o->n++;
	}
	memcpy(*kept, out, floats * sizeof(float));
	return 0;
}

const float *outputs_find(const struct outputs *o, uint32_t microbatch, enum task_kind kind)
{
	return o->kept[microbatch][kind];
}

void outputs_drop(struct outputs *o, uint32_t microbatch)
{
	for (int kind = 0; kind < KINDS; kind++) {
		float **kept = &o->kept[microbatch][kind];

		o->n -= *kept != NULL;
		free(*kept);
		*kept = NULL;
	}
}

void outputs_forget(struct outputs *o)
{
	for (uint32_t i = 0; o->n > 0 && i < MSG_MICROBATCHES; i++)
		outputs_drop(o, i);
}

uint32_t outputs_count(const struct outputs *o)
{
	return o->n;
}
