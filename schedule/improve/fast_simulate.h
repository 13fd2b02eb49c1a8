/* fast_simulate.h - the execution model for the search. It agrees with simulate.h event for event,
 * but serves first come, first served and makes no trace. Flat arrays and a calendar queue let it
 * simulate 20 nodes in microseconds. (If a task and its transfer take no time, microbatches that
 * reach a node at the same instant can differ in their order.)
 *
 * The caller keeps the paths and reports each change (fast_simulate_set_path). Internal to
 * schedule/.
 */
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
	double rest_s; /* time from that arrival to the end of the chain, without waiting */
	int32_t node;
	int8_t slots; /* +1: F takes a slot; -1: B gives it back; 0: L */
	/* Steps from the task before, and to the task after this one. */
	uint8_t before, next;
	bool last;
};

/* A directed link between two nodes. */
struct fast_simulate_link {
	double free_s; /* the link is free from this time on; only valid in the run `run` */
	uint64_t run;  /* number of the last run that used the link */
};

/* The link of a step's output, and for how long the output occupies it. */
struct fast_simulate_output {
	double occupied_s;
	struct fast_simulate_link *link;
};

/* State of the links, if outputs occupy them. */
struct fast_simulate_links {
	struct fast_simulate_output *outputs; /* (n_mb, steps); NULL: links are not occupied */
	struct fast_simulate_link *all;       /* (n_nodes, n_nodes), or NULL */
	uint64_t run;                         /* number of the present run */
};

/* The kept run, in arrays like those of the last run. */
struct fast_simulate_kept {
	double *arrival_s, *start_s;
	struct fast_simulate_booking *booked;
	int n; /* number of bookings; 0: no run is kept */
};

struct fast_simulate {
	const struct problem *p;
	/* (n_nodes) of the solution (fast_simulate_set_paths), borrowed; before that for the stages
	 * to which the cluster pins its nodes */
	const double *work;
	int n_mb, n_nodes, steps; /* steps: number of steps in a chain, 2 * length + 1 */
	double overhead_s;
	struct arena arena;        /* owns the arrays below */
	struct fast_simulate_step *chain; /* (n_mb, steps) */
	struct fast_simulate_links links;
	double *release_s;         /* (n_mb) */
	/* Results of the last run. A run that was stopped early only sets late. */
	double *arrival_s, *start_s; /* (n_mb, steps) */
	/* (n_mb) end of each microbatch's last task in the last complete run */
	double *finish_s;
	/* (n_mb * steps) tasks; the tasks of one node are in order of their start */
	struct fast_simulate_booking *booked;
	int n_booked;
	double makespan_s;
	/* Number of microbatches that are home; fewer than n_mb: standstill. */
	int done;
	bool late;                 /* some microbatch cannot be home by the limit */
	struct fast_simulate_kept kept;
	/* The state of a run. */
	int n_replayed;                    /* number of bookings taken over from the kept run */
	struct fast_simulate_event *event; /* (n_mb) */
	struct fast_simulate_node *nodes; /* (n_nodes) */
	int32_t *batch;                   /* (n_mb) arrivals of the present instant */
	int32_t *bucket;           /* (n_buckets) first event of each bucket that is not empty */
	uint64_t *filled;          /* a bit for each bucket, 1: not empty; the last word is not 0 */
	uint64_t bits;             /* the present word of filled; filled itself has 0 there */
	int n_buckets, word;
	double per_s;   /* number of buckets in a second */
	double limit_s; /* time limit of the run */
};

/* A task with a known start, and the instant at which the start became known. */
struct fast_simulate_booking {
	double at_s;
	int32_t task, mb;
};

/* A microbatch that travels to its next task, or waits there for a slot. */
struct fast_simulate_event {
	double due_s; /* the arrival */
	int32_t task; /* next task of the microbatch, as microbatch * steps + step */
	/* Next element in the list of a bucket or of waiting microbatches; -1: none. */
	int32_t next;
};

struct fast_simulate_node {
	double free_s; /* time at which the node may start the next task */
	int32_t slots; /* number of free slots after all booked tasks */
	int32_t memory;
	/* List of the F that wait for a slot, in order of arrival; first -1: none. */
	int32_t first, last;
};

/* The paths are not set yet. */
void fast_simulate_init(struct fast_simulate *e, const struct problem *p);
void fast_simulate_fini(struct fast_simulate *e);

/* Sets all paths. Later paths belong to the same solution: its stages give the times of tasks. */
void fast_simulate_set_paths(struct fast_simulate *e, const struct solution *s);
/* Sets the path of one microbatch (length). */
void fast_simulate_set_path(struct fast_simulate *e, int mb, const int *path);

/* Simulates from time 0. Stops as soon as some microbatch cannot be home by limit_s (INFINITY: no
 * limit). Returns false then and on a standstill; the makespan is then infinite. */
bool fast_simulate_run(struct fast_simulate *e, double limit_s);

/* Keeps the last run, which must be complete, for fast_simulate_run_from. Its arrival_s, start_s
 * and booked must not be read any more. */
void fast_simulate_keep(struct fast_simulate *e);
/* Returns the time from which on the kept run changes if mb takes this path. */
double fast_simulate_changes_s(const struct fast_simulate *e, int mb, const int *path);
/* Simulates as fast_simulate_run does, but takes the part before from_s from the kept run. That
 * part must be the same in both. */
bool fast_simulate_run_from(struct fast_simulate *e, double from_s, double limit_s);

#endif
