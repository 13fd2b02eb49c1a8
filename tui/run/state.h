/* state.h - the console's knowledge of a run, made from the controller's messages.
 *
 * The state has no clock, no screen and no socket. state_apply takes messages in the order of their
 * arrival, and the same messages always give the same state. No message contains the positions of
 * microbatches, the queues or the collisions; tasks.c derives them from task events and routes.
 *
 * Times are microseconds on the controller's clock. Every view reads the struct; only state.c,
 * plans.c and tasks.c write it. All sizes are limited; rings keep the newest elements.
 */
#ifndef TUI_STATE_H
#define TUI_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/skip_schedule.h"
#include "wire/msg.h"

enum {
	STATE_SEGMENTS = 512, /* number of tasks that are kept for each node, the newest ones */
	/* Number of ended waits that are kept for each node, the newest ones. */
	STATE_WAITS = 128,
	/* Number of waiting tasks that are kept for each node; further ones are only counted. */
	STATE_QUEUE = 64,
	STATE_COLLISIONS = 512,
	STATE_NOTES = 4096,
	STATE_FAULTS = 64,
	STATE_CANDIDATES = 24,
	STATE_CHAIN = 2 * MSG_STAGES + 1,
	/* Limit of the number of iterations and of validations that are kept. */
	STATE_HISTORY = 1 << 18
};

#define STATE_NOBODY UINT32_MAX

/* A task that a node runs or has run. */
struct state_segment {
	int64_t start_us;
	int64_t end_us; /* end of the task; INT64_MAX: it still runs */
	uint64_t iteration;
	uint32_t microbatch;
	uint8_t kind; /* kind of the task (enum task_kind) */
};

/* The time that a task waits at its node, from its arrival to its start. */
struct state_wait {
	int64_t from_us;
	int64_t to_us; /* start of the task; INT64_MAX: it still waits */
	uint64_t iteration;
	uint32_t microbatch;
	/* The microbatch whose task the node runs instead; STATE_NOBODY: unknown. */
	uint32_t blocker;
	uint16_t node;
	uint8_t kind;
	/* True for a microbatch's first task, whose wait does not count as a collision. */
	bool first;
};

struct state_node {
	bool known;
	struct msg_see_node see;
	bool running; /* the node's newest task has not ended */
	uint8_t slots;
	/* Number of all tasks so far; the newest one is at index (n_segments - 1) %
	 * STATE_SEGMENTS. */
	uint64_t n_segments;
	uint64_t n_waits;
	uint32_t n_queue;
	uint32_t queue_overflow;
	int64_t task_us; /* time of the node's newest event */
	struct state_segment segments[STATE_SEGMENTS];
	struct state_wait waits[STATE_WAITS];
	struct state_wait queue[STATE_QUEUE]; /* waiting tasks, in order of arrival */
};

/* One task of a microbatch, by its position in the chain of tasks. A time is 0 until it is
 * known. */
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

/* A microbatch of the current iteration. wire/chain.h defines the chain positions. */
struct state_flight {
	bool known;
	bool begun;      /* an event of the current iteration has arrived */
	uint32_t reruns; /* number of times that the microbatch ran again in this iteration */
	struct route route;
	uint8_t phase; /* a value of enum flight_phase */
	uint32_t position;
	int64_t since_us;
	float loss; /* loss of the microbatch; 0: not computed yet */
	struct state_hop chain[STATE_CHAIN];
};

struct state_plan {
	bool known;
	/* The message with the plan, without its arrays: pointers are NULL, counts are 0. */
	struct msg_see_plan see;
	uint32_t visits[MSG_STAGES];
	uint32_t n_routes;
	/* Number of paths that differ from the previous plan's paths; for a candidate, from the
	 * paths of the plan in force. */
	uint32_t paths_changed;
	/* The predicted tasks of node i are tasks[first[i]] to tasks[first[i + 1] - 1]. Their times
	 * count from the start of the iteration. */
	uint32_t *first; /* array of MSG_NODES + 1 */
	struct state_segment *tasks;
	uint32_t n_tasks;
};

/* The sequence numbers of the controller's messages. */
struct state_stream {
	uint64_t sequence; /* sequence number of the newest message; 0: none */
	uint64_t gaps;     /* number of messages that were lost */
	bool has_snapshot;
	bool needs_snapshot; /* a message was lost, so the console must request a snapshot */
};

/* The current iteration. Times are 0 until they are known. */
struct state_iteration {
	uint64_t iteration; /* number of the current iteration, to which `flights` belongs */
	int64_t start_us;   /* start of the first task */
	int64_t end_us;     /* end of the newest task that has ended */
	int64_t previous_start_us;
	/* number of collisions so far, including those that have not ended */
	uint32_t collisions;
	int64_t wait_us;     /* total waiting time of the collisions that have ended */
};

/* Lists that grow with the run. A full list drops its oldest elements. */
struct state_history {
	struct msg_see_iteration *iterations; /* in ascending order of iterations */
	size_t n_iterations, room_iterations;
	struct msg_see_validation *validations; /* in ascending order of iterations */
	size_t n_validations, room_validations;
	struct msg_see_note *notes; /* in ascending order of id; at most STATE_NOTES */
	size_t n_notes;
};

struct state {
	bool has_run;
	struct msg_see_run run;
	struct msg_see_status status;
	struct state_stream stream;
	struct state_node *nodes; /* array of MSG_NODES */
	uint32_t n_nodes;         /* 1 + the highest node id that is known, at least run.n_nodes */
	struct state_iteration current;
	/* Array of n_flights: the current iteration's microbatches, by number. */
	struct state_flight *flights;
	uint32_t n_flights;
	struct state_plan plan;
	/* Plans for comparison; each has a different name. */
	struct state_plan candidates[STATE_CANDIDATES];
	uint32_t n_candidates;
	/* Collisions that have ended, as a ring: number i is at index i % STATE_COLLISIONS. */
	struct state_wait collisions[STATE_COLLISIONS];
	uint64_t n_collisions;
	struct state_history history;
	struct msg_see_fault faults[STATE_FAULTS]; /* the injected failures that are active */
	uint32_t n_faults;
	struct msg_link *links; /* links, in ascending order of (from, to) */
	size_t n_links, room_links;
	uint32_t link_reports; /* number of messages with links that were applied */
};

struct state *state_new(void);
/* Frees the state; s may be NULL. */
void state_free(struct state *s);

/* Applies a message of the controller. Ignores messages of other kinds. The caller keeps the
 * message. */
void state_apply(struct state *s, const struct msg *m);
/* Applies task events. state_apply calls it. */
void state_apply_tasks(struct state *s, const struct msg_see_tasks *t);
/* Sets the paths of the current iteration's microbatches from these routes. */
void state_take_routes(struct state *s, const struct route *routes, uint32_t n);

/* Applies a plan. state_apply calls it. */
void state_apply_plan(struct state *s, const struct msg_see_plan *p);
/* Makes an empty plan. state_plan_fini frees its arrays. */
void state_plan_init(struct state_plan *p);
void state_plan_fini(struct state_plan *p);
/* Fills *to from a message. Sets paths_changed to the number of paths that differ from the paths
 * in s. */
void state_plan_fill(const struct state *s, struct state_plan *to,
		     const struct msg_see_plan *p);
/* Limits a time from a message to a range in which sums and differences cannot overflow. */
int64_t state_bound_us(int64_t t_us);

/* ---- questions ---- */

/* Returns the newest task of a node; NULL: none. */
const struct state_segment *state_newest(const struct state_node *n);
/* Returns the i-th newest task (0: the newest); NULL: it is not kept. */
const struct state_segment *state_segment_back(const struct state_node *n, uint64_t i);
/* Returns how many percent of the time between from_us and to_us the node runs tasks. */
int state_busy_percent(const struct state_node *n, int64_t from_us, int64_t to_us);
/* Returns the i-th newest ended wait at a node (0: the newest); NULL: it is not kept. */
const struct state_wait *state_wait_back(const struct state_node *n, uint64_t i);
/* Returns the i-th newest ended collision of the run (0: the newest); NULL: it is not kept. */
const struct state_wait *state_collision_back(const struct state *s, uint64_t i);
/* Returns a microbatch of the current iteration; NULL: no route of this number is known. */
const struct state_flight *state_flight(const struct state *s, uint32_t microbatch);
/* Returns true if the first task of the microbatch has started and the last has not ended. */
bool state_flight_moves(const struct state_flight *f);
/* Return the node, the kind and the stage of a microbatch's task at a chain position. */
uint16_t state_chain_node(const struct state_flight *f, uint32_t position);
enum task_kind state_chain_kind(const struct state_flight *f, uint32_t position);
uint8_t state_chain_stage(const struct state_flight *f, uint32_t position);
/* Returns the number of collisions that last now. */
uint32_t state_waiting(const struct state *s);
/* Returns true if the node is suspect or an operator has injected a slowdown. */
bool state_is_slow(const struct state *s, const struct state_node *n);
/* Sorts n values and returns their median; 0 if n is 0. */
float state_median(float *values, size_t n);
/* Returns the median of |measured / predicted - 1| over the newest iterations, at most `most` of
 * them. Sets *n to the number of these iterations. */
float state_prediction_error(const struct state *s, size_t most, uint32_t *n);
/* Returns a candidate by its name; NULL: none. */
const struct state_plan *state_candidate(const struct state *s, const char *name);
/* Returns the link from one node to another; NULL: it is unknown. */
const struct msg_link *state_link(const struct state *s, uint16_t from, uint16_t to);
/* Returns true before the run's first iteration. The status then names the current step. */
bool state_is_starting(const struct state *s);
/* Returns how many stages a microbatch may skip at most. Stages that every microbatch must visit
 * cannot be skipped. */
long state_most_skipped(const struct state *s);
/* Returns the skip ratio of the plan in force (skip_share_pack). */
int64_t state_skip_ratio(const struct state *s);
/* Writes a skip ratio as "2" stages, or "2 in 30%" of the microbatches. Returns the text. */
const char *state_ratio_text(int64_t ratio, char text[SKIP_SHARE_TEXT]);
/* Returns true if the start of this run includes the step. */
bool state_has_step(const struct state *s, enum gather_step step);
/* Returns true before the first iteration of a run that measures its links. */
bool state_is_measuring(const struct state *s);
/* Returns true if no node has a stage yet. Messages then report stage 0 for
 * every node. */
bool state_has_no_stages(const struct state *s);
/* Returns the number of warnings and alerts that are not acknowledged. */
uint32_t state_alerts(const struct state *s);
/* Converts real microseconds to plan seconds. */
double state_plan_s(const struct state *s, int64_t real_us);

#endif
