/* fast_simulate.h - the execution model for the search: the same as simulate.h event for event, but
 * first come, first served, with flat arrays, a calendar queue and no trace, so that one run of 20
 * nodes takes microseconds. (Microbatches that come to a node at the same instant may differ in
 * their order where a task takes no time and its output none to travel.)
 *
 * The caller keeps the paths; fast_simulate_set_path tells of each change. Internal to schedule/.
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
	double travel_s;  /* from its end to the arrival at the next; 0 for the last */
	double rest_s;    /* from that arrival to the microbatch's end, if nothing waits */
	int32_t node;
	int16_t slots; /* +1: F, takes a slot; -1: B, gives it back; 0: L */
	bool last;
};

struct fast_simulate {
	const struct problem *p;
	int n_mb, n_nodes, steps;  /* steps: 2 * length + 1 */
	double overhead_s;
	struct arena arena;        /* of the arrays below */
	struct fast_simulate_step *chain; /* (n_mb, steps) */
	double *release_s;         /* (n_mb) */
	/* Results of the last run; of a run that was cut none but late. */
	double *arrival_s, *start_s; /* (n_mb, steps) */
	double *finish_s;            /* (n_mb) end of its last task; stays when a run is cut */
	struct fast_simulate_booking *booked; /* (n_mb * steps) of one node in the order they start */
	int n_booked;
	double makespan_s;
	int done;                  /* microbatches that came back; fewer than n_mb: standstill */
	bool late;                 /* the limit is broken */
	/* The run that was kept; the arrays are like those of the last run. */
	double *kept_arrival_s, *kept_start_s;
	struct fast_simulate_booking *kept_booked;
	int n_kept; /* of them; 0: none */
	/* State of a run. */
	int n_replayed;            /* bookings that are the kept run's */
	struct fast_simulate_event *event; /* (n_mb) */
	struct fast_simulate_node *nodes; /* (n_nodes) */
	int32_t *batch;            /* (n_mb) events of one instant */
	int32_t *bucket;           /* (n_buckets) first of each that is not empty */
	uint64_t *filled;          /* one bit a bucket, 1: not empty; and a last word that is not 0 */
	uint64_t bits;             /* what `filled` should have at `word`; there and before it has 0 */
	int n_buckets, word;
	double per_s;              /* buckets a second */
	double limit_s;            /* of the run */
};

/* A task whose start is settled, and the instant at which it was. */
struct fast_simulate_booking {
	double at_s;
	int32_t task, mb;
};

/* A microbatch that is on its way, or waits for a slot. */
struct fast_simulate_event {
	double due_s; /* the arrival */
	int32_t task; /* that it is to arrive for, of n_mb * steps */
	int32_t next; /* in a bucket, or of those that wait; -1: none */
};

struct fast_simulate_node {
	double free_s;       /* from when another task may start */
	int32_t slots;       /* free ones, when all that is booked has been done */
	int32_t memory;
	int32_t first, last; /* F that wait for a slot, as they came; first -1: none */
};

/* The paths are not set yet. */
void fast_simulate_init(struct fast_simulate *e, const struct problem *p);
void fast_simulate_fini(struct fast_simulate *e);

/* path: (length) node ids. */
void fast_simulate_set_path(struct fast_simulate *e, int mb, const int *path);
void fast_simulate_set_paths(struct fast_simulate *e, const struct solution *s);

/* Runs everything from time 0. Stops as soon as some microbatch cannot be back by limit_s (which
 * may be INFINITY). Returns false then and on a standstill, with an infinite makespan. */
bool fast_simulate_run(struct fast_simulate *e, double limit_s);

/* Keeps the last run, which must have come to its end, for fast_simulate_run_from; its arrival_s,
 * start_s and booked are not to be read any more. */
void fast_simulate_keep(struct fast_simulate *e);
/* Until when the kept run stays as it is if mb takes the path instead of the one it has. */
double fast_simulate_changes_s(const struct fast_simulate *e, int mb, const int *path);
/* fast_simulate_run, where the kept run is the same before from_s: that part is taken from there.
 */
bool fast_simulate_run_from(struct fast_simulate *e, double from_s, double limit_s);

#endif
