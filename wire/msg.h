/* msg.h - every message that travels between the programs, and their one codec.
 *
 * A message is an envelope (magic, version, type, sequence) and the fields of its struct in the
 * order of its table in layouts.c: fixed width, little endian, text and arrays behind their count.
 * Decoding checks every length and limit before use and accepts only what it would itself encode:
 * no trailing bytes (a `body` apart), no number out of its stated range, text without NUL.
 * Pure: no sockets, no clock. Sealing is link.h's, delivery post.h's.
 *
 * Times are microseconds on the sender's monotonic clock unless a name says otherwise; the
 * controller translates agents' clocks to its own before it tells consoles.
 */
#ifndef WIRE_MSG_H
#define WIRE_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/faults.h"
#include "wire/message_kinds.h"
#include "wire/names.h"
#include "wire/node_fields.h"

#define MSG_VERSION 5
enum {
	MSG_NODES = 1000,        /* most nodes of a cluster */
	MSG_STAGES = 64,         /* most stages, so most hops of a path */
	MSG_MICROBATCHES = 8192, /* most microbatches of an iteration */
	MSG_STUCK = 16,          /* most links of a heartbeat */
	MSG_NOBODY = 0xffff,     /* no node */
	MSG_NO_STAGE = 255
};

enum msg_type {
#define ENUMERATOR(NAME, member, number, body) MSG_##NAME = (number),
	MESSAGE_KINDS(ENUMERATOR)
#undef ENUMERATOR
};

/* ---- shared pieces ---- */

enum work_kind { WORK_FORWARD, WORK_LOSS, WORK_BACKWARD, WORK_EVALUATE };

/* One microbatch's way through the nodes; its tasks are a chain (wire/chain.h). */
struct msg_route {
	uint32_t microbatch;
	uint32_t attempt;   /* rises with every rerun within an iteration, and with every controller */
	uint32_t shard;     /* whose data: the data node's rank when the run began */
	uint32_t wave;      /* which of the shard's microbatches of this iteration */
	uint32_t n_hops;
	const uint16_t *nodes;  /* (n_hops) node ids, the data node first */
	const uint8_t *stages;  /* (n_hops) the stage visited at each hop */
	uint32_t since;     /* <= attempt: the one in which it last began. Later ones only have others stand in for
			     * nodes that died: what all others have done since is good */
};

/* A node's priority list: ready tasks run in this order (formats.md, `order`). */
struct msg_rank {
	uint32_t microbatch;
	uint8_t kind; /* enum work_kind */
};

enum work_event { WORK_WAITS, WORK_STARTS, WORK_ENDS };

struct msg_task_event {
	uint8_t type; /* enum work_event */
	uint8_t kind; /* enum work_kind */
	uint16_t node;
	uint16_t blocker_node; /* the node itself; kept for consoles */
	uint32_t microbatch;
	uint32_t attempt;
	uint32_t blocker;  /* WAITS, STARTS: the microbatch that ran or held the slot; UINT32_MAX none */
	int64_t at_us;     /* when it began to wait, started or ended */
	int64_t arrived_us;
	float loss;        /* ENDS of a loss task; else 0 */
	uint8_t counted;   /* ENDS: its gradient was added here */
	uint8_t slots;     /* microbatches held after the event */
};

/* ---- agent -> controller ---- */

struct msg_hello {
	uint32_t protocol;      /* MSG_VERSION */
	int32_t node;           /* the node it would be; -1: any */
	uint64_t incarnation;   /* random, new for each process */
	char address[128];      /* where its tensor plane listens, as peers dial it */
	char device[128];       /* what computes, as model/stage.h tells it: "cpu:v4 oneDNN 2.6.3" */
	char host[64];
	int64_t pid;
	uint64_t run;           /* the run whose weights it holds; 0: none. A controller that took over
				 * a run goes on with agents that have them */
	uint8_t stage;
	uint64_t committed;     /* iterations those weights hold */
	uint64_t hash;
	uint8_t keeps; /* a stage it holds a whole copy of beside its own; MSG_NO_STAGE none */
	uint64_t kept; /* iterations that copy holds */
	uint64_t kept_hash; /* of its weights; 0 not known */
	uint8_t saves; /* 1: has a folder for checkpoints */
	uint64_t memory_bytes; /* available on its machine */
	uint32_t cores;     /* of its machine */
	char machine[40];   /* the same for all agents of one machine, since it was started; "" not known */
};

struct msg_ready {
	uint64_t assignment; /* which MSG_ASSIGN this answers */
	uint8_t stage;
	uint64_t iteration;  /* committed iterations its weights hold */
	uint64_t hash;       /* of the weights */
	double forward_s, backward_s, loss_s; /* measured on this device, without emulation */
	uint64_t corpus_hash; /* stage 0; else 0 */
};

/* A link on which something waits, and nothing has moved for so long, which is longer than was to be
 * expected of it: by its round trips, and what is under way. */
struct msg_stuck {
	uint16_t to;
	uint32_t ms, expected_ms;
};

struct msg_heartbeat {
	uint64_t beat;
	int64_t now_us;       /* agent's clock */
	int64_t echo_us;      /* the last MSG_PING's now_us; 0 none */
	int64_t echo_age_us;  /* since it came */
	uint64_t iteration;
	uint64_t committed;
	uint64_t hash;
	uint8_t stage;
	uint8_t slots;        /* microbatches held */
	uint8_t running;      /* a task is running */
	uint8_t blocked;      /* tasks wait, none may start: every slot is held */
	uint32_t queued;      /* tasks waiting */
	uint32_t in_flight;   /* tensors sent or delayed, not yet acknowledged */
	uint64_t tasks_done;
	uint64_t rss_bytes;
	uint64_t sent_bytes, received_bytes;
	uint64_t resent, refused; /* messages */
	uint16_t awaits;          /* 1 + the node whose part of a sum it waits for; 0 nobody */
	uint32_t n_stuck;         /* at most MSG_STUCK */
	const struct msg_stuck *stuck;
};

struct msg_report {
	uint64_t iteration;
	uint32_t n_events;
	const struct msg_task_event *events;
};

struct msg_reduced {
	uint64_t iteration;
	uint32_t attempt;
	uint8_t stage;      /* its own, or the one it keeps a copy of */
	double sum_squares; /* of the stage's summed gradient, unscaled */
	int64_t elapsed_us; /* since it began to add */
	uint32_t n_slices;
	const uint64_t *slices; /* hash of each slice's sum, as it is here */
};

struct msg_committed {
	uint64_t iteration; /* committed iterations, this one included */
	uint8_t stage;      /* its own, or the one it keeps a copy of */
	uint64_t hash;
	uint8_t copy;       /* 1: of the copy, which may be of its own stage while it joins */
};

/* The copy that MSG_KEEP asked for is whole. hash 0: it cannot be had, and `text` says why. */
struct msg_kept {
	uint64_t assignment;
	uint8_t stage;
	uint64_t iteration;
	uint64_t hash; /* of its weights */
	char text[160];
};

/* A stage's file of a checkpoint is on this machine's disk. bytes 0: it is not, and `text` says
 * why. */
struct msg_saved {
	uint64_t iteration;
	uint8_t stage;
	uint64_t hash; /* of the file's data */
	uint64_t bytes;
	char text[160];
};

/* MSG_RESTORE failed; the agent is without a stage. */
struct msg_unready {
	uint64_t assignment;
	char text[160];
};

struct msg_evaluated {
	uint64_t iteration;
	uint32_t microbatch;
	float loss;
};

struct msg_trouble {
	uint8_t fatal;
	int32_t refused_node; /* the node whose messages the sender refuses until it is excluded; -1 none */
	char text[256];
};

struct msg_link {
	uint16_t from, to;
	float latency_s;            /* half of the least round trip lately; < 0: nothing comes through */
	float spread_s;             /* half of the round trips' mean deviation */
	float bandwidth_bytes_per_s; /* acknowledged; 0: not measured */
	float loss;                 /* resent / sent */
	float planned_delay_s;      /* what the plan assumes for an activation, or, while links are measured, will; < 0:
				     * nothing is planned that way (yet) */
	float measured_delay_s;     /* 0: not seen yet */
};

struct msg_links {
	uint32_t n_links;
	const struct msg_link *links;
};

/* What MSG_MEASURE found out. */
struct msg_measured {
	uint64_t id;
	uint16_t to;     /* MSG_NOBODY: all latencies, which MSG_LINKS has told */
	uint8_t reached; /* 0: nothing came through, and `text` says why */
	float latency_s, spread_s, bandwidth_bytes_per_s; /* as in msg_link */
	char text[160];
};

/* ---- controller -> agent ---- */

struct msg_welcome {
	uint16_t node;
	uint32_t n_nodes;
	uint64_t run;            /* identifies the run */
	uint64_t seed;
	char model[1024];        /* model config, JSON */
	uint32_t batch, sequence;
	uint32_t n_shards;
	uint32_t threads;
	uint32_t slots;          /* memory: microbatches held at once */
	double time_scale;       /* emulated seconds become this many real ones; 0: no emulation */
	double forward_s, backward_s, loss_s, dispatch_overhead_s; /* emulated, before the scale */
	double serialise;        /* 1: a link carries one tensor at a time */
	uint8_t bf16;            /* 1: ACTIVATION and GRADIENT travel in bf16 */
	uint32_t n_delays;
	const float *delay_s;    /* (n_nodes) to each node, before the scale; < 0 no link */
	uint32_t n_syncs;
	const float *sync_s;     /* (n_nodes) one stage's gradient to each node, before the scale */
	uint32_t n_corpus;
	const char *corpus;      /* NUL-separated paths, every one ended by NUL; none: the default */
};

struct msg_refused {
	char reason[256];
};

struct msg_peer {
	uint16_t node;
	uint8_t key[32];     /* its public key; zeros: it has none that is let in, forget the one it had */
	char address[128];
};

struct msg_peers {
	uint32_t n_peers;
	const struct msg_peer *peers;
};

struct msg_assign {
	uint64_t assignment; /* rises */
	uint8_t stage;
	uint8_t fetch; /* keep the weights and moments that are here (of the copy it keeps of
			* that stage, else its own); 0: those of the seed */
};

/* Hold a copy of a stage beside the own one: fetched from `source` in the background, then kept
 * up with every commit (docs/reliability.md). */
struct msg_keep {
	uint64_t assignment;
	uint8_t stage;   /* MSG_NO_STAGE: drop it; not before MSG_READY where it is being loaded
			  */
	uint16_t source; /* a replica, or another that keeps it */
};

/* Write the own stage into this machine's checkpoint folder. */
struct msg_save {
	uint64_t iteration; /* the committed one */
	uint64_t oldest;    /* files of earlier iterations may go */
};

enum restore_kind { RESTORE_FILE, RESTORE_AVERAGE };

/* Have a stage again that no process holds any more. FILE: from the checkpoint of `iteration`
 * on this machine, whose hash must be as said. AVERAGE: from the n_from other stages, each
 * weighed, as model/average.h has it; `iteration` is theirs. Answered by MSG_READY or
 * MSG_UNREADY. */
struct msg_restore {
	uint64_t assignment;
	uint8_t stage;
	uint8_t kind; /* enum restore_kind */
	uint64_t iteration;
	uint64_t hash;
	uint32_t n_from;
	const uint16_t *nodes; /* (n_from) */
	const uint8_t *stages; /* (n_from) */
	const float *weights;  /* (n_from) */
	const uint64_t *hashes; /* (n_from) of their weights; 0 not known */
};

struct msg_plan {
	uint64_t epoch;
	uint32_t n_routes;
	const struct msg_route *routes;
	uint32_t n_ranks;
	const struct msg_rank *ranks; /* this node's order; none: first come, first served */
};

struct msg_start {
	uint64_t iteration; /* 1 for the first */
	uint64_t epoch;
	uint32_t per_shard; /* microbatches a shard gives an iteration */
};

struct msg_reroute {
	uint64_t iteration;
	uint64_t epoch;
	uint32_t n_routes;
	const struct msg_route *routes; /* each with its new attempt */
	uint32_t n_gone;
	const uint16_t *gone;           /* nodes to forget */
};

struct msg_reduce {
	uint64_t iteration;
	uint32_t attempt;
	uint8_t stage;
	uint32_t n_nodes;
	const uint16_t *nodes; /* the stage's replicas, ascending */
	uint32_t n_copies;
	const uint16_t *copies; /* who keeps a copy: gets the sum, and adds nothing to it */
	uint8_t when_counted; /* 1: each adds its part once it has counted all that it was given; else at once */
};

struct msg_commit {
	uint64_t iteration;
	uint32_t attempt; /* of the reduction it commits */
	float scale;      /* the summed gradient is multiplied by this: 1/microbatches and the clip */
	float lr, beta1, beta2, eps, weight_decay;
};

struct msg_evaluate {
	uint64_t iteration;
	uint32_t n_routes;
	const struct msg_route *routes; /* wave: which validation batch */
};

struct msg_fault {
	uint32_t fault;
	uint8_t kind;      /* enum fault_kind; FAULT_NONE heals `fault` */
	int32_t peer;      /* links: the other end; -1: all */
	float factor;      /* slow: times; loss: probability */
	uint32_t ttl_ms;
};

struct msg_ping {
	int64_t now_us;    /* controller's clock */
};

struct msg_stop {
	char reason[128];
};

/* Measure the link to a node: its latency, then how fast it carries bulk. MSG_NOBODY: the latency of
 * the links to all peers, side by side. */
struct msg_measure {
	uint64_t id;      /* rises */
	uint16_t to;
	uint32_t most_ms; /* once there is a connection */
};

/* ---- agent -> agent ---- */

enum tensor_kind {
	TENSOR_ACTIVATION,
	TENSOR_GRADIENT,
	TENSOR_PART,
	TENSOR_SUM,
	TENSOR_STATE,
	TENSOR_PROBE /* nothing: that it comes through is all */
};

/* The body is float data. ACTIVATION, GRADIENT: (batch, sequence, dim), in a bf16 run the upper
 * halves of floats that the sender has rounded (model/bf16.h). PART: the sender's
 * slice `index` of its gradient, SUM: slice `index` summed over the replicas; each in pieces of any
 * size, the one that begins at float `offset` of the slice. STATE: piece
 * `index` of weights, first and second moments, (3, n). */
struct msg_tensor {
	uint8_t kind;       /* enum tensor_kind */
	uint8_t evaluate;   /* 1: belongs to an evaluation */
	uint16_t from;
	uint64_t iteration; /* STATE: committed iterations it holds */
	uint32_t attempt;   /* PART, SUM: of the reduction */
	uint32_t index; /* PART, SUM: the slice; ACTIVATION, GRADIENT: chain position it is for;
			 * STATE: the piece */
	uint8_t stage;  /* PART, SUM, STATE: whose; else 0 */
	uint64_t hash;  /* STATE: of the body; else 0 */
	uint64_t offset; /* PART, SUM; else 0 */
	int64_t sent_us;   /* sender's clock */
	uint32_t n_routes; /* ACTIVATION, GRADIENT: 1 */
	const struct msg_route *routes;
};

enum {
	MSG_PIECE_FLOATS = 1 << 17
}; /* of each of the three arrays; the last piece has the rest */

struct msg_fetch {
	uint16_t from;
	uint8_t stage;
	uint32_t piece;
};

/* A train of packets comes to measure the way (train.h), and what was heard of it. */
struct msg_train {
	uint16_t from;
	uint8_t token[16];
};
struct msg_train_heard {
	uint16_t from;
	uint8_t token[16];
	uint32_t packets;  /* 0: none came */
	float bytes_per_s; /* 0: too few */
};

/* ---- console -> controller ---- */

struct msg_attach {
	uint32_t protocol;
	char name[64];
	uint8_t readonly;
};

struct msg_command {
	uint64_t id;       /* the console's own; the answer carries it */
	uint8_t verb;      /* enum command_verb */
	int32_t node;
	int32_t peer;
	int64_t value;
	uint8_t fault;     /* enum fault_kind */
	float factor;
	uint32_t ttl_ms;
	char text[128];
};

/* ---- controller -> console ---- */

/* The steps before the first iteration. */
enum gather_step {
	GATHER_COMING,  /* agents come */
	GATHER_LINKS,   /* links are measured */
	GATHER_COMPUTE, /* so is how fast nodes compute */
	GATHER_PLAN,    /* for what was measured */
	GATHER_BUILD    /* agents build their stages */
};

struct msg_see_run {
	char name[64];
	char model[64];       /* e.g. "llama-tiny 1.3M" */
	uint64_t run;                   /* another one: all that was told before is void. In a
					 * replay every jump makes it another one */
	uint64_t parameters;
	uint32_t n_nodes, n_stages;
	uint32_t microbatches;          /* an iteration */
	uint32_t per_data_node;
	uint64_t tokens_per_iteration;
	uint64_t iterations;            /* wanted; 0: no end */
	double time_scale;              /* real seconds of one plan second */
	int64_t started_wall_us;
	double baseline_s;              /* full pipeline, predicted; 0 unknown */
	uint32_t embedded;              /* a supervisor started the agents on this machine */
	uint8_t emulated;               /* so are its network and compute, not measured */
	uint8_t replay;                 /* recorded: now_us of the status is the cursor */
	int64_t first_us, last_us;      /* replay: the recorded span */
};

struct msg_see_status {
	uint8_t phase;        /* enum run_phase */
	uint8_t paused;       /* asked for, or in force */
	uint64_t iteration;   /* the one under way */
	uint64_t committed;
	uint64_t epoch;
	uint32_t alive, n_nodes;
	uint32_t path_length, n_stages;
	int64_t now_us;       /* controller's clock: ages of everything below are against this */
	int64_t iteration_started_us;
	char lease[64];       /* who holds the operator's lease; "" nobody */
	int64_t lease_us;     /* left */
	uint64_t refused, resent, dropped; /* messages, all planes; dropped: state not sent to a slow console */
	uint32_t faults;      /* injected and active */
	char doing[128];      /* in words */
	/* PHASE_GATHERING: */
	uint8_t steps;        /* which it goes through: bits 1 << enum gather_step; 0: it is another phase */
	uint8_t step;         /* enum gather_step: the one under way, */
	uint32_t part, parts; /* how far: agents here, the round under way, nodes timed, stages built; of so many, 0: not known */
	float left_s;         /* and for how long still; 0: not known */
};

struct msg_see_node {
#define SCALAR(kind, type, field, most) type field;
#define TEXT_FIELD(field, size) char field[size];
	NODE_FIELDS(SCALAR, TEXT_FIELD)
#undef SCALAR
#undef TEXT_FIELD
};

struct msg_see_plan {
	uint64_t epoch;
	uint64_t iteration;   /* it takes effect with */
	uint32_t path_length, n_stages;
	float iteration_s, sync_s, wait_s, lower_bound_s, idle_fraction; /* predicted, plan seconds */
	uint32_t collisions;
	char algorithm[16];
	char reason[96];      /* why it was made */
	uint8_t candidate;    /* not in force: an answer to COMMAND_COMPARE, or a baseline */
	char name[32];        /* of a candidate: "skip 3/6", "dtfm" */
	float elapsed_s;      /* the search took */
	uint32_t n_visits;
	const uint32_t *visits;         /* (n_stages) microbatches per stage */
	uint32_t n_routes;
	const struct msg_route *routes;
	uint32_t n_planned;
	const struct msg_task_event *planned; /* STARTS and ENDS as predicted; at_us from the start, real time */
};

struct msg_see_tasks {
	uint64_t iteration;
	uint8_t whole; /* 1: from the iteration's beginning; what was told of it before does not count */
	uint32_t n_events;
	const struct msg_task_event *events; /* controller's clock */
};

struct msg_see_iteration {
	uint64_t iteration;
	uint64_t epoch;
	float loss;
	float iteration_s, predicted_s; /* plan seconds (real / time scale), start to last backward */
	float sync_s, predicted_sync_s;
	float real_s;                   /* wall time, commit to commit */
	uint32_t collisions;
	float wait_s, idle_fraction;    /* plan seconds */
	float gradient_norm, clip, lr;
	float tokens_per_s;             /* real */
	uint32_t alive, path_length;
	uint32_t rerun;                 /* microbatches run again */
	int64_t at_us;
	char algorithm[16];             /* that made the plan; "" not known */
};

struct msg_see_validation {
	uint64_t iteration; /* committed iterations the weights hold */
	float loss;
	float accuracy;     /* unused: 0 */
};

struct msg_see_note {
	uint64_t id;
	int64_t at_us, wall_us;
	uint64_t iteration;
	uint8_t kind;         /* enum note_kind; WARNING and ALERT stand until acknowledged */
	uint8_t acknowledged;
	char mark;            /* for the loss curve: 'S' skip, 'F' failure, 'R' recovery, 0 none */
	int32_t node;         /* -1 none */
	uint64_t command;     /* NOTE_COMMAND: its journal id, for undo; 0: cannot be undone */
	char text[192];
};

struct msg_see_fault {
	uint32_t fault;
	uint8_t kind;
	uint8_t active;
	int32_t node, peer;
	float factor;
	int64_t ends_us;      /* controller's clock */
};

/* What a command would do, before it is given. */
struct msg_see_preview {
	uint64_t command;     /* the msg_command id it answers */
	uint8_t verb;
	uint8_t feasible;
	uint64_t iteration;   /* it would take effect with */
	float before_iteration_s, after_iteration_s;
	float before_wait_s, after_wait_s;
	uint32_t before_peak_slots, after_peak_slots, memory;
	uint32_t least_stage, before_least_visits, after_least_visits;
	uint32_t paths_changed;
	float median_error;   /* of the predictions so far, fraction */
	uint32_t n_predictions;
	uint32_t before_path_length, after_path_length;
	float elapsed_s;
	char text[192];       /* the reason when infeasible; a warning otherwise, or "" */
};

struct msg_see_reply {
	uint64_t command;
	int32_t status;       /* 0 done; else a negative errno */
	char text[192];
};

struct msg_see_links {
	uint32_t n_links;
	const struct msg_link *links;
};

struct msg_see_synced {
	uint64_t sequence;    /* the snapshot before this is complete up to here */
	char name[64];        /* what the console was admitted as: the lease calls it so */
	uint8_t watches;      /* it may only look */
};

/* ---- codec ---- */

struct msg {
	enum msg_type type;
	uint64_t sequence;
	union {
#define MEMBER(NAME, member, number, body) struct msg_##member member;
		MESSAGE_KINDS(MEMBER)
#undef MEMBER
	} u;
	const void *body;  /* MSG_TENSOR: what follows the fields, inside the caller's buffer */
	size_t body_size;
	void *owned;       /* decoded arrays live here; msg_clear frees it */
};

const char *msg_name(enum msg_type type); /* "tensor"; "unknown" */

/* Bytes the message takes, body apart; 0 when it cannot be sent (a count over its limit). */
size_t msg_size(const struct msg *m);
/* Writes exactly msg_size bytes to out; the body is the caller's to append. Returns the size, or
 * -EINVAL (over a limit), -ENOSPC. */
long msg_encode(const struct msg *m, void *out, size_t room);
/* Fills *m from bytes that a stranger may have made. Arrays are allocated; m->body borrows data.
 * 0, or -EBADMSG (malformed), -EPROTONOSUPPORT (another version), -ENOMEM; then *m is empty. */
int msg_decode(struct msg *m, const void *data, size_t size);
/* Frees what msg_decode allocated for it; a zeroed message is allowed. */
void msg_clear(struct msg *m);

#endif
