/* plan.h - the plan of an iteration: a stage for each node, a path for each microbatch, and
 * optionally the order of tasks at the nodes. The file format is `skippipe.plan/1`
 * (docs/formats.md).
 *
 * The structs are plain data. A plan that was read from a file is well-formed, but can break the
 * rules: check.h checks these.
 */
#ifndef SCHEDULE_PLAN_H
#define SCHEDULE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/task_kind.h"
#include "base/stage_set.h"

#define PLAN_MOST_PATH 64

struct plan_microbatch {
	int id; /* id of the microbatch, at least 0 and unique */
	int data_node;
	int length; /* number of nodes in path */
	/* array of length: the nodes in forward order, the data node first; points into visits */
	int *path;
	double release_s; /* time at which the microbatch's first task may start */
};

struct plan_task {
	int microbatch; /* id of the microbatch */
	enum task_kind kind;
};

/* The order in which a node runs ready tasks, first task first. */
struct plan_order {
	int node, n_tasks;
	struct plan_task *tasks; /* array of n_tasks, owned */
};

struct plan_predicted {
	double iteration_s, sync_s;
	double total_s; /* time at which the last sum ends, with overlap_sync; without it: 0 */
	int collisions;
	double collision_wait_s, lower_bound_s, idle_fraction;
	/* array of n_stages, owned: number of microbatches that visit each stage; NULL: no
	 * predictions */
	int *exposure;
};

struct plan_record {
	char *algorithm; /* name of the algorithm, owned; NULL: unknown */
	uint64_t seed;
	int64_t evaluations;
	double elapsed_s;
	int n_history;
	double (*history)[2]; /* array of n_history, owned: pairs of elapsed_s and iteration_s */
};

struct plan {
	int n_stages;
	/* Array of n_stages + 1: the nodes of stage s are assigned[stage_start[s]] to
	 * assigned[stage_start[s + 1] - 1] */
	int *stage_start;
	int *assigned;   /* array of stage_start[n_stages]: ids of the nodes, stage by stage */
	int path_length; /* number of stages that a microbatch visits if it skips stages */
	/* Percent of each data node's microbatches that skip stages; its other microbatches visit
	 * every stage. 0: all microbatches skip stages. */
	int skip_share;
	stage_set always;  /* stages that every microbatch visits */
	bool overlap_sync; /* true: each stage sums its gradients after its own last task */
	int n_microbatches;
	struct plan_microbatch *microbatches; /* array of n_microbatches, ids ascending */
	int *visits;                          /* the nodes of all paths, one path after the other */
	/* number of entries of `orders`; 0: first come, first served at every node */
	int n_orders;
	struct plan_order *orders; /* array of n_orders */
	struct plan_predicted predicted;
	struct plan_record search;
};

/* Allocates a plan for these counts. Its microbatches have the ids 0, 1, ... Path i has path_length
 * nodes and begins at visits + i * path_length. Everything else is zero. */
struct plan *plan_alloc(int n_stages, int n_assigned, int n_microbatches, int path_length);
void plan_free(struct plan *p); /* p may be NULL */
/* Returns the predicted seconds that the sums of gradients add to iteration_s. */
double plan_visible_sync_s(const struct plan *p);
struct plan *plan_copy(const struct plan *p);

/* Parses the text of a plan. -EINVAL: the text is not valid JSON or not in this format; the message
 * names the key and what was expected. Microbatches are sorted by id. */
int plan_parse(const char *text, size_t size, struct plan **out, struct error *err);
int plan_read(const char *path, struct plan **out, struct error *err);
/* Returns the JSON text, which the caller frees. NULL: out of memory. */
char *plan_format(const struct plan *p);

/* Writes the stage of each node to stage_of (n_nodes entries); -1: none. Node ids that are too
 * large are ignored. */
void plan_stages(const struct plan *p, int n_nodes, int *stage_of);

#endif
