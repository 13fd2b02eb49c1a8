/* task_kind.h - the kinds of tasks that a node computes for a microbatch.
 *
 * Plans, messages, the record and the console use the same values. The letters are those of the
 * plan files and of the record.
 */
#ifndef BASE_TASK_KIND_H
#define BASE_TASK_KIND_H

#include <stdbool.h>

enum task_kind {
	TASK_FORWARD,
	TASK_LOSS,
	TASK_BACKWARD,
	TASK_EVALUATE /* a task on validation data, a forward pass or a loss; not in plans */
};

/* Returns "F", "L", "B" or "E". */
const char *task_kind_name(enum task_kind kind);
/* Returns false if no kind has this letter, and leaves *kind as it is. */
bool task_kind_parse(char letter, enum task_kind *kind);

#endif
