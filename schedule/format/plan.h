/* plan.h - who does what in an iteration: nodes to stages, a path per microbatch, the order of
 * work at the nodes. The file format is `skippipe.plan/1` (docs/scheduling.md).
 *
 * The structs are plain data. A plan read from a file is only known to be well-formed JSON of
 * the right shape: whether it keeps the rules is check.h's to say.
 */
#ifndef SCHEDULE_PLAN_H
#define SCHEDULE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/task_kind.h"

#define PLAN_MOST_PATH 64

struct plan_microbatch {
	int id;           /* >= 0, unique */
	int data_node;
	int length;       /* nodes in path */
	int *path;        /* (length) in forward order, the data node first; points into visits */
	double release_s; /* when its first task may start */
};

struct plan_task {
	int microbatch; /* its id */
	enum task_kind kind;
};

/* The priority in which ready tasks run on a node, best first. */
struct plan_order {
	int node, n_tasks;
	struct plan_task *tasks; /* (n_tasks) owned */
};

struct plan_predicted {
	double iteration_s, sync_s;
	double total_s; /* with overlap_sync: when every stage has its sum; else 0, not said */
	int collisions;
	double collision_wait_s, lower_bound_s, idle_fraction;
	int *exposure; /* (n_stages) owned: microbatches per stage; NULL: not predicted */
};

struct plan_record {
	char *algorithm; /* owned; NULL: not said */
	uint64_t seed;
	int64_t evaluations;
	double elapsed_s;
	int n_history;
	double (*history)[2]; /* (n_history) owned: elapsed_s, iteration_s */
};

struct plan {
	int n_stages;
	int *stage_start; /* (n_stages + 1) stage s has assigned[stage_start[s] ..
			   * stage_start[s + 1]) */
	int *assigned;    /* (stage_start[n_stages]) node ids */
	int path_length;
	bool overlap_sync; /* a stage's gradients are summed from its own last task on */
	int n_microbatches;
	struct plan_microbatch *microbatches; /* (n_microbatches) ids ascending */
	int *visits;      /* the paths, one after the other */
	int n_orders;     /* 0: first come, first served everywhere */
	struct plan_order *orders; /* (n_orders) */
	struct plan_predicted predicted;
	struct plan_record search;
};

/* Room for the counts given, all zero; path i starts at visits + i * path_length and has that
 * length, ids are 0, 1, ... NULL when memory runs out. */
struct plan *plan_alloc(int n_stages, int n_assigned, int n_microbatches, int path_length);
void plan_free(struct plan *p); /* NULL is allowed */
/* What the sums of gradients add to iteration_s, as predicted. */
double plan_visible_sync_s(const struct plan *p);
struct plan *plan_copy(const struct plan *p);

/* -EINVAL: not valid JSON, or not this format; the message names key and expectation.
 * Microbatches are sorted by id. */
int plan_parse(const char *text, size_t size, struct plan **out, struct error *err);
int plan_read(const char *path, struct plan **out, struct error *err);
/* The JSON text (free it); NULL: out of memory. */
char *plan_format(const struct plan *p);

/* The stage of each node into stage_of (n_nodes), -1 where it has none. Ids out of range are
 * passed over. */
void plan_stages(const struct plan *p, int n_nodes, int *stage_of);

#endif
