/* state.h - what the console knows of a run: the fold of the controller's messages.
 *
 * Pure: no clock, no screen, no socket. state_apply takes messages in the order they came; the
 * same messages give the same state. Microbatches' positions, queues and collisions are not
 * told but derived here, from task events and routes (tasks.c).
 *
 * Times are microseconds on the controller's clock. The struct is plain and read by every view;
 * only state.c, plans.c and tasks.c write it. Everything is bounded: rings keep the newest.
 */
#ifndef TUI_STATE_H
#define TUI_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

enum {
	STATE_SEGMENTS = 512, /* tasks remembered per node */
	STATE_WAITS = 128,    /* ended waits remembered per node */
	STATE_QUEUE = 64,     /* waiting tasks listed per node; more are only counted */
	STATE_COLLISIONS = 512,
	STATE_NOTES = 4096,
	STATE_FAULTS = 64,
	STATE_CANDIDATES = 16,
	STATE_CHAIN = 2 * MSG_STAGES + 1,
	STATE_HISTORY = 1 << 18 /* iterations, validations */
};

#define STATE_NOBODY UINT32_MAX

/* One task on one node. */
struct state_segment {
	int64_t start_us;
	int64_t end_us; /* INT64_MAX: still running */
	uint64_t iteration;
	uint32_t microbatch;
	uint8_t kind; /* enum work_kind */
};

/* A task that had to wait after it arrived. */
struct state_wait {
	int64_t from_us;
	int64_t to_us; /* INT64_MAX: still waiting */
	uint64_t iteration;
	uint32_t microbatch;
	uint32_t blocker; /* a microbatch; STATE_NOBODY unknown */
	uint16_t node;
	uint8_t kind;
	bool first; /* the microbatch's first task: queued, but no collision */
};

struct state_node {
	bool known;
	struct msg_see_node see;
	bool running; /* the newest segment has not ended */
	uint8_t slots;
	uint64_t n_segments; /* ever; the newest is at (n_segments - 1) % STATE_SEGMENTS */
	uint64_t n_waits;
	uint32_t n_queue;
	uint32_t queue_overflow;
	int64_t task_us; /* of the newest event here */
	struct state_segment segments[STATE_SEGMENTS];
	struct state_wait waits[STATE_WAITS];
	struct state_wait queue[STATE_QUEUE]; /* waiting now, by arrival */
};

/* Where a microbatch's task of one chain position stands. 0: not yet. */
struct state_hop {
	int64_t arrived_us, started_us, ended_us;
	uint32_t blocker;
};

enum flight_phase {
	FLIGHT_UNBORN,
	FLIGHT_WAITING,
	FLIGHT_RUNNING,
	FLIGHT_TRAVELLING,
	FLIGHT_DONE
};

/* One microbatch of the iteration under way. Chain positions are those of struct msg_route. */
struct state_flight {
	bool known, begun; /* begun: events of this iteration came */
	uint32_t reruns;   /* in this iteration; attempt itself need not begin at 0 */
	uint32_t microbatch, attempt, shard, wave;
	uint32_t since_attempt; /* in which it last began: its later ones only have others stand in */
	uint32_t n_hops;
	uint16_t nodes[MSG_STAGES];
	uint8_t stages[MSG_STAGES];
	uint8_t phase; /* enum flight_phase */
	uint32_t position;
	int64_t since_us;
	float loss; /* 0 until known */
	struct state_hop chain[STATE_CHAIN];
};

struct state_plan {
	bool known;
	struct msg_see_plan see; /* its arrays are not kept here: all NULL, counts 0 */
	uint32_t visits[MSG_STAGES];
	uint32_t n_routes;
	uint32_t paths_changed; /* against the plan before; a candidate's: against the one in
				   force */
	/* Predicted tasks by node: those of node i are [first[i], first[i + 1]). Times from the
	 * iteration's start. */
	uint32_t *first; /* (MSG_NODES + 1) */
	struct state_segment *tasks;
	uint32_t n_tasks;
};

/* The numbered messages of the controller. */
struct state_stream {
	uint64_t sequence; /* of the newest message; 0 none */
	uint64_t gaps;     /* number of messages that were lost */
	bool has_snapshot;
	bool needs_snapshot; /* a message was lost: the console has to attach again */
};

/* The iteration under way. Times are 0 until they are known. */
struct state_iteration {
	uint64_t iteration; /* of the flights and of the newest tasks */
	int64_t start_us;   /* start of its first task */
	int64_t end_us;     /* end of its last task so far */
	int64_t previous_start_us;
	uint32_t collisions; /* those that still last included */
	int64_t wait_us;     /* of the collisions that have ended */
};

/* Records that grow without end; each array drops its oldest half when it is full. */
struct state_history {
	struct msg_see_iteration *iterations; /* ascending */
	size_t n_iterations, room_iterations;
	struct msg_see_validation *validations; /* ascending */
	size_t n_validations, room_validations;
	struct msg_see_note *notes; /* by id, ascending; at most STATE_NOTES */
	size_t n_notes;
};

struct state {
	bool have_run;
	struct msg_see_run run;
	struct msg_see_status status;
	struct state_stream stream;
	struct state_node *nodes; /* (MSG_NODES) */
	uint32_t n_nodes;         /* 1 + the highest known id, at least run.n_nodes */
	struct state_iteration current;
	struct state_flight *flights; /* (n_flights) by microbatch id */
	uint32_t n_flights;
	struct state_plan plan;
	struct state_plan candidates[STATE_CANDIDATES]; /* not in force; names are unique */
	uint32_t n_candidates;
	struct state_wait collisions[STATE_COLLISIONS]; /* ended ones: a ring, newest last */
	uint64_t n_collisions;
	struct state_history history;
	struct msg_see_fault faults[STATE_FAULTS]; /* active ones */
	uint32_t n_faults;
	struct msg_link *links; /* by (from, to) */
	size_t n_links, room_links;
};

struct state *state_new(void);
/* NULL is allowed. */
void state_free(struct state *s);

/* Applies a message of the controller. Other messages are ignored. The message stays the caller's. */
void state_apply(struct state *s, const struct msg *m);
/* Tasks alone; state_apply calls it. */
void state_apply_tasks(struct state *s, const struct msg_see_tasks *t);
/* Routes of the iteration under way: flights take their paths from them. */
void state_take_routes(struct state *s, const struct msg_route *routes, uint32_t n);

/* Plans alone, and their arrays. */
void state_apply_plan(struct state *s, const struct msg_see_plan *p);
/* Makes an empty plan with its arrays, which state_plan_fini frees. */
void state_plan_init(struct state_plan *p);
void state_plan_fini(struct state_plan *p);
/* Fills a plan from a message. paths_changed counts differences from the routes in s. */
void state_plan_fill(const struct state *s, struct state_plan *to,
		     const struct msg_see_plan *p);
/* A time from outside, brought into a range whose differences and sums do not overflow. */
int64_t state_bound_us(int64_t t_us);

/* ---- questions ---- */

/* The newest task of a node, NULL none yet. */
const struct state_segment *state_newest(const struct state_node *n);
/* The i-th newest (0 newest), NULL when it is forgotten or never was. */
const struct state_segment *state_segment_back(const struct state_node *n, uint64_t i);
/* The i-th newest wait at this node, NULL when it is forgotten or never was. */
const struct state_wait *state_wait_back(const struct state_node *n, uint64_t i);
/* The i-th newest wait of any node. */
const struct state_wait *state_collision_back(const struct state *s, uint64_t i);
/* A microbatch of this iteration, NULL when its plan has none of that number. */
const struct state_flight *state_flight(const struct state *s, uint32_t microbatch);
/* On its way: not where it begins, not done. */
bool state_flight_moves(const struct state_flight *f);
/* The node at which a chain position's task runs, its kind, its stage. */
uint16_t state_chain_node(const struct state_flight *f, uint32_t position);
enum work_kind state_chain_kind(const struct state_flight *f, uint32_t position);
uint8_t state_chain_stage(const struct state_flight *f, uint32_t position);
/* Waiting tasks that are collisions, now. */
uint32_t state_waiting(const struct state *s);
/* Whether the node's tasks take clearly longer than planned. */
bool state_is_slow(const struct state *s, const struct state_node *n);
/* Puts them in order. 0 where there are none. */
float state_median(float *values, size_t n);
/* Median of |measured/predicted - 1| over the newest `most` iterations; *n how many. */
float state_prediction_error(const struct state *s, size_t most, uint32_t *n);
/* A plan the controller sent in answer to Compare, by its name; NULL none. */
const struct state_plan *state_candidate(const struct state *s,
					 const char *name); /* NULL none */
/* What is known of one direction between two nodes; NULL nothing. */
const struct msg_link *state_link(const struct state *s, uint16_t from, uint16_t to);
/* The steps before a run's first iteration are under way: which, the status says. */
bool state_starts(const struct state *s);
bool state_has_step(const struct state *s, enum gather_step step); /* the run goes through it */
bool state_measures(const struct state *s);  /* these steps, and links are measured in one of them */
bool state_unplaced(const struct state *s);  /* no node has a stage yet, whatever is told of it */
/* Notes that stand: warnings and alerts not acknowledged. */
uint32_t state_alerts(const struct state *s);
/* Real microseconds to plan seconds. */
double state_plan_s(const struct state *s, int64_t real_us);

#endif
