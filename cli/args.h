/* args.h - an argument list that is put together piece by piece. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>

struct args {
	char **list; /* NULL-terminated once there is one */
	size_t n;
	bool failed; /* memory ran out: the list is not whole */
};

void args_add(struct args *a, const char *text); /* copied */
void args_addf(struct args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void args_free(struct args *a); /* then it is empty */

#endif
