/* body.c - counts the users of a tensor's bytes. Without the count each user would need a copy, and
 * copying tensors would take most of an agent's processor time. */
#include "agent/tensors/body.h"

#include <stdlib.h>

#include "base/alloc.h"

struct body *body_new(void *data, size_t bytes, bool ready)
{
	struct body *b = alloc_new(sizeof(*b));

	*b = (struct body){ .data = data, .bytes = bytes, .users = 1, .ready = ready };
	return b;
}

struct body *body_hold(struct body *b)
{
	b->users++;
	return b;
}

void body_drop(void *body)
{
	struct body *b = body;

	if (!b || --b->users > 0)
		return;
	free(b->data);
	free(b);
}
