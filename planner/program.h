/* program.h - shared by the commands of skippipe-plan: errors, formats, and the cluster. */
#ifndef PLANNER_PROGRAM_H
#define PLANNER_PROGRAM_H

#include "base/error.h"
#include "base/process/options.h"
#include "base/tensor_format.h"
#include "model/config.h"
#include "schedule/format/cluster.h"

enum { DONE = 0, FAILED = 1, USAGE = 2, BROKEN = 3 };

/* The text at the end of each command's help */
#define PROGRAM_EXIT_STATUS \
	"\nExit status: 0 done, 1 failed, 2 usage, 3 infeasible or a rule is broken.\n"

extern const struct options_table options_of_plan, options_of_simulate;

/* Prints why a command line is wrong, and the command's usage. Returns USAGE. */
int program_refuse(const struct options_table *of, const char *why);
/* Prints the error. Returns `status`. */
int program_fail(const struct error *err, int status);

/* Formats in which tensors travel */
struct wires {
	enum tensor_format activations, sums;
};

/* Take the values of --wire and of --sum-wire. */
int wires_take_activations(struct wires *w, const char *text, struct error *err);
int wires_take_sums(struct wires *w, const char *text, struct error *err);

/* Reads a cluster whose tensors travel in these formats. */
int program_read_cluster(const char *path, const struct wires *w, struct cluster **c,
			 struct error *err);
/* Reads the value of --model: a preset, or a file of the format skippipe.model/1. */
int program_read_model(const char *name, struct model_config *c, struct hyperparameters *r,
		       struct error *err);

#endif
