/* args.h - an argument list for exec, built one argument at a time. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stddef.h>

struct args {
	char **list; /* array that ends with NULL; NULL if no argument was added */
	size_t n;
};

/* Appends one argument, which is copied. */
void args_add(struct args *a, const char *text);
void args_addf(struct args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Leaves an empty list. */
void args_free(struct args *a);

#endif
