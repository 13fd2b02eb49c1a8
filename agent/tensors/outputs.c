/* outputs.c - keeps the tensors that this node has sent in the iteration. If a node dies, its
 * substitute receives these tensors again, so that no node has to recompute them. */
#include "agent/tensors/outputs.h"

#include <stdlib.h>

#include "base/alloc.h"

enum { KINDS = TASK_BACKWARD + 1 };

struct outputs {
	uint32_t n;
	/* kept[m][k] is the output of microbatch m's task of kind k; NULL: none. */
	struct body *kept[MSG_MICROBATCHES][KINDS];
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

void outputs_keep(struct outputs *o, uint32_t microbatch, enum task_kind kind, struct body *body)
{
	struct body **kept = &o->kept[microbatch][kind];

	o->n += *kept == NULL;
	body_drop(*kept);
	*kept = body_hold(body);
}

struct body *outputs_find(const struct outputs *o, uint32_t microbatch, enum task_kind kind)
{
	return o->kept[microbatch][kind];
}

void outputs_drop(struct outputs *o, uint32_t microbatch)
{
	for (int kind = 0; kind < KINDS; kind++) {
		struct body **kept = &o->kept[microbatch][kind];

		o->n -= *kept != NULL;
		body_drop(*kept);
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
