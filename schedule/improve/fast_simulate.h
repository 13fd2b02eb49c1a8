/* fast_simulate.h - the execution model for the search. It agrees with simulate.h event for
 * event, but serves first come, first served and makes no trace. Flat arrays and a calendar queue
 * let it simulate 20 nodes in microseconds. In one case the order of tasks may differ from
 * simulate.h: a task and its transfer take no time, and several microbatches reach a node at the
 * same instant.
 *
 * The caller keeps the paths and calls fast_simulate_set_path for each change. Internal to
 * schedule/. */
#ifndef SCHEDULE_FAST_SIMULATE_H
#define SCHEDULE_FAST_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "schedule/problem/problem.h"

/* One task of a microbatch's chain. */
struct fast_simulate_step {
	double duration_s;
	/* Time from the end of the task to the next task's arrival; 0 for the last task. */
	double travel_s;
	/* Time from the next task's arrival to the end of the chain, without waiting */
	double rest_s;
	int32_t node;
	int8_t slots; /* +1: F takes a slot; -1: B gives it back; 0: L */
	/* Number of steps from the previous task of the chain to this one, and from this one to
	 * the next. */
	uint8_t before, next;
	bool last;
};

/* A directed link between two nodes. */
struct fast_simulate_link {
	/* time at which the link becomes free; valid only in the run number `run` */
	double free_s;
	uint64_t run;  /* number of the last run that used the link */
};

/* The link of a step's output, and for how long the output occupies it. */
struct fast_simulate_output {
	double occupied_s;
	struct fast_simulate_link *link;
};

/* State of the links, if outputs occupy them. */
struct fast_simulate_links {
	/* The output of each task, as an array of (n_mb, steps); NULL: links are not occupied */
	struct fast_simulate_output *outputs;
	/* The links between all nodes, as an array of (n_nodes, n_nodes); NULL: links are not
	 * occupied. */
	struct fast_simulate_link *all;
	uint64_t run; /* number of the present run */
};

/* The run kept by fast_simulate_keep. Its arrays are like those of the last run. */
struct fast_simulate_kept {
	double *arrival_s, *start_s;
	struct fast_simulate_booking *booked;
	int n; /* number of bookings in the kept run; 0: no run is kept */
};

struct fast_simulate {
	const struct problem *p;
	/* Array of n_nodes, borrowed: work of each node's stage. The stages are those of the
	 * solution that fast_simulate_set_paths got. Before that call, the stages are those to
	 * which the cluster pins the nodes. */
	const double *work;
	int n_mb, n_nodes, steps; /* steps: number of steps in a chain, 2 * length + 1 */
	double overhead_s;
	struct arena arena;        /* owns the arrays below */
	struct fast_simulate_step *chain; /* array of (n_mb, steps) */
	struct fast_simulate_links links;
	double *release_s; /* array of n_mb: earliest start of each microbatch */
	/* Results of the last run. If the run was stopped early, only `late` is valid. */
	double *arrival_s, *start_s; /* array of (n_mb, steps) */
	/* array of n_mb: end of each microbatch's last task in the last complete run */
	double *finish_s;
	/* array of n_mb * steps tasks; the tasks of each node are in the order of their start */
	struct fast_simulate_booking *booked;
	int n_booked;
	double makespan_s;
	/* Number of microbatches whose last task is booked. If it stays below n_mb, the run came to
	 * a standstill. */
	int done;
	bool late; /* some microbatch cannot finish by the limit */
	struct fast_simulate_kept kept;
	/* State of the run in progress. */
	int n_replayed;                    /* number of bookings copied from the kept run */
	struct fast_simulate_event *event; /* array of n_mb */
	struct fast_simulate_node *nodes;  /* array of n_nodes */
	/* Array of n_mb: microbatches that arrive at the present instant */
	int32_t *batch;
	/* Array of n_buckets: first event of each bucket that is not empty */
	int32_t *bucket;
	/* A bit for each bucket: 1 if the bucket is not empty. The last word always has a bit set,
	 * so that the search for a bucket ends. */
	uint64_t *filled;
	uint64_t bits; /* present value of filled[word]; the array itself has 0 there */
	int n_buckets, word;
	double per_s;   /* number of buckets in a second */
	double limit_s; /* time limit of the run */
};

/* A task whose start is known, and the instant at which the start became known. */
struct fast_simulate_booking {
	double at_s;
	int32_t task, mb;
};

/* A microbatch that travels to its next task, or waits there for a slot. */
struct fast_simulate_event {
	double due_s; /* time at which the microbatch arrives */
	int32_t task; /* next task of the microbatch, as microbatch * steps + step */
	/* Next element in the list of a bucket or of waiting microbatches; -1: none. */
	int32_t next;
};

struct fast_simulate_node {
	double free_s; /* time at which the node may start its next task */
	int32_t slots; /* number of free slots after all booked tasks */
	int32_t memory;
	/* List of the forward tasks that wait for a slot, in order of arrival; first -1: none. */
	int32_t first, last;
};

/* Allocates a simulation. Its paths are not set yet. */
void fast_simulate_init(struct fast_simulate *e, const struct problem *p);
void fast_simulate_fini(struct fast_simulate *e);

/* Sets all paths. Paths that are set later must belong to the same solution, whose stages give the
 * times of tasks. */
void fast_simulate_set_paths(struct fast_simulate *e, const struct solution *s);
/* Sets the path of one microbatch (an array of `length` nodes). */
void fast_simulate_set_path(struct fast_simulate *e, int mb, const int *path);

/* Simulates from time 0. Stops as soon as some microbatch cannot finish by limit_s (INFINITY: no
 * limit). In that case, and on a standstill, returns false and the makespan is infinite. */
bool fast_simulate_run(struct fast_simulate *e, double limit_s);

/* Keeps the last run, which must be complete, for fast_simulate_run_from. After this call, its
 * arrival_s, start_s and booked must not be read. */
void fast_simulate_keep(struct fast_simulate *e);
/* Returns the time from which the kept run changes if microbatch mb takes this path. */
double fast_simulate_changes_s(const struct fast_simulate *e, int mb, const int *path);
/* Simulates as fast_simulate_run does, but takes the part before from_s from the kept run. That
 * part must be the same in both runs. */
bool fast_simulate_run_from(struct fast_simulate *e, double from_s, double limit_s);

#endif
