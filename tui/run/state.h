/* state.h - the console's knowledge of a run, made from the controller's messages.
 *
 * The state has no clock, no screen and no socket. state_apply takes messages in the order of their
 * arrival; the same messages give the same state. Positions of microbatches, queues and collisions
 * are not in messages: tasks.c derives them from task events and routes.
 *
 * Times are microseconds on the controller's clock. Every view reads the struct; only state.c,
 * plans.c and tasks.c write it. All sizes are bounded: rings keep the newest elements.
 */
#ifndef TUI_STATE_H
#define TUI_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/skip_schedule.h"
#include "wire/msg.h"

enum {
	STATE_SEGMENTS = 512, /* number of a node's newest tasks that are kept */
	STATE_WAITS = 128,    /* number of a node's newest ended waits that are kept */
	/* Number of a node's waiting tasks that are kept. Tasks beyond are only counted. */
	STATE_QUEUE = 64,
	STATE_COLLISIONS = 512,
	STATE_NOTES = 4096,
	STATE_FAULTS = 64,
	STATE_CANDIDATES = 24,
	STATE_CHAIN = 2 * MSG_STAGES + 1,
	STATE_HISTORY = 1 << 18 /* number of iterations and of validations that are kept */
};

#define STATE_NOBODY UINT32_MAX

/* One task on one node. */
struct state_segment {
	int64_t start_us;
	int64_t end_us; /* end of the task; INT64_MAX: still running */
	uint64_t iteration;
	uint32_t microbatch;
	uint8_t kind; /* kind of the task (enum task_kind) */
};

/* The wait of a task after its arrival. */
struct state_wait {
	int64_t from_us;
	int64_t to_us; /* end of the wait; INT64_MAX: still waiting */
	uint64_t iteration;
	uint32_t microbatch;
	uint32_t blocker; /* the microbatch that the task waits for; STATE_NOBODY: unknown */
	uint16_t node;
	uint8_t kind;
	bool first; /* the microbatch's first task, whose wait is not a collision */
};

struct state_node {
	bool known;
	struct msg_see_node see;
	bool running; /* the newest segment has not ended */
	uint8_t slots;
	/* Number of tasks in total; the newest is at (n_segments - 1) % STATE_SEGMENTS. */
	uint64_t n_segments;
	uint64_t n_waits;
	uint32_t n_queue;
	uint32_t queue_overflow;
	int64_t task_us; /* time of the newest event */
	struct state_segment segments[STATE_SEGMENTS];
	struct state_wait waits[STATE_WAITS];
	struct state_wait queue[STATE_QUEUE]; /* waiting tasks, in order of arrival */
};

/* The task of a microbatch at one chain position. Times are 0 until they are known. */
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

/* One microbatch of the iteration under way. Chain positions are those of struct route. */
struct state_flight {
	bool known;
	bool begun;      /* events of this iteration have arrived */
	uint32_t reruns; /* number of reruns in this iteration; the first attempt may be above 0 */
	struct route route;
	uint8_t phase; /* a value of enum flight_phase */
	uint32_t position;
	int64_t since_us;
	float loss; /* loss of the microbatch; 0 until it is known */
	struct state_hop chain[STATE_CHAIN];
};

struct state_plan {
	bool known;
	/* The message without its arrays: their pointers are NULL and their counts 0. */
	struct msg_see_plan see;
	uint32_t visits[MSG_STAGES];
	uint32_t n_routes;
	/* Number of paths that differ from the previous plan or, for a candidate, from the plan in
	 * force. */
	uint32_t paths_changed;
	/* Predicted tasks by node: those of node i are first[i] to first[i + 1] - 1. Times count
	 * from the iteration's start. */
	uint32_t *first; /* array of MSG_NODES + 1: first predicted task of each node */
	struct state_segment *tasks;
	uint32_t n_tasks;
};

/* The numbered messages of the controller. */
struct state_stream {
	uint64_t sequence; /* sequence number of the newest message; 0: none */
	uint64_t gaps;     /* number of times that messages were lost */
	bool has_snapshot;
	bool needs_snapshot; /* a message was lost: the console has to attach again */
};

/* The iteration under way. Times are 0 until they are known. */
struct state_iteration {
	uint64_t iteration; /* iteration to which the flights and the newest tasks belong */
	int64_t start_us;   /* start of the iteration's first task */
	int64_t end_us;     /* end of the iteration's last task so far */
	int64_t previous_start_us;
	uint32_t collisions; /* number of collisions, including those that still last */
	int64_t wait_us;     /* waiting time of the collisions that have ended */
};

/* Records that grow without end; each array drops its oldest half when it is full. */
struct state_history {
	struct msg_see_iteration *iterations; /* in ascending order of iterations */
	size_t n_iterations, room_iterations;
	struct msg_see_validation *validations; /* in ascending order of iterations */
	size_t n_validations, room_validations;
	struct msg_see_note *notes; /* notes in ascending order of id; at most STATE_NOTES */
	size_t n_notes;
};

struct state {
	bool has_run;
	struct msg_see_run run;
	struct msg_see_status status;
	struct state_stream stream;
	struct state_node *nodes; /* array of MSG_NODES */
	uint32_t n_nodes;         /* 1 + the highest known id, at least run.n_nodes */
	struct state_iteration current;
	struct state_flight *flights; /* array of n_flights: microbatches of the iteration, by id */
	uint32_t n_flights;
	struct state_plan plan;
	/* Plans that are not in force; their names are unique. */
	struct state_plan candidates[STATE_CANDIDATES];
	uint32_t n_candidates;
	/* Collisions that have ended: a ring, newest last. */
	struct state_wait collisions[STATE_COLLISIONS];
	uint64_t n_collisions;
	struct state_history history;
	struct msg_see_fault faults[STATE_FAULTS]; /* the injected failures that are active */
	uint32_t n_faults;
	struct msg_link *links; /* links, in ascending order of (from, to) */
	size_t n_links, room_links;
	uint32_t link_reports; /* number of messages with links so far */
};

struct state *state_new(void);
/* s may be NULL. */
void state_free(struct state *s);

/* Applies a message of the controller. Messages of other kinds are ignored. The caller still owns
 * the message. */
void state_apply(struct state *s, const struct msg *m);
/* Applies task events; called by state_apply. */
void state_apply_tasks(struct state *s, const struct msg_see_tasks *t);
/* Takes the routes of the current iteration as the paths of its microbatches. */
void state_take_routes(struct state *s, const struct route *routes, uint32_t n);

/* Applies a plan; called by state_apply. */
void state_apply_plan(struct state *s, const struct msg_see_plan *p);
/* Makes an empty plan with its arrays, which state_plan_fini frees. */
void state_plan_init(struct state_plan *p);
void state_plan_fini(struct state_plan *p);
/* Fills a plan from a message. paths_changed is set to the number of paths that differ from the
 * routes in s. */
void state_plan_fill(const struct state *s, struct state_plan *to,
		     const struct msg_see_plan *p);
/* Limits a time from a message to a range whose sums and differences cannot overflow. */
int64_t state_bound_us(int64_t t_us);

/* ---- questions ---- */

/* Returns the newest task of a node; NULL: none. */
const struct state_segment *state_newest(const struct state_node *n);
/* Returns the i-th newest task (0: the newest); NULL: it is not kept. */
const struct state_segment *state_segment_back(const struct state_node *n, uint64_t i);
/* Returns the percentage of the time from from_us to to_us for which the node runs tasks. */
int state_busy_percent(const struct state_node *n, int64_t from_us, int64_t to_us);
/* Returns the i-th newest wait at a node; NULL: it is not kept. */
const struct state_wait *state_wait_back(const struct state_node *n, uint64_t i);
/* Returns the i-th newest collision of all nodes; NULL: it is not kept. */
const struct state_wait *state_collision_back(const struct state *s, uint64_t i);
/* Returns a microbatch of the current iteration; NULL: the plan has none of this number. */
const struct state_flight *state_flight(const struct state *s, uint32_t microbatch);
/* Returns true if the microbatch has left its start and is not done. */
bool state_flight_moves(const struct state_flight *f);
/* Return the node, the kind and the stage of the task at a chain position. */
uint16_t state_chain_node(const struct state_flight *f, uint32_t position);
enum task_kind state_chain_kind(const struct state_flight *f, uint32_t position);
uint8_t state_chain_stage(const struct state_flight *f, uint32_t position);
/* Returns the number of waiting tasks that are collisions. */
uint32_t state_waiting(const struct state *s);
/* Returns true if the node is suspect or has an injected slowdown. */
bool state_is_slow(const struct state *s, const struct state_node *n);
/* Returns the median of n values, which are sorted; 0 if n is 0. */
float state_median(float *values, size_t n);
/* Returns the median of |measured / predicted - 1| over the newest `most` iterations; *n gets their
 * number. */
float state_prediction_error(const struct state *s, size_t most, uint32_t *n);
/* Returns a candidate by its name; NULL: none. */
const struct state_plan *state_candidate(const struct state *s, const char *name);
/* Returns the link from one node to another; NULL: it is unknown. */
const struct msg_link *state_link(const struct state *s, uint16_t from, uint16_t to);
/* Returns true during the steps before a run's first iteration. The status has the current step. */
bool state_is_starting(const struct state *s);
/* Returns how many stages a microbatch may skip: all but those that every microbatch visits. */
long state_most_skipped(const struct state *s);
/* Returns the skip ratio of the plan in force (skip_share_pack). */
int64_t state_skip_ratio(const struct state *s);
/* Writes "2" or "2 in 30%" and returns the text. */
const char *state_ratio_text(int64_t ratio, char text[SKIP_SHARE_TEXT]);
/* Returns true if this run has the step. */
bool state_has_step(const struct state *s, enum gather_step step);
/* Returns true during the first steps of a run that measures its links. */
bool state_is_measuring(const struct state *s);
/* Returns true if no node has a stage yet. Messages then report stage 0 for every node. */
bool state_has_no_stages(const struct state *s);
/* Returns the number of unacknowledged warnings and alerts. */
uint32_t state_alerts(const struct state *s);
/* Converts real microseconds to plan seconds. */
double state_plan_s(const struct state *s, int64_t real_us);

#endif
