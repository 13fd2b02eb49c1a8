/* tasks.h - for tests: makes a task of a route, as if its input had just arrived. Include cmocka.h
 * first. The caller frees the task. */
#ifndef AGENT_TESTS_TASKS_H
#define AGENT_TESTS_TASKS_H

#include <stdint.h>
#include <stdlib.h>

#include "agent/execution/queue.h"
#include "base/tests/test.h"

static inline struct task *new_task(const struct route *r, uint32_t position, int64_t now)
{
	struct task *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->route = *r;
	t->position = position;
	t->first = position == 0;
	t->arrived_us = now;
	/* The owner is allocated, so that a sanitizer reports a task that is not freed. */
	t->owner = body_new(malloc(sizeof(float)), sizeof(float), true);
	return t;
}

#endif
