/* cluster.h - for tests: a small controller and its agents in one process, and the same training
 * computed by the model's code alone, as a reference.
 *
 * The agents are complete except for main's loop: they have posts and a worker thread, and talk
 * over loopback. The controller sends the messages that the test asks for and records all reports.
 * A killed agent disappears without a message. Every function fails the running cmocka test on an
 * error or a timeout.
 */
#ifndef AGENT_TESTS_CLUSTER_H
#define AGENT_TESTS_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/shared/route.h"
#include "base/stage_set.h"
#include "base/tensor_format.h"
#include "model/adamw.h"
#include "model/config.h"
#include "model/text/corpus.h"
#include "model/stage.h"
#include "wire/msg.h"
#include "wire/post.h"

enum {
	CLUSTER_NODES = 8,
	CLUSTER_BATCHES = 16,
	CLUSTER_EVENTS = 8192,
	CLUSTER_SLOTS = 2,
	CLUSTER_BATCH = 2,     /* sequences in a microbatch */
	CLUSTER_SEQUENCE = 16
};

struct node {
	struct agent *agent;   /* the node's agent; NULL if the node is dead */
	struct keys_identity *identity;
	struct log log;
	post_peer_id peer;     /* the agent's number at the controller's post; 0 before HELLO */
	bool said_hello, ready, reduced;
	struct msg_hello hello;
	struct msg_ready ready_said;
	struct msg_heartbeat beat;
	struct msg_reduced reduced_said;
	struct msg_committed committed;
	int keeps; /* stage of the node's standby copy; -1 if none */
	bool kept, copy_reduced;
	struct msg_kept kept_said;
	struct msg_committed copy_committed;
	uint32_t n_committed; /* number of reports of commits, without those of standby copies */
	struct msg_reduced copy_reduced_said;
	uint32_t troubles;
	char trouble[256];
	uint32_t n_logs;
	struct msg_log logs[8]; /* the first n_logs lines that the agent sent */
	uint8_t stage;
};

/* How the cluster emulates, and the limits of the agents; set before the agents start. */
struct cluster_options {
	uint32_t dim; /* 0 means 16 */
	uint64_t run; /* number of the run in WELCOME; 0 means 77 */
	const char *device; /* device of all agents; NULL: cpu */
	const char *twin_device; /* device of the twins; NULL: cpu */
	int64_t patience_us;     /* after which a wait fails; 0 means 20 s */
	double time_scale, task_s, overhead_s, serialise;
	enum tensor_format wire; /* format of activations and their gradients */
	enum tensor_format sum_wire; /* format of sums */
	bool copies_lag;       /* commits do not wait for the sums and steps of standby copies */
	/* Stages from which all others start with the next commits; 0: none do */
	stage_set stack_from;
	/* Limits of agents started later, as in agent_options; memory_bytes 0: free memory. */
	size_t memory_bytes;
	size_t chunk_bytes, message_bytes, retained_bytes;
	size_t threads_from_bytes; /* 0 means 1 */
	bool may_give_up;      /* an agent's fatal error does not fail the test */
	/* Times of transfers, by receiver, for all senders. */
	float delay_s[CLUSTER_NODES], sync_s[CLUSTER_NODES];
};

/* The current iteration, as ordered and as reported */
struct cluster_iteration {
	uint64_t iteration, epoch;
	uint32_t per_shard, n_batches;
	struct route routes[CLUSTER_BATCHES];
	struct msg_rank ranks[3 * CLUSTER_BATCHES]; /* ranks for all nodes; none if n_ranks is 0 */
	uint32_t n_ranks;
	/* The n_events events in order of arrival, with their node set. */
	struct msg_task_event events[CLUSTER_EVENTS];
	uint32_t n_events;
	uint32_t first_attempt; /* lowest attempt of the routes */
	float loss[CLUSTER_BATCHES];
	uint32_t n_evaluated, wanted_evaluations;
	float evaluated[CLUSTER_BATCHES];
};

struct cluster {
	struct cluster_options options;
	struct cluster_iteration now;
	uint32_t n_nodes, n_stages, n_shards;
	struct model_config config;
	char *model; /* config as JSON */
	char corpus_path[64];
	struct corpus *corpus;
	int64_t stopped_us; /* time at which the agents' clocks stand still; 0: they run */

	struct keys_identity *identity;
	struct keys_list *admitted;
	struct post *post;
	char address[LINK_ADDRESS_SIZE];
	struct node nodes[CLUSTER_NODES];
	uint64_t assignments;
	uint64_t links_reported;

	/* The reference: one stage for each node, trained by the model's code alone. */
	struct stage *twins[CLUSTER_NODES];
};

/* Starts n_nodes agents without waiting for them. stages has the stage of each node. *c is zero
 * except for its options. */
void cluster_init(struct cluster *c, uint32_t n_nodes, const uint8_t *stages);
void cluster_fini(struct cluster *c);
void cluster_turn(struct cluster *c);  /* runs one turn of the controller and of every agent */
/* Runs turns until done returns true; fails after the options' patience. */
void cluster_until(struct cluster *c, bool (*done)(struct cluster *c), const char *what);
void cluster_turns(struct cluster *c, int n);

void cluster_start_agent(struct cluster *c, uint32_t node);
void cluster_kill(struct cluster *c, uint32_t node);
void cluster_restart_controller(struct cluster *c);

void cluster_send(struct cluster *c, uint32_t node, const struct msg *m);
void cluster_welcome(struct cluster *c, uint32_t node);
void cluster_peers(struct cluster *c); /* sends PEERS to all nodes */
/* Withdraws the key of the node from all other agents. */
void cluster_expel(struct cluster *c, uint32_t node);
/* Assigns the node its stage. With source -1 the agent makes the weights from the seed; otherwise
 * the agent fetches them from node source first. Waits for the fetch, not for the loading. */
void cluster_assign(struct cluster *c, uint32_t node, int source);
/* Orders the node to keep a standby copy of the stage, or to drop its copy if stage is -1. Does
 * not wait. */
void cluster_keep(struct cluster *c, uint32_t node, int stage, uint16_t source);
/* Waits for HELLO of all agents, sends WELCOME, PEERS and ASSIGN, and waits for READY. */
void cluster_gather(struct cluster *c);
/* Returns true if all living agents have sent HELLO. */
bool cluster_all_sent_hello(struct cluster *c);
bool cluster_all_ready(struct cluster *c);

/* Routes microbatch m through the n nodes. Derives the stages from the nodes, and the shard and
 * the wave from m. */
void cluster_route(struct cluster *c, uint32_t m, uint32_t n, const uint16_t *nodes);
void cluster_start(struct cluster *c);  /* sends PLAN and START of the next iteration */
void cluster_fault(struct cluster *c, uint32_t node, uint32_t fault, uint8_t kind, int32_t peer,
		   float factor);
/* Sends new attempts of the microbatches in the bit mask `which`, with their current routes. `gone`
 * is the node that has died, or -1. */
void cluster_reroute(struct cluster *c, uint32_t which, int gone);
/* Returns true if every node on the route of microbatch m has counted its gradient. */
bool cluster_through(const struct cluster *c, uint32_t m);
bool cluster_all_through(struct cluster *c);
/* Orders the replicas and copies of each stage to reduce, with this attempt, and waits for them. */
void cluster_reduce(struct cluster *c, uint32_t attempt);
void cluster_commit(struct cluster *c, uint32_t attempt);
/* Evaluates n validation batches through the first node of every stage. */
void cluster_evaluate(struct cluster *c, uint32_t n);

/* AdamW's parameters for every step, and the factor of the gradient: 1 / microbatches. */
extern const struct adamw cluster_adamw;
float cluster_scale(const struct cluster *c);

/* twins.c: Repeats the iteration with the twins, in the order in which the agents counted. Fails
 * unless all hashes and sums of squares are equal to the bit. Call between cluster_reduce and
 * cluster_commit. */
void cluster_check_twins(struct cluster *c);
float cluster_twin_evaluation(struct cluster *c, uint32_t k);

/* ---- six_nodes.c ---- */

/* Stages of the six nodes: two data nodes, and two replicas each of two more stages. */
extern const uint8_t cluster_six[6];
/* Routes eight microbatches of one to three hops, one of them with swapped stages. */
void cluster_route_six(struct cluster *c);
/* Returns a gathered cluster of six nodes with these routes. The caller frees it by
 * cluster_unmake. */
struct cluster *cluster_of_six(void);
struct cluster *cluster_make(uint32_t n, const uint8_t *stages); /* allocates and initializes */
void cluster_unmake(struct cluster *c);
/* Waits for all microbatches, reduces, checks the twins, and commits. */
void cluster_finish(struct cluster *c);
void cluster_iterate(struct cluster *c); /* starts and finishes an iteration */
/* Returns the number of errors that all agents have reported. */
uint32_t cluster_troubles(const struct cluster *c);
bool cluster_any_trouble(struct cluster *c); /* returns true if the number is not 0 */
bool cluster_three_has_counted(struct cluster *c);
bool cluster_three_is_ready(struct cluster *c);
/* Replaces node 3 by node 2 in all routes. Returns the changed microbatches as a bit mask. */
uint32_t cluster_without_three(struct cluster *c);

#endif
