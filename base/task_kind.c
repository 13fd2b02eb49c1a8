/* Names the kinds of tasks by one letter each, for files that people read. */
#include "base/task_kind.h"

static const char *const names[] = { "F", "L", "B", "E" };

const char *task_kind_name(enum task_kind kind)
{
	return names[kind];
}

bool task_kind_parse(char letter, enum task_kind *kind)
{
	for (int k = TASK_FORWARD; k <= TASK_EVALUATE; k++) {
		if (*names[k] != letter)
			continue;
		*kind = (enum task_kind)k;
		return true;
	}
	return false;
}
