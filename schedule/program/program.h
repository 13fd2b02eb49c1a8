/* program.h - shared by the commands of skippipe-plan: help, errors, formats, and the cluster. */
#ifndef SCHEDULE_PROGRAM_H
#define SCHEDULE_PROGRAM_H

#include <stdbool.h>

#include "base/error.h"
#include "base/tensor_format.h"
#include "schedule/format/cluster.h"

enum { DONE = 0, FAILED = 1, USAGE = 2, BROKEN = 3 };

extern const char program_help[];

/* Prints the help after the reason, which may be NULL. Returns USAGE. */
int program_refuse(const char *why);
/* Prints the error. Returns `status`. */
int program_fail(const struct error *err, int status);
/* Returns true if the text is one of the two words. *out: the text is the first word. */
bool program_parse_choice(const char *text, const char *yes, const char *no, bool *out);

/* Formats in which tensors travel */
struct wires {
	enum tensor_format activations, sums;
};

/* Take the value of --wire and of --sum-wire. Return NULL, or the error. */
const char *wires_take_activations(struct wires *w, const char *text);
const char *wires_take_sums(struct wires *w, const char *text);

/* Reads a cluster whose tensors travel in these formats. */
int program_read_cluster(const char *path, const struct wires *w, struct cluster **c,
			 struct error *err);

#endif
