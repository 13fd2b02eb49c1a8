/* cluster.h - for tests: a small controller and its agents in one process. As a reference, the
 * model's code alone computes the same training.
 *
 * The agents are complete except for main's loop. They have posts and a worker thread, and exchange
 * messages over loopback. The controller sends the messages that the test asks for and records all
 * reports. A killed agent disappears without a message. Every function fails the running cmocka
 * test on an error or a timeout.
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
	struct agent *agent; /* NULL if the node is dead */
	struct keys_identity *identity;
	struct log log;
	post_peer_id peer; /* the agent's connection to the controller; 0 before HELLO */
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
	/* number of reported commits, without the commits of standby copies */
	uint32_t n_committed;
	struct msg_reduced copy_reduced_said;
	uint32_t troubles;
	char trouble[256];
	uint32_t n_logs;
	/* The first n_logs log lines that the agent sent to the controller. */
	struct msg_log logs[8];
	uint8_t stage;
};

/* Options of the network, the agents and the training. The test sets them before the agents
 * start. */
struct cluster_options {
	uint32_t dim; /* width of the model; 0 means 16 */
	uint64_t run; /* number of the run in WELCOME; 0 means 77 */
	const char *device; /* device of all agents; NULL: cpu */
	const char *twin_device; /* device of the twins; NULL: cpu */
	/* How long a wait may last before the test fails, us; 0 means 20 s. */
	int64_t patience_us;
	double time_scale, task_s, overhead_s, serialise;
	enum tensor_format wire;     /* format in which activations and their gradients are sent */
	enum tensor_format sum_wire; /* format in which the sums of gradients are sent */
	bool copies_lag;       /* commits do not wait for the sums and steps of standby copies */
	/* In the next commits, all stages outside this set take the layers of stages in this set;
	 * 0: no stage takes layers. */
	stage_set stack_from;
	/* Limits of agents that start later; agent_options explains the fields. If memory_bytes
	 * is 0, only the free memory limits an agent. */
	size_t memory_bytes;
	size_t chunk_bytes, message_bytes, retained_bytes;
	size_t threads_from_bytes; /* as in agent_options, but 0 means 1 */
	bool may_give_up;          /* an agent may report a fatal error without failing the test */
	/* Emulated times of a transfer to each node, the same for all senders. */
	float delay_s[CLUSTER_NODES], sync_s[CLUSTER_NODES];
};

/* The present iteration: what the controller has ordered, and what the agents have reported. */
struct cluster_iteration {
	uint64_t iteration, epoch;
	uint32_t per_shard, n_batches;
	struct route routes[CLUSTER_BATCHES];
	/* The priority list that every node gets, with n_ranks entries; n_ranks 0: no list. */
	struct msg_rank ranks[3 * CLUSTER_BATCHES];
	uint32_t n_ranks;
	/* The n_events reported events in order of arrival. `node` is set to the reporting
	 * node. */
	struct msg_task_event events[CLUSTER_EVENTS];
	uint32_t n_events;
	uint32_t first_attempt; /* lowest attempt in `routes` */
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
	int64_t stopped_us; /* time at which the agents' clocks are stopped; 0: the clocks run */

	struct keys_identity *identity;
	struct keys_list *admitted;
	struct post *post;
	char address[LINK_ADDRESS_SIZE];
	struct node nodes[CLUSTER_NODES];
	uint64_t assignments;
	uint64_t links_reported;

	/* The reference: for each node a stage that the model's code alone trains. */
	struct stage *twins[CLUSTER_NODES];
};

/* Starts n_nodes agents without waiting for them. stages (n_nodes): the stage of each node. *c must
 * be zero except for its options. */
void cluster_init(struct cluster *c, uint32_t n_nodes, const uint8_t *stages);
void cluster_fini(struct cluster *c);
void cluster_turn(struct cluster *c);  /* runs one turn of the controller and of every agent */
/* Runs turns until `done` returns true. Fails when options.patience_us is over. */
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
/* Assigns the node its stage. If source is -1, the agent makes the weights from the seed.
 * Otherwise the agent first fetches a copy of the stage from node `source`. Waits for the fetch,
 * but not for the loading. */
void cluster_assign(struct cluster *c, uint32_t node, int source);
/* Orders the node to keep a standby copy of the stage, fetched from `source`. If stage is -1,
 * orders the node to drop its copy. Does not wait. */
void cluster_keep(struct cluster *c, uint32_t node, int stage, uint16_t source);
/* Waits for HELLO of all agents, sends WELCOME, PEERS and ASSIGN, and waits for READY. */
void cluster_gather(struct cluster *c);
/* Returns true if all living agents have sent HELLO. */
bool cluster_all_sent_hello(struct cluster *c);
bool cluster_all_ready(struct cluster *c);

/* Routes microbatch m through n nodes. Each hop has the stage of its node. The shard and the wave
 * follow from m. */
void cluster_route(struct cluster *c, uint32_t m, uint32_t n, const uint16_t *nodes);
void cluster_start(struct cluster *c);  /* sends PLAN and START of the next iteration */
void cluster_fault(struct cluster *c, uint32_t node, uint32_t fault, uint8_t kind, int32_t peer,
		   float factor);
/* Orders a new attempt of the microbatches in the bit mask `which`, on their present routes.
 * gone: the node that has died; -1: no node has died. */
void cluster_reroute(struct cluster *c, uint32_t which, int gone);
/* Returns true if every node on the route of microbatch m has reported that it counted the
 * gradient. */
bool cluster_through(const struct cluster *c, uint32_t m);
bool cluster_all_through(struct cluster *c);
/* Orders a reduction with this attempt. The order goes to the replicas of each stage and to the
 * holders of its standby copies. Waits until all these nodes have reported the sum. */
void cluster_reduce(struct cluster *c, uint32_t attempt);
void cluster_commit(struct cluster *c, uint32_t attempt);
/* Evaluates n validation batches through the first node of every stage. */
void cluster_evaluate(struct cluster *c, uint32_t n);

/* The parameters of AdamW in every step, and the factor by which the summed gradient is multiplied:
 * 1 / number of microbatches. */
extern const struct adamw cluster_adamw;
float cluster_scale(const struct cluster *c);

/* Defined in twins.c. Repeats the iteration with the twins, in the order in which the agents
 * counted gradients. Fails unless all hashes and sums of squares of agents and twins have the
 * same bits. Call it between cluster_reduce and cluster_commit. */
void cluster_check_twins(struct cluster *c);
float cluster_twin_evaluation(struct cluster *c, uint32_t k);

/* ---- six_nodes.c ---- */

/* Stages of the six nodes: two data nodes with stage 0, two replicas of stage 1, two replicas of
 * stage 2. */
extern const uint8_t cluster_six[6];
/* Routes eight microbatches through one to three nodes each. One route visits its stages in
 * another order than the other routes. */
void cluster_route_six(struct cluster *c);
/* Returns a cluster of six nodes that are READY, with the routes of cluster_route_six. Freed by
 * cluster_unmake. */
struct cluster *cluster_of_six(void);
/* Allocates a cluster and calls cluster_init. */
struct cluster *cluster_make(uint32_t n, const uint8_t *stages);
void cluster_unmake(struct cluster *c);
/* Waits until all microbatches are counted, reduces, compares with the twins, and commits. */
void cluster_finish(struct cluster *c);
void cluster_iterate(struct cluster *c); /* starts an iteration and finishes it (cluster_finish) */
/* Returns the number of errors that all agents have reported. */
uint32_t cluster_troubles(const struct cluster *c);
bool cluster_any_trouble(struct cluster *c); /* returns true if an agent has reported an error */
bool cluster_three_has_counted(struct cluster *c);
bool cluster_three_is_ready(struct cluster *c);
/* Replaces node 3 by node 2 in all routes. Returns the changed microbatches as a bit mask. */
uint32_t cluster_without_three(struct cluster *c);

#endif
