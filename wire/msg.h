/* msg.h - all messages between the programs, and the functions that encode and decode them.
 *
 * A message is an envelope (magic, version, type, sequence) followed by the fields of its struct,
 * in the order of the struct's table in layouts.c. Numbers have a fixed width and are
 * little-endian. Text and arrays follow their length. Decoding checks every length and limit
 * before use. Decoding accepts only bytes that encoding could have produced: there are no bytes
 * after the last field (except a `body`), no number is out of its range, and no text has a NUL.
 * The functions are pure: they use no sockets and no clock. link.h encrypts messages, post.h
 * delivers them.
 *
 * Times are microseconds on the sender's monotonic clock unless a name says otherwise. The
 * controller translates agents' times to its own clock before it sends them to consoles.
 */
#ifndef WIRE_MSG_H
#define WIRE_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/gpu_figures.h"
#include "base/log.h"
#include "base/route.h"
#include "base/task_kind.h"
#include "wire/device_time.h"
#include "wire/faults.h"
#include "wire/message_kinds.h"
#include "wire/names.h"
#include "wire/node_fields.h"

#define MSG_VERSION 21
#define MSG_TENSOR_MOST ((size_t)1 << 30) /* limit of the bytes of a message with a tensor */
enum {
	MSG_NODES = 1000,        /* largest number of nodes in a cluster */
	MSG_STAGES = ROUTE_HOPS, /* largest number of stages, and therefore of hops in a route */
	MSG_MICROBATCHES = 8192, /* largest number of microbatches in an iteration */
	MSG_STUCK = 16,          /* largest number of stuck links that a heartbeat reports */
	MSG_NOBODY = 0xffff,     /* the value of a node's number that means no node */
	MSG_NO_STAGE = 255
};

enum msg_type {
#define ENUMERATOR(NAME, member, number, body) MSG_##NAME = (number),
	MESSAGE_KINDS(ENUMERATOR)
#undef ENUMERATOR
};

/* ---- shared pieces ---- */

/* An entry of a node's priority list. The node runs waiting tasks in the order of this list
 * (docs/formats.md, the model of execution). */
struct msg_rank {
	uint32_t microbatch;
	uint8_t kind; /* enum task_kind */
};

enum work_event { WORK_WAITS, WORK_STARTS, WORK_ENDS };

struct msg_task_event {
	uint8_t type; /* enum work_event */
	uint8_t kind; /* enum task_kind */
	uint16_t node;
	uint16_t blocker_node; /* always equal to `node`; no program reads it */
	uint32_t microbatch;
	uint32_t attempt;
	/* WORK_WAITS, WORK_STARTS: the microbatch that made this task wait, because it was
	 * running or held the slot; UINT32_MAX: no microbatch. */
	uint32_t blocker;
	int64_t at_us;     /* time at which the task began to wait, started or ended */
	int64_t arrived_us; /* time at which the task's input arrived */
	/* WORK_STARTS: time from the moment at which the task could have started until the event
	 * loop started the task. 0 for other events, and with emulated times. */
	uint32_t late_us;
	float loss;         /* loss at the end of a loss task; otherwise 0 */
	uint8_t counted;    /* WORK_ENDS: 1: this node added the task's gradient to its sum */
	uint8_t slots; /* number of microbatches that hold a slot of the node after the event */
};

/* ---- agent -> controller ---- */

struct msg_hello {
	uint32_t protocol;      /* MSG_VERSION of the agent */
	int32_t node;           /* number of the node that this agent wants to be; -1: any */
	uint64_t incarnation;   /* random number, new for each process */
	/* The address at which other agents dial this agent to send tensors. */
	char address[128];
	char device[128];       /* computing device as in model/stage.h: "cpu:v4 oneDNN 2.6.3" */
	char host[64];
	int64_t pid;
	/* The run to which the agent's weights belong; 0: the agent has no weights. A restarted
	 * controller resumes a run only with agents that have the run's weights. */
	uint64_t run;
	uint8_t stage;
	uint64_t committed;     /* number of iterations committed in the agent's weights */
	uint64_t hash;          /* hash of the agent's weights */
	/* Stage of the agent's standby copy; MSG_NO_STAGE: the agent has no complete copy. */
	uint8_t keeps;
	uint64_t kept;          /* number of iterations committed in the standby copy */
	uint64_t kept_hash;     /* hash of the standby copy's weights; 0: unknown */
	uint8_t saves;          /* 1: the agent has a folder for checkpoints */
	uint64_t memory_bytes;  /* memory available to the agent's device, bytes; 0: unknown */
	uint64_t machine_bytes; /* memory available on the agent's machine, bytes; 0: unknown */
	uint32_t cores;         /* cores of the agent's machine */
	/* Processor time that the agent's control groups permit, in thousandths of a processor;
	 * 0: the control groups do not limit the agent */
	uint32_t quota;
	char machine[40];       /* identifies the machine until it reboots; "": unknown */
	/* Identifies the agent's network within its machine; 0: unknown. Containers on one machine
	 * may have networks of their own. */
	uint64_t network;
	/* Addresses of the agent, separated by spaces, for the nodes that share the agent's
	 * public address; "": none. */
	char inside[256];
	char place[32]; /* place of the machine, from the option --place; "": not given */
	/* Identifies the GPU on which the agent computes, by its address on the machine's PCI bus;
	 * "": none */
	char card[32];
};

struct msg_ready {
	uint64_t assignment; /* number of the MSG_ASSIGN that this message answers */
	uint8_t stage;
	/* Number of iterations committed in the agent's weights. */
	uint64_t iteration;
	uint64_t hash;                        /* hash of the agent's weights */
	/* Times that the stage's tasks took on this device, without emulation, in seconds. */
	double forward_s, backward_s, loss_s;
	/* Hash of the corpus, if the agent has stage 0; otherwise 0. */
	uint64_t corpus_hash;
};

/* A stuck link: tensors wait, and nothing was acknowledged for `ms` milliseconds. The link counts
 * as stuck because `ms` exceeds expected_ms, which follows from the link's round trips and the
 * bytes under way. */
struct msg_stuck {
	uint16_t to;
	uint32_t ms, expected_ms;
	uint8_t small_passes; /* 1: the peer answered small messages while the link was stuck */
	/* 1: the link loses large messages. The evidence: for long enough, the peer has answered
	 * small messages but no large message. */
	uint8_t large_lost;
};

struct msg_heartbeat {
	uint64_t beat;
	int64_t now_us;       /* time of the heartbeat by the agent's clock */
	int64_t echo_us;      /* now_us of the last MSG_PING; 0: none has arrived */
	int64_t echo_age_us;  /* time since the last MSG_PING arrived */
	uint64_t iteration;
	uint64_t committed;
	uint64_t hash;
	uint8_t stage;
	uint8_t slots;        /* number of microbatches that hold a slot */
	uint8_t running;      /* 1: a task, the optimizer's step or the zeroing of gradients runs */
	uint8_t blocked;      /* 1: tasks wait because every slot is held */
	/* 1: the agent drains: it leaves as soon as its stage does not need it */
	uint8_t drains;
	uint32_t queued;      /* number of tasks that wait to run */
	/* Number of tensors on their way: those that the agent delays, and those that it has sent
	 * but that are not acknowledged yet. */
	uint32_t in_flight;
	uint64_t tasks_done;
	uint64_t rss_bytes;
	/* Total time that the agent's threads have run, and total time that they have waited for a
	 * processor; 0: unknown. */
	uint64_t ran_us, waited_us;
	/* figures of the device, if the device is a GPU that reports figures */
	struct gpu_figures gpu;
	uint64_t sent_bytes, received_bytes;
	/* Number of messages that the agent has resent, and number of received messages that it
	 * has refused. */
	uint64_t resent, refused;
	/* 1 + the number of the node from which the agent awaits a part of a sum; 0: no such
	 * node */
	uint16_t awaits;
	uint32_t n_stuck; /* number of stuck links, at most MSG_STUCK */
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
	uint8_t stage;      /* stage of the sender, or of its standby copy */
	double sum_squares; /* squared norm of the stage's summed gradient, before any scaling */
	int64_t elapsed_us; /* time since the reduction began */
	uint32_t n_slices;
	const uint64_t *slices; /* hashes of this node's sums, one for each slice */
};

struct msg_committed {
	uint64_t iteration; /* number of committed iterations, including this one */
	uint8_t stage;      /* stage of the sender, or of its standby copy */
	uint64_t hash;
	/* 1: the report is about the sender's standby copy. `stage` alone does not show this,
	 * because a sender that joins may have a standby copy of its own stage. */
	uint8_t copy;
	/* Time that the sender's device spent in each state since the previous commit. Before the
	 * first commit, the time counts from the first START or REROUTE that gave the node work.
	 * Zeros: not measured. */
	struct device_time spent;
};

/* Answers MSG_KEEP: the standby copy is complete. hash 0: the copy failed, for the reason in
 * text. */
struct msg_kept {
	uint64_t assignment;
	uint8_t stage;
	uint64_t iteration;
	uint64_t hash; /* hash of the copy's weights */
	char text[160];
};

/* Reports that the agent has saved its stage's file of a checkpoint. bytes 0: the agent could not
 * save the file, for the reason in text. */
struct msg_saved {
	uint64_t iteration;
	uint8_t stage;
	uint64_t hash; /* hash of the file's content */
	uint64_t bytes;
	char text[160];
};

/* The agent could not execute MSG_RESTORE and has no stage. */
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
	/* Number of the faulty node, whose messages the sender refuses until the controller
	 * excludes the node; -1: none. */
	int32_t refused_node;
	/* Epoch of the plan under which the faulty node computed numbers that are not finite; 0:
	 * the node has another fault. */
	uint64_t epoch;
	char text[256];
};

/* A warning or an error in the agent's log, which consoles show. The controller does not act on
 * it. */
struct msg_log {
	uint8_t level;    /* enum log_level: LOG_WARN or LOG_ERROR */
	/* Number of earlier lines that the agent dropped instead of sending them. */
	uint32_t dropped;
	char text[160];
};

struct msg_link {
	uint16_t from, to;
	/* Half of the least round trip in the last seconds; negative: no answer arrives. */
	float latency_s;
	float spread_s; /* half of the mean deviation of the round trips */
	/* Bandwidth, measured by the rate of acknowledged bytes; 0: not measured. */
	float bandwidth_bytes_per_s;
	float loss; /* share of the sent frames that were sent again */
	/* Transfer time that the plan assumes for an activation; negative: the plan does not use
	 * this link. Before the first plan, this is the time that the first plan will assume. */
	float planned_delay_s;
	float measured_delay_s; /* measured transfer time of an activation; 0: not measured */
	/* Signal-to-noise ratio of the activations or of the gradients that arrive: the lower of
	 * the two ratios; 0: not measured. */
	float snr_db;
};

struct msg_links {
	uint32_t n_links;
	const struct msg_link *links;
	uint8_t wire; /* enum tensor_format of the measured transfers */
	/* Mean times that this node takes to encode an activation and to decode an activation; 0:
	 * unknown. These times are no part of measured_delay_s. */
	float encode_s, decode_s;
};

/* The result of MSG_MEASURE: the figures of the link to one node. */
struct msg_measured {
	uint64_t id;
	/* The node at the other end. MSG_NOBODY: the latencies of all links were measured, and
	 * MSG_LINKS reports these latencies. */
	uint16_t to;
	uint8_t reached; /* 0: the agent did not reach the node, for the reason in text */
	float latency_s, spread_s, bandwidth_bytes_per_s; /* figures of the link, as in msg_link */
	char text[160];
};

/* Answers the newest MSG_CONNECT: messages of the agent have reached all nodes that MSG_CONNECT
 * names for a use other than CONNECT_SPARE. */
struct msg_connected {
	uint64_t id;
};

/* ---- messages of a process that has an invitation (wire/invite/invitations.h) ---- */

/* Asks the controller to admit a key. The sender uses a session with the invitation's key. */
struct msg_join {
	uint32_t protocol; /* MSG_VERSION of the process */
	uint8_t key[32];
	uint8_t role;     /* enum keys_role that the process wants */
	char name[64];    /* the name that the process wants */
	/* 1: if the controller would have to change the name, it must refuse the key instead. */
	uint8_t is_exact;
};

/* Answers MSG_JOIN: the key is admitted under this name. If the key is not admitted, the answer is
 * MSG_REFUSED. */
struct msg_admitted {
	char name[64];
};

/* ---- controller -> agent ---- */

struct msg_welcome {
	uint16_t node;
	uint32_t n_nodes;
	uint64_t run;            /* number that identifies the run */
	uint64_t seed;
	char model[1024]; /* configuration of the model in JSON */
	uint32_t batch, sequence;
	uint32_t n_shards;
	uint32_t threads;
	/* Number of slots: microbatches that fit into the node's memory at a time. */
	uint32_t slots;
	double time_scale;       /* real seconds of one emulated second; 0: no emulation */
	/* Emulated times of this node, in seconds, before the time scale. */
	double forward_s, backward_s, loss_s, dispatch_overhead_s;
	double serialise;        /* 1: a link carries one tensor at a time */
	/* Number of nodes. Each of the next three arrays has one element for each node: the
	 * emulated transfer time of a tensor in fp32 from this agent to that node, before the
	 * time scale. */
	uint32_t n_delays;
	/* An activation's transfer time in seconds; negative: there is no link. */
	const float *delay_s;
	uint32_t n_bytes;
	const float *bytes_s; /* part of delay_s in which the activation occupies the link */
	uint32_t n_syncs;
	const float *sync_s;   /* transfer time of a stage's whole gradient, in seconds */
	/* number of AdamW steps that were made on the weights before the run */
	uint64_t steps_before;
	/* 1: the model has a tokenizer. A token is then not simply a byte, so a text file cannot
	 * be the corpus. */
	uint8_t has_tokenizer;
	uint32_t n_corpus;
	/* Paths of the corpus, each ended by NUL; none: the default corpus. */
	const char *corpus;
};

struct msg_refused {
	char reason[256];
	/* 1: the refusal is final. An agent that is started again with this key is refused
	 * again. */
	uint8_t final;
};

/* Why the controller withdraws a node's key from its peers. */
enum peer_absence {
	PEER_PRESENT,
	PEER_AWAY,     /* the node has not returned since the controller was restarted */
	PEER_EXPELLED, /* the key is not on the admitted list */
	PEER_EXCLUDED  /* the node is marked failed because of the data that it sent */
};

struct msg_peer {
	uint16_t node;
	/* Public key of the node; all zeros: the key is withdrawn for the reason in `absence`. */
	uint8_t key[32];
	/* Addresses of the node, separated by spaces. The receiver tries them in this order. */
	char address[160];
	uint8_t absence;   /* enum peer_absence */
	/* 1: the node is on another machine than the receiver, or in another network of the
	 * receiver's machine. */
	uint8_t elsewhere;
};

struct msg_peers {
	uint32_t n_peers;
	const struct msg_peer *peers;
};

struct msg_assign {
	uint64_t assignment; /* number of this assignment; later assignments have greater numbers */
	uint8_t stage;
	/* 1: the stage gets the weights and moments of the agent's standby copy; without a copy
	 * the agent keeps its present weights and moments. 0: the agent initialises weights and
	 * moments from the seed. */
	uint8_t fetch;
};

/* Orders a standby copy of a stage. The agent fetches the stage from `source` in the background,
 * and then applies every commit to the copy (docs/reliability.md). */
struct msg_keep {
	uint64_t assignment;
	/* Stage to copy; MSG_NO_STAGE: drop the copy. If the agent is loading the copy as its own
	 * stage, it drops the copy only after MSG_READY. */
	uint8_t stage;
	/* Node that sends the stage: a replica, or another holder of a standby copy. */
	uint16_t source;
};

/* Orders the agent to write its stage into the checkpoint folder of its machine. */
struct msg_save {
	uint64_t iteration; /* iteration to be saved, which is already committed */
	uint64_t oldest;    /* the agent may delete files of iterations before this one */
	/* Newest complete checkpoint; 0: none. Checkpoints between `last` and `iteration` stay
	 * incomplete, so the agent may delete their files too. */
	uint64_t last;
};

enum restore_kind { RESTORE_FILE, RESTORE_AVERAGE };

/* Orders the agent to restore a stage that no process holds. The agent answers MSG_READY or
 * MSG_UNREADY.
 *
 * FILE: the agent loads the file of its machine's checkpoint of `iteration`. The file must have
 * this hash. AVERAGE: the agent computes a weighted average of n_from other stages, as they were
 * after `iteration` (model/average.h). */
struct msg_restore {
	uint64_t assignment;
	uint8_t stage;
	uint8_t kind; /* enum restore_kind */
	uint64_t iteration;
	uint64_t hash;
	/* FILE: 1: the controller can send this file to an agent that lacks it. */
	uint8_t on_controller;
	uint32_t n_from;
	const uint16_t *nodes;  /* the n_from nodes that have the stages to be averaged */
	const uint8_t *stages;  /* the n_from stages to be averaged */
	const float *weights;   /* factor of each of the n_from stages in the average */
	const uint64_t *hashes; /* hashes of the n_from stages' weights; 0: unknown */
};

struct msg_plan {
	uint64_t epoch;
	uint32_t n_routes;
	const struct route *routes;
	uint32_t n_ranks;
	/* The node's tasks, sorted by their predicted starts. The node runs them in this
	 * sequence. If the list is empty, the node runs its tasks in order of arrival. */
	const struct msg_rank *ranks;
};

struct msg_start {
	uint64_t iteration; /* number of the iteration, from 1 */
	uint64_t epoch;
	uint32_t per_shard; /* number of microbatches of a shard in an iteration */
	/* Position of the iteration's first microbatch in every shard, counted in microbatches. */
	uint64_t position;
	uint8_t wire;       /* enum tensor_format of the iteration's ACTIVATION and GRADIENT */
};

struct msg_reroute {
	uint64_t iteration;
	uint64_t epoch;
	uint32_t n_routes;
	const struct route *routes; /* new routes; each has a new attempt number */
	uint32_t n_gone;
	const uint16_t *gone; /* nodes that have left the run */
	/* Format of activations and gradients, as in this iteration's START. A node that joined
	 * after START learns the format from this field. */
	uint8_t wire;
};

struct msg_reduce {
	uint64_t iteration;
	uint32_t attempt;
	uint8_t stage;
	uint32_t n_nodes;
	const uint16_t *nodes; /* the stage's replicas, ascending */
	uint32_t n_copies;
	/* Nodes with standby copies of the stage, which receive the sum and add nothing. */
	const uint16_t *copies;
	/* 1: a replica sends its part of the sum only after it has counted all its gradients; 0: at
	 * once */
	uint8_t when_counted;
	uint8_t sum_wire; /* enum tensor_format of the iteration's PART and SUM */
};

struct msg_commit {
	uint64_t iteration;
	uint32_t attempt; /* number of the attempt at the sum that this message commits */
	/* Factor of the summed gradient. If `visits` is empty, the factor is 1/microbatches times
	 * the factor of gradient clipping. If `visits` is set, it is the factor of gradient
	 * clipping alone, because each stage divides by its own visits (hyper_stage_scale). */
	float scale;
	float lr, beta1, beta2, eps, weight_decay;
	/* A set of stages (bit s: stage s); 0: none. After the step, every stage outside the set
	 * copies the weights and moments of a stage in the set (stage_set_source). Each node of a
	 * stage outside the set already has these weights and moments as a standby copy. */
	uint64_t stack_from;
	struct stage_visits visits;
};

struct msg_evaluate {
	uint64_t iteration;
	uint32_t n_routes;
	/* Routes of the validation. The field `wave` of a route is the index of the validation
	 * batch. */
	const struct route *routes;
	uint8_t wire; /* enum tensor_format of the validation's ACTIVATION tensors */
};

struct msg_fault {
	uint32_t fault;
	uint8_t kind;      /* enum fault_kind; FAULT_NONE heals `fault` */
	/* For faults of links: the node at the other end; -1: all links of the node. */
	int32_t peer;
	float factor;      /* factor of a slowdown, or probability of a loss */
	uint32_t ttl_ms;
};

struct msg_ping {
	int64_t now_us; /* time of the ping by the controller's clock */
	/* Offset between the clocks: the receiver's time + offset_us is the controller's time.
	 * Valid if is_measured is 1. */
	int64_t offset_us;
	uint8_t is_measured;
};

struct msg_stop {
	char reason[128];
};

/* Orders the agent to measure the link to a node: first its latency, then its bandwidth. If `to`
 * is MSG_NOBODY, orders the agent to measure the latencies of the links to all peers at the same
 * time. */
struct msg_measure {
	uint64_t id; /* number of this order; later orders have greater numbers */
	uint16_t to;
	/* Time limit in milliseconds. The time counts from the moment at which the two nodes are
	 * connected. */
	uint32_t most_ms;
};

/* Limit of the nodes in a MSG_CONNECT, and therefore of the peers to which an agent connects in
 * advance. */
#define MSG_CONNECT_MOST 64

/* Purposes of a connection: activations and gradients; slices of sums; spare connection, which
 * carries activations and gradients only if the node replaces another node on the agent's
 * paths. */
enum connect_use { CONNECT_ACTIVATIONS, CONNECT_SUMS, CONNECT_SPARE };

struct msg_connect_to {
	uint16_t node;
	uint8_t use; /* enum connect_use */
};

/* Orders the agent to connect to these nodes, because the next plan needs the connections. The
 * agent also sends a message to each of the nodes. */
struct msg_connect {
	uint64_t id; /* number of this order; later orders have greater numbers */
	uint32_t n_nodes;
	const struct msg_connect_to *nodes;
};

/* ---- between controller and agent, both ways ---- */

enum file_kind {
	FILE_STAGE, /* file of a checkpoint; `iteration` and `index` (the stage) identify it */
	FILE_CORPUS /* file of the corpus; `index` is the position of its path in MSG_WELCOME */
};

/* Requests a part of a file: up to MSG_FILE_BYTES from `offset`. */
struct msg_file_ask {
	uint8_t kind; /* enum file_kind */
	uint64_t iteration;
	uint32_t index;
	uint64_t offset;
};

/* A part of a file, in the body. The fields that identify the file have the same values as in the
 * request. */
struct msg_file_part {
	uint8_t kind;
	uint64_t iteration;
	uint32_t index;
	uint64_t offset;
	/* Size of the whole file in bytes; 0: the sender cannot send the file, for the reason in
	 * text. */
	uint64_t total;
	/* Time at which the file was last changed, by the clock of the sender's machine. */
	int64_t modified_us;
	char text[160];
};

enum { MSG_FILE_BYTES = 256 << 10 };

/* ---- agent -> agent ---- */

enum tensor_kind {
	TENSOR_ACTIVATION,
	TENSOR_GRADIENT,
	TENSOR_PART,
	TENSOR_SUM,
	TENSOR_STATE,
	TENSOR_PROBE /* no content; the tensor only shows that the link works */
};

/* The body is float data:
 *     ACTIVATION, GRADIENT   (batch, sequence, dim) in the run's format (model/codec/codec.h)
 *     PART                   slice `index` of the sender's gradient, encoded, from `offset`
 *     SUM                    slice `index` summed over the replicas, encoded, from `offset`
 *     STATE                  piece `index` of weights, first and second moments, (3, n)
 */
struct msg_tensor {
	uint8_t kind;       /* enum tensor_kind */
	uint8_t evaluate;   /* 1: the tensor belongs to an evaluation */
	uint16_t from;
	uint64_t iteration; /* STATE: number of iterations committed in these weights */
	uint32_t attempt;   /* PART, SUM: number of the attempt at the sum */
	/* PART, SUM: number of the slice. ACTIVATION, GRADIENT: position of the receiver's task in
	 * the chain (wire/chain.h). STATE: number of the piece. */
	uint32_t index;
	uint8_t stage;  /* PART, SUM, STATE: the stage to which the data belongs; otherwise 0 */
	uint64_t hash;  /* STATE: hash of the body; otherwise 0 */
	uint64_t offset;   /* PART, SUM: offset in bytes; otherwise 0 */
	/* ACTIVATION, GRADIENT, PART, SUM: time at which the sender had computed the tensor, and
	 * time at which the sender had encoded the tensor and could send it. Both times are on
	 * the controller's clock; 0: unknown. */
	int64_t computed_us, encoded_us;
	uint32_t n_routes; /* number of routes: 1 for ACTIVATION and GRADIENT */
	const struct route *routes;
};

enum {
	MSG_PIECE_FLOATS = 1 << 17
}; /* largest number of floats that a piece has in each of the three arrays */

struct msg_fetch {
	uint16_t from;
	uint8_t stage;
	uint32_t piece;
};

/* Announces a train of packets that measures the link (bandwidth/packet_train.h). */
struct msg_packet_train {
	uint16_t from;
	uint8_t token[16];
};
/* Reports how many packets of a train arrived, and the measured rate. */
struct msg_packet_train_heard {
	uint16_t from;
	uint8_t token[16];
	uint32_t packets;  /* number of packets that arrived */
	/* Measured bandwidth in bytes per second; 0: too few packets for a result. */
	float bytes_per_s;
};

/* ---- console -> controller ---- */

struct msg_attach {
	uint32_t protocol;
	char name[64];
	uint8_t readonly;
};

struct msg_command {
	uint64_t id;       /* number chosen by the console; the answer repeats it */
	uint8_t verb;      /* enum command_verb */
	int32_t node;
	int32_t peer;
	int64_t value;     /* the skip ratio (skip_share_pack), or another number (names.h) */
	uint8_t fault;     /* enum fault_kind */
	float factor;
	uint32_t ttl_ms;
	char text[128];
};

/* ---- controller -> console ---- */

/* The steps of a run's start, before the first iteration. */
enum gather_step {
	GATHER_COMING,  /* agents join the run */
	GATHER_LINKS,   /* the links are measured */
	GATHER_COMPUTE, /* the nodes' computing times are measured */
	GATHER_PLAN,    /* the controller plans with these measurements */
	GATHER_BUILD    /* agents build their stages */
};

struct msg_see_run {
	char name[64];
	char model[64];       /* name and size, e.g. "llama-tiny 1.3M" */
	/* Number of the run. A console that gets a new number discards all earlier messages. In a
	 * replay every jump gives a new number. */
	uint64_t run;
	uint64_t parameters;
	uint32_t n_nodes, n_stages;
	/* Set of the stages that every microbatch visits (bit s: stage s). */
	uint64_t always;
	uint32_t microbatches;          /* number of microbatches in an iteration */
	uint32_t per_data_node;
	uint64_t tokens_per_iteration;
	/* Number of iterations after which the run ends; 0: it does not end. */
	uint64_t iterations;
	double time_scale; /* real seconds in one second of the plan */
	int64_t started_wall_us;
	/* Predicted time of an iteration of the plain pipeline, in plan seconds; 0: unknown. */
	double baseline_s;
	uint32_t embedded;              /* 1: a supervisor started the agents on this machine */
	uint8_t emulated;               /* 1: network and computing times are emulated */
	/* If this is not 0, the run is a rehearsal: agents compute nothing, and tensors are
	 * shortened to 1 / rehearsal of their bytes. */
	uint32_t rehearsal;
	/* 1: this is a replay of a recorded run. The replay's present time is now_us of the
	 * status. */
	uint8_t replay;
	int64_t first_us, last_us;      /* replay: first and last time of the recorded run */
};

/* The newest checkpoint, if it failed. */
struct checkpoint_failure {
	uint64_t iteration; /* iteration of the failed checkpoint; 0: no failure */
	int32_t node;       /* node that could not save its stage; -1: none is known */
	char why[192];
};

struct msg_see_status {
	uint8_t phase;        /* enum run_phase */
	/* 1: the operator has ordered a pause. The run is paused, or will be paused after this
	 * iteration. */
	uint8_t paused;
	uint64_t iteration;   /* number of the iteration under way */
	uint64_t committed;
	uint64_t epoch;
	uint32_t alive, n_nodes;
	/* path_length: number of stages that a microbatch with skips visits. skip_share: percent
	 * of the microbatches that skip stages; 0: all microbatches skip. n_stages: number of
	 * stages. */
	uint32_t path_length, skip_share, n_stages;
	/* The skip schedule. skip_phase: the present phase, from 1. n_skip_phases: number of
	 * phases; 0: no schedule. next_skip: skip ratio of the next phase (skip_share_pack).
	 * next_phase_from: first iteration of the next phase; 0: there is none. */
	uint32_t skip_phase, n_skip_phases, next_skip;
	uint64_t next_phase_from;
	/* Format of activations and format of sums in this iteration (enum tensor_format). */
	uint8_t wire, sum_wire;
	/* Present time by the controller's clock. All other times in these messages are on this
	 * clock. */
	int64_t now_us;
	int64_t iteration_started_us;
	char lease[64];           /* holder of the operator's lease; "": nobody */
	int64_t lease_us;         /* time until the lease ends */
	/* Number of refused messages, and number of resent messages, of all kinds together. */
	uint64_t refused, resent;
	/* Number of state messages that were dropped because a console was slow. */
	uint64_t dropped;
	uint32_t faults;          /* number of faults that are injected and active */
	char doing[128];      /* the present activity, in words */
	/* In PHASE_GATHERING: the steps that the start of this run consists of, as bits 1 << enum
	 * gather_step. In other phases 0. */
	uint8_t steps;
	uint8_t step; /* the present step, an enum gather_step */
	/* Progress of the step: `part` of `parts` agents, rounds, nodes or stages are done. parts
	 * 0: unknown. */
	uint32_t part, parts;
	float left_s; /* time until the step ends; 0: unknown */
	uint64_t checkpoint; /* iteration of the newest complete checkpoint; 0: none */
	struct checkpoint_failure checkpoint_failure;
};

struct msg_see_node {
#define SCALAR(kind, type, field, most) type field;
#define TEXT_FIELD(field, size) char field[size];
	NODE_FIELDS(SCALAR, TEXT_FIELD)
#undef SCALAR
#undef TEXT_FIELD
	struct gpu_figures gpu;
	/* Time that the node's device spent in each state in the newest committed iteration; zeros:
	 * not measured. */
	struct device_time spent;
};

struct msg_see_plan {
	uint64_t epoch;
	uint64_t iteration; /* first iteration for which the controller uses this plan */
	uint32_t path_length, skip_share, n_stages; /* as in msg_see_status */
	/* Predicted times of an iteration, in plan seconds: */
	float iteration_s, sync_s, wait_s, lower_bound_s, idle_fraction;
	uint32_t collisions;
	char algorithm[16];
	char reason[96];      /* reason why the plan was made */
	/* 1: the plan is not in force, because it answers COMMAND_COMPARE or is a baseline. */
	uint8_t candidate;
	char name[32];        /* name of a plan that is not in force: "skip 3/6", "dtfm" */
	float elapsed_s;      /* duration of the search for the plan */
	uint32_t n_visits;
	/* for each of the n_stages stages, the number of microbatches that visit it */
	const uint32_t *visits;
	uint32_t n_routes;
	const struct route *routes;
	uint32_t n_planned;
	/* predicted starts and ends of tasks; at_us is in real time, from the iteration's start */
	const struct msg_task_event *planned;
};

struct msg_see_tasks {
	uint64_t iteration;
	uint8_t whole; /* 1: these events replace all earlier events of this iteration */
	uint32_t n_events;
	const struct msg_task_event *events; /* events, timed by the controller's clock */
};

struct msg_see_iteration {
	uint64_t iteration;
	uint64_t epoch;
	float loss;
	/* Measured and predicted time from the iteration's start to the end of its last backward
	 * pass, in plan seconds (real seconds / time scale). */
	float iteration_s, predicted_s;
	float sync_s, predicted_sync_s;
	float real_s; /* real seconds from the previous commit to this commit */
	uint32_t collisions;
	/* Total time that tasks waited, in plan seconds. Share of the nodes' time in which the
	 * nodes were idle. */
	float wait_s, idle_fraction;
	float gradient_norm, clip, lr;
	float tokens_per_s;                      /* tokens trained in a real second */
	uint32_t alive, path_length, skip_share; /* as in msg_see_status */
	uint32_t n_stages; /* number of stages at that time; 0: unknown */
	uint32_t rerun; /* number of microbatches that ran again */
	/* Time of the commit, by the controller's clock and by the wall clock. */
	int64_t at_us, wall_us;
	char algorithm[16]; /* algorithm that made the plan; "": unknown */
	uint8_t wire, sum_wire; /* enum tensor_format of activations, and of sums */
};

struct msg_see_validation {
	uint64_t iteration; /* number of iterations committed in the weights */
	float loss;
	float accuracy;     /* unused, always 0 */
};

struct msg_see_note {
	uint64_t id;
	int64_t at_us, wall_us;
	uint64_t iteration;
	uint8_t kind; /* enum note_kind */
	uint8_t acknowledged;
	/* Letter that marks the note in the loss curve: 'S' new skip ratio or copied stages, 'W'
	 * new format, 'F' failure, 'R' recovery, 0: no mark. */
	char mark;
	int32_t node;         /* node that the note concerns; -1: none */
	/* NOTE_COMMAND: number by which the operator can undo the command; 0: it cannot be
	 * undone. */
	uint64_t command;
	char text[256];
};

struct msg_see_fault {
	uint32_t fault;
	uint8_t kind;
	uint8_t active;
	int32_t node, peer;
	float factor;
	int64_t ends_us; /* time at which the fault ends, on the controller's clock */
};

/* Predicts the effect of a command that the operator considers. */
struct msg_see_preview {
	uint64_t command; /* id of the msg_command that asked for this preview */
	uint8_t verb;
	uint8_t feasible;
	uint64_t iteration;   /* first iteration that the command would affect */
	float before_iteration_s, after_iteration_s;
	/* Time that the sums take after the last backward pass: without the command, and with the
	 * command. */
	float before_sync_s, after_sync_s;
	float before_wait_s, after_wait_s;
	uint32_t before_peak_slots, after_peak_slots, memory;
	uint32_t least_stage, before_least_visits, after_least_visits;
	uint32_t paths_changed;
	/* Median relative error of the predicted iteration times in this run; 0.1 means 10%. */
	float median_error;
	uint32_t n_predictions;
	uint32_t before_path_length, after_path_length;
	float elapsed_s;
	/* If there is no plan, the reason for this. If there is a plan, a warning or "". */
	char text[192];
};

struct msg_see_reply {
	uint64_t command;
	int32_t status;       /* result of the command: 0: done; otherwise a negative errno */
	char text[192];
};

struct msg_see_links {
	uint32_t n_links;
	const struct msg_link *links;
};

struct msg_see_synced {
	/* The messages up to this sequence number are the complete snapshot of the run. */
	uint64_t sequence;
	/* Name under which the console's key is admitted; shown as holder of the lease. */
	char name[64];
	uint8_t watches;      /* 1: the console may only watch */
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
	const void *body;  /* MSG_TENSOR, MSG_FILE_PART: the bytes after the fields, inside the
			    * caller's buffer */
	size_t body_size;
	void *owned;       /* memory of the decoded arrays; msg_clear frees it */
};

const char *msg_name(enum msg_type type); /* "tensor", for example; "unknown" for an unknown type */

/* Returns the encoded size without the body; 0 if the message exceeds a limit. */
size_t msg_size(const struct msg *m);
/* Writes exactly msg_size bytes to out, which has room for `room` bytes. The caller appends the
 * body. Returns the size. -EINVAL: a limit is exceeded; -ENOSPC: `out` is too small. */
long msg_encode(const struct msg *m, void *out, size_t room);
/* Decodes *m from untrusted bytes. Allocates memory for arrays (msg_clear). m->body points into
 * data. Returns 0. -EBADMSG: the bytes are malformed; -EPROTONOSUPPORT: the message is of another
 * version; -ENOMEM. After an error *m is empty. */
int msg_decode(struct msg *m, const void *data, size_t size);
/* Returns true if the bytes begin like a message of another version. msg_decode refuses such a
 * message. */
bool msg_is_foreign(const void *data, size_t size);
/* Frees the memory that msg_decode allocated. A zeroed message is allowed. */
void msg_clear(struct msg *m);

#endif
