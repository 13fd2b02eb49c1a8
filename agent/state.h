/* state.h - the state of an agent, and what its files call of one another. Inside agent/ only.
 *
 *     agent.c      the turn, leaving, troubles     iteration.c  plan, start, reroute, commit
 *     join.c       hello, welcome, peers            tasks.c      arrivals, starts, ends
 *     assign.c     a stage, from the seed or here   reduction.c  the sum over replicas
 *     tensors.c    what peers send                  links.c      what is sent to peers
 *     report.c     events, heartbeats, links        save.c       checkpoints
 *     standby.c       a copy of a stage                weight_server.c      pieces for those who fetch
 *     restore.c    a stage that nobody holds        probe.c      links that may be cut
 *     resend.c     for those who stand in           measure.c    what links can do
 *     early.c      what peers send too early        trains.c     trains of packets, for that
 *
 * The agent stands somewhere between UNASSIGNED and READY. Control messages that need a READY
 * agent whose weights are not just being changed wait in `deferred`, in order; tensors that are
 * ahead of the control messages they belong to wait in `early`.
 */
#ifndef AGENT_STATE_H
#define AGENT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/work/compute.h"
#include "agent/fault.h"
#include "agent/weights/fetch.h"
#include "agent/tensors/delay_queue.h"
#include "agent/work/queue.h"
#include "agent/sums/slices.h"
#include "agent/work/route.h"
#include "agent/work/worker.h"
#include "base/rng.h"
#include "wire/msg.h"
#include "wire/post.h"
#include "wire/train.h"

enum {
	DIAL_ALL = 64,      /* nodes: up to here all peers are dialed at once */
	EVENTS_MOST = 4096, /* of one report */
	ACCUSED_MOST = 8,   /* remembered */
	SERVE_MOST = 256,   /* pieces asked for and not yet sent */
	TENSOR_HEAD_BYTES = 512 /* bytes of a tensor's message before its body: a route of 64 hops takes less */
};
#define EARLY_MOST_BYTES ((size_t)1 << 30) /* tensors that are ahead of their time */
#define TENSOR_MOST_BYTES ((size_t)1 << 30) /* one message: an activation, a piece */
#define RETAINED_BYTES    ((size_t)128 << 20) /* sent to one peer in one class and not acknowledged */
#define ASSEMBLING_BYTES  ((size_t)1 << 30) /* messages that are half here */

/* Another node. */
struct peer {
	bool known;
	struct keys_public key;
	char address[128];
	post_peer_id dial;    /* our connection to it, for sending; 0 none */
	post_peer_id deferred; /* its to us, of which no sums are taken for now; 0 none */
	size_t early_bytes;   /* of its tensors that are early, with what a place costs */
	uint64_t accused_in;  /* the iteration in which it was accused: till its end nothing of it is taken */
	uint64_t misfits_in;  /* the last in which something of it fitted nothing, */
	uint32_t misfits;     /* so often */
	uint64_t malformed;   /* frames of its, as last seen */
	int64_t dial_again_us; /* not before; 0: it has not failed */
	bool used;
	bool blocked;         /* probe.c: a tensor was due and could not leave, since the last look */
	bool doubted;         /* until a probe has come through */
	int64_t doubted_us;   /* since then */
	int64_t stuck_us;     /* nothing has moved since; 0: nothing waits */
	int64_t link_free_us;  /* emulated link that carries one tensor at a time */
	int64_t piece_free_us; /* the same for pieces of weights */
	double held_s; /* activations and gradients: time from task's end to departure, where that is emulated;
			* else from departure to arrival */
	uint64_t n_held;
	double told_s;        /* that time, as last told */
	float bandwidth;      /* bytes per second, as last seen; 0 not known */
	int64_t probed_us;    /* measure.c: the last probe of its round trip, */
	uint32_t n_probes;    /* of so many */
};

struct plan {
	bool known;
	uint64_t epoch;
	struct route *routes;
	uint32_t n_routes;
	struct msg_rank *ranks;
	uint32_t n_ranks;
	uint32_t visits; /* of this node */
	bool split_backward;
};

/* The evaluation that the controller has ordered last. */
struct evaluation {
	uint64_t iteration;
	struct route *routes; /* (n) */
	uint8_t *arrived;     /* (n) bits: the input of the visit, of the loss */
	uint32_t n;
};

enum standing {
	STAND_UNASSIGNED,
	STAND_WAITING,   /* assigned; the worker is still busy with what was before */
	STAND_PREPARING,
	STAND_LOADING,   /* from the copy that is kept here */
	STAND_RESTORING, /* restore.c: from a file, or from its neighbours */
	STAND_MEASURING,
	STAND_READY
};

enum reducing {
	REDUCE_NONE,
	REDUCE_GRADIENT, /* a copy of the gradient is wanted */
	REDUCE_COPYING,
	REDUCE_PARTS,    /* until all parts of my slice are in */
	REDUCE_SUMMING,
	REDUCE_SUMS,     /* until all other slices are in */
	REDUCE_NORMING,
	REDUCE_DONE      /* told; may be committed */
};

/* standby.c: a copy of a stage, beside the own one. */
enum standby_standing {
	STANDBY_NONE,
	STANDBY_WANTED,   /* ordered */
	STANDBY_MAKING,   /* the worker makes room */
	STANDBY_FETCHING, /* pieces come; those that are there follow the commits */
	STANDBY_WHOLE
};

struct standby {
	enum standby_standing standing;
	struct msg_keep order;    /* the newest */
	uint8_t stage;            /* MSG_NO_STAGE */
	size_t parameters;        /* P */
	uint64_t iteration, hash; /* once it is whole */
	struct fetch fetch;
	bool *taken; /* pieces that the job under way puts in */
	struct slices *slices;
	enum reducing reducing; /* NONE, SUMS, NORMING, DONE */
	double sum_squares;
	bool step_wanted; /* once the sum is here */
	bool following;   /* the worker is at it */
	int64_t heard_us; /* of a sum */
	int64_t piece_us; /* that one takes on the way */
	uint32_t most_held; /* pieces at any time, */
	int64_t more_us;    /* and when they became more */
	struct msg_commit commit;
};

/* restore.c: what MSG_RESTORE ordered. */
struct restoring {
	bool wanted;
	struct msg_restore order;
	uint16_t nodes[2]; /* the order's arrays */
	uint8_t stages[2];
	float weights[2];
	uint32_t done; /* of order.n_from */
	struct fetch fetch;
	bool loading; /* the worker is at it */
};

/* save.c: the one checkpoint that is being written. */
struct saving {
	struct worker *worker; /* a thread of its own: disks are slow */
	bool wanted;           /* a copy of the stage, before it steps again */
	bool copying;          /* by the other worker */
	bool writing;
	struct msg_save order;
	struct save_job *job;
};

/* measure.c: the order under way. */
struct measuring {
	enum { MEASURE_NONE, MEASURE_CONNECTING, MEASURE_PROBING, MEASURE_TRAINS, MEASURE_FILLING } standing;
	struct msg_measure order;
	int64_t until_us;     /* for this standing */
	int64_t all_until_us; /* all links are probed until then; 0: they are not */
	uint64_t all_id;
	int64_t wake_us, looked_us;
	double best;          /* rate, bytes per second, at the last look */
	uint32_t n_level;     /* looks in a row at which it had not risen */
};

/* trains.c: trains of packets sent, and those of others that are on their way here. */
enum { TRAINS_PASS = 2, TRAINS_MOST = 12 };
struct train_awaited {
	bool used;
	uint16_t from;
	post_peer_id peer;    /* who told of it */
	uint8_t token[TRAIN_TOKEN_BYTES];
	uint32_t packets;     /* that had come, */
	int64_t since_us;     /* no more of them since */
};
struct trains {
	struct train *socket; /* NULL: none, or not yet */
	bool tried;           /* to open it */
	uint32_t unheard;     /* peers in a row that none of them came to */
	/* those to one peer */
	uint16_t to;
	uint32_t packets;     /* of each in this pass */
	uint8_t tokens[TRAINS_PASS][TRAIN_TOKEN_BYTES]; /* (n_sent) of this pass */
	uint32_t n_sent, n_answered;
	int64_t next_us;      /* the next leaves, or answers are overdue */
	double rates[TRAINS_MOST]; /* (n_rates) bytes per second */
	uint32_t n_rates;
	struct train_awaited awaited[TRAIN_PLACES];
};

/* weight_server.c */
struct weight_server {
	struct msg_fetch asked[SERVE_MOST];
	uint32_t n_asked;
	float *state; /* (3, P) NULL: none; with parameters 0 it is being made */
	uint8_t stage;
	uint64_t iteration;
	size_t parameters;
	int64_t used_us;
	int64_t asked_us, pause_us; /* the last time; the longest lately between two */
};

/* Control messages that wait for the right moment, in order. */
struct deferred {
	struct msg *list;
	size_t n, room;
};

/* A tensor that came too early. */
struct early {
	struct post_message message; /* kept */
	uint16_t from;
	bool plausible;              /* it was looked at */
};

struct agent {
	struct agent_options options;
	char who[32];
	struct stage_device device; /* what computes, as found at the start */
	struct keys_list *admitted;
	struct post *control, *tensors;
	post_peer_id controller;
	char address[128];
	char bound[LINK_ADDRESS_SIZE]; /* where it listens itself */
	uint64_t incarnation, sequence;
	int64_t started_us;
	enum link_reason refusal; /* last told */

	int64_t job_from_us, longest_job_us; /* the worker's job; of those an iteration waits for */
	int64_t turn_us;                     /* the last turn */
	bool stuck;                          /* the job does not come back */
	bool leaving;
	int status;
	int64_t leave_by_us, leave_from_us;
	uint32_t hang_ms;

	/* From WELCOME. */
	bool welcomed;
	struct msg_welcome run; /* its arrays: delay_s and sync_s below, no corpus */
	float *delay_s, *sync_s; /* (n_nodes) */
	struct route_limits limits;
	struct peer *peers; /* (n_nodes) */
	struct compute *compute;
	struct worker *worker;
	struct job job;          /* the worker's */

	enum standing standing;
	struct msg_assign assign;      /* the newest */
	uint8_t stage;                 /* MSG_NO_STAGE */
	size_t parameters, activation; /* P, B * T * C: floats */
	size_t stage_bytes;            /* of the machine's memory */
	bool memory_checked;           /* for what an iteration takes besides */
	uint64_t committed, hash;
	uint64_t told;                 /* iterations that are committed by the controller's newest word; 0: no word yet */
	bool whole;                    /* the stage is here, of `committed` */
	double forward_s, backward_s, loss_s; /* measured */
	uint64_t loading;                     /* iterations that what is being loaded holds */
	struct standby standby;
	struct weight_server weight_server;
	struct restoring restore;
	struct saving save;
	struct model_config config;

	struct plan plans[2];
	uint64_t iteration; /* under way: committed + 1; 0 none */
	uint64_t epoch;
	uint32_t per_shard;
	struct queue *queue;
	struct route *routes; /* (MSG_MICROBATCHES) by id; no hops: not known */
	float **sent;         /* resend.c: by microbatch and kind; NULL: nothing */
	bool zero_wanted;

	/* The running task: computing (the worker has it), then until task_ends_us done. */
	bool computed;
	struct job result;
	int64_t task_began_us, task_ends_us;
	int64_t busy_until_us; /* dispatch overhead */

	struct deferred deferred;      /* until the own stage is settled */
	struct deferred standby_deferred; /* until the copy is */
	struct early *early;
	size_t n_early, room_early, early_bytes;
	struct evaluation evaluation;

	struct slices *slices;
	enum reducing reducing;
	uint16_t copies[MSG_NODES]; /* (n_copies) who gets the sum besides */
	uint32_t n_copies;
	int64_t reducing_since_us;
	double sum_squares;
	bool step_wanted;
	struct msg_commit commit;

	struct measuring measuring;
	struct trains trains;
	struct delay_queue *delay_queue;
	struct faults faults;
	struct rng rng; /* which tries an injected loss takes */

	struct msg_task_event *events; /* (EVENTS_MOST) */
	uint32_t n_events;
	struct msg_task_event *happened; /* (n_happened) in this iteration, for another controller */
	uint32_t n_happened, room_happened;
	bool forgot; /* there was no memory for it */
	struct msg_trouble accused[ACCUSED_MOST]; /* (n_accused) those of others, in this iteration */
	uint32_t n_accused;
	int64_t report_by_us, beat_us, links_us;
	int64_t links_told_us;
	uint32_t n_unlike; /* tensors since then that took another time than was told */
	uint64_t beat, tasks_done, refused, dropped;
	uint64_t rss_bytes;
	int64_t ping_us, ping_at_us;
};

/* agent.c */
void agent_forget_deferred(struct deferred *d);
/* Tells the controller what no honest node sends, and drops what comes from there till the iteration is
 * over: one accusation of a node is enough. */
void agent_accuse(struct agent *a, uint16_t node, const char *what, int64_t now_us);
bool agent_accused(const struct agent *a, uint16_t node);
void agent_trouble(struct agent *a, bool fatal, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Encodes and sends to the controller. */
void agent_tell(struct agent *a, struct msg *m, enum post_flags flags, int64_t now_us);
void agent_exit(struct agent *a, int status, int64_t now_us);

/* join.c */
void join_hello(struct agent *a, int64_t now_us);
void join_welcome(struct agent *a, const struct msg_welcome *w, int64_t now_us);
void join_peers(struct agent *a, const struct msg_peers *p, int64_t now_us);
void join_forget_peer(struct agent *a, uint16_t node); /* and all that is under way to it */
void join_forget_run(struct agent *a);

/* assign.c */
void assign_begin(struct agent *a, const struct msg_assign *m);
bool assign_next_job(struct agent *a, int64_t now_us); /* whether a->job is now one to start */
void assign_job_done(struct agent *a, int64_t now_us);
bool assign_under_way(const struct agent *a);

/* iteration.c */
void iteration_control(struct agent *a, const struct msg *m, int64_t now_us);
void iteration_plan(struct agent *a, const struct msg_plan *p);
void iteration_forget(struct agent *a); /* the one under way, unfinished */
void evaluation_forget(struct agent *a);
bool iteration_next_job(struct agent *a);
void iteration_job_done(struct agent *a, int64_t now_us);
void plan_free(struct plan *p);

/* tasks.c */
/* Queues position t of the route; input is given. */
void tasks_arrive(struct agent *a, const struct route *r, uint32_t position, bool evaluate,
		  float *input, int64_t arrived_us);
bool tasks_next_job(struct agent *a, int64_t now_us);
void tasks_job_done(struct agent *a, int64_t now_us);
void tasks_end_due(struct agent *a, int64_t now_us);
void tasks_drop_running(struct agent *a); /* one that is computed and waits for its end */

/* reduction.c */
void reduction_begin(struct agent *a, const struct msg_reduce *m, int64_t now_us);
void reduction_forget(struct agent *a);
bool reduction_ready(const struct agent *a, uint64_t iteration, uint32_t attempt);
bool reduction_next_job(struct agent *a);
void reduction_job_done(struct agent *a, int64_t now_us);
int reduction_put(struct agent *a, const struct msg *m);

/* standby.c */
void standby_control(struct agent *a, const struct msg *m, int64_t now_us); /* when settled */
bool standby_settled(const struct agent *a);
void standby_abandon(struct agent *a); /* does not wait for a sum any more */
void standby_piece_arrived(struct agent *a, const struct msg *m, int64_t now_us);
bool standby_wants(const struct agent *a, const struct msg_tensor *t);
uint64_t standby_iteration(const struct agent *a); /* of the copy; 0: nothing of it is here */
bool standby_sum_arrived(struct agent *a, const struct msg *m, int *rc);
void standby_turn(struct agent *a, int64_t now_us); /* asks for pieces */
bool standby_next_job(struct agent *a);
void standby_job_done(struct agent *a, int64_t now_us);
void standby_forget(struct agent *a); /* the worker must not be at it */

/* restore.c */
void restore_begin(struct agent *a, const struct msg_restore *m);
bool restore_name_file(struct agent *a, struct job *j, int64_t now_us); /* into the job; false: it has no folder */
bool restore_next_job(struct agent *a, int64_t now_us);
void restore_job_done(struct agent *a, int64_t now_us);
bool restore_piece_arrived(struct agent *a, const struct msg *m,
			   int64_t now_us); /* was it its? */
void restore_turn(struct agent *a, int64_t now_us);
void restore_forget(struct agent *a);

/* save.c */
void save_begin(struct agent *a, const struct msg_save *m, int64_t now_us);
bool save_next_job(struct agent *a);
void save_job_done(struct agent *a, int64_t now_us); /* the copy is made */
void save_turn(struct agent *a, int64_t now_us);     /* looks after the writer */
void save_forget(struct agent *a);                   /* waits for what is being written */

/* weight_server.c */
void weight_server_ask(struct agent *a, const struct msg_fetch *m, int64_t now_us);
bool weight_server_next_job(struct agent *a);
void weight_server_job_done(struct agent *a, int64_t now_us);
void weight_server_turn(struct agent *a, int64_t now_us);
void weight_server_forget(struct agent *a);

/* tensors.c */
enum fate {
	FATE_TAKEN,   /* or worthless, and counted as dropped */
	FATE_EARLY,
	FATE_REFUSED
};
void tensors_arrived(struct agent *a, struct post_message *message, int64_t now_us);
/* plausible: its numbers were looked at; set once they were. */
enum fate tensors_take(struct agent *a, const struct msg *m, bool *plausible, int64_t now_us);
/* Of that node, which is proven, something fits nothing. */
void tensors_misfit(struct agent *a, uint16_t from, int64_t now_us);

void tensors_look_at_frames(struct agent *a, int64_t now_us); /* whose were malformed */

/* early.c: tensors that are ahead of their time */
size_t early_share(const struct agent *a); /* bytes of one peer, at most */
void early_keep(struct agent *a, struct post_message *message, uint16_t from, bool plausible, int64_t now_us);
void early_look_again(struct agent *a, int64_t now_us);
void early_forget(struct agent *a);
void early_forget_peer(struct agent *a, uint16_t node);
void early_let_in(struct agent *a, uint16_t node); /* its sums are taken again, if they were not */

/* resend.c */
int resend_init(struct agent *a);
void resend_forget(struct agent *a);
void resend_drop(struct agent *a, uint32_t microbatch); /* it begins again, maybe by another order of stages */
void resend_keep(struct agent *a, const struct task *t, const float *out); /* an ended task's output */
/* To those who stand in by r for nodes of was, which went on. */
void resend_to_others(struct agent *a, const struct route *was, const struct route *r, int64_t now_us);

/* links.c */
size_t agent_message_bytes(const struct agent *a); /* most of a message to a peer */
size_t links_activation_bytes(const struct agent *a); /* of an activation or its gradient on its way */
size_t links_slice_bytes(const struct agent *a);      /* of a slice's piece, at most */
/* Sends the output of r's position t to position t + 1's node; body is given. */
void links_send_output(struct agent *a, const struct route *r, uint32_t position,
		       bool evaluate, float *body, int64_t ended_us);
/* A slice, a state: head and body (given, by one of its users: delay_queue.h) to a node, no sooner than due. */
void links_send(struct agent *a, uint16_t to, const struct msg_tensor *head, float *body,
		uint32_t *users, size_t floats, int64_t ready_us, int64_t due_us);
int64_t links_sync_us(const struct agent *a, uint16_t to, uint32_t replicas);
/* A piece of a stage of so many parameters; an emulated link carries one after another. */
void links_send_piece(struct agent *a, uint16_t to, const struct msg_tensor *head, float *body,
		      size_t floats, size_t parameters, int64_t now_us);
void links_fetch(struct agent *a, uint16_t from, uint8_t stage, uint32_t piece, int64_t now_us);
void links_pump(struct agent *a, int64_t now_us);
/* Drops held tensors of iterations up to this one. */
void links_drop_old(struct agent *a, uint64_t iteration);
bool links_dial(struct agent *a, uint16_t node);
/* How long it may take until something comes back on the link: a round trip with its spread, and what
 * the bytes under way need. */
int64_t links_expected_us(const struct agent *a, uint16_t to);
/* And until a piece that is asked for there is here, if as many bytes a second come as go; 0: not known. */
int64_t links_piece_us(const struct agent *a, uint16_t from);

/* measure.c */
void measure_begin(struct agent *a, const struct msg_measure *m, int64_t now_us);
void measure_turn(struct agent *a, int64_t now_us);
void measure_forget(struct agent *a);

/* trains.c */
enum trains_standing { TRAINS_UNDER_WAY, TRAINS_TOLD, TRAINS_UNHEARD };
void trains_open(struct agent *a);
/* False: there is nothing to send them with, or nobody hears them. */
bool trains_begin(struct agent *a, uint16_t to, int64_t now_us);
/* rate: what they told, bytes per second. last: what is known now has to do, if anything is. */
enum trains_standing trains_turn(struct agent *a, bool last, double *rate, int64_t now_us);
void trains_announced(struct agent *a, const struct msg_train *m, post_peer_id peer, int64_t now_us);
void trains_answered(struct agent *a, const struct msg_train_heard *m);
/* Answers for the trains that are over. True: some are awaited. */
bool trains_answer(struct agent *a, int64_t now_us);
void trains_forget(struct agent *a);

/* probe.c */
/* Looks at all links; those that are stuck to out (MSG_STUCK). Returns how many. */
uint32_t probe_links(struct agent *a, struct msg_stuck *out, int64_t now_us);

/* report.c */
void report_rate(struct peer *p, double bytes_per_s, bool limited); /* limited: it never had enough to carry */
void report_way(struct agent *a, uint16_t to, double held_s, int64_t now_us); /* a tensor's, until it left */
void report_event(struct agent *a, enum work_event type, const struct task *t, int64_t at_us,
		  float loss);
void report_flush(struct agent *a, int64_t now_us);
/* What of the iteration is remembered for another controller: forgets, tells it. */
void report_forget(struct agent *a);
void report_recall(struct agent *a, const struct msg_recall *r, int64_t now_us);
void report_turn(struct agent *a, int64_t now_us);
void report_links(struct agent *a, int64_t now_us); /* all of them, now */ /* what is due */

#endif
