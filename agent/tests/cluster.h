/* cluster.h - for tests: a small controller and its agents in one process, and the same training
 * by the model's code alone.
 *
 * The agents are whole (posts, worker thread, everything but main's loop) and talk over loopback.
 * The controller sends what the test orders and records all reports. Killing an agent drops it
 * without a message. Everything fails the running cmocka test when it goes wrong or lasts long.
 */
#ifndef AGENT_TESTS_CLUSTER_H
#define AGENT_TESTS_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/execution/route.h"
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
	CLUSTER_BATCH = 2,     /* sequences of a microbatch */
	CLUSTER_SEQUENCE = 16
};

struct node {
	struct agent *agent;   /* NULL: dead */
	struct keys_identity *identity;
	struct log log;
	post_peer_id peer;     /* at the controller; 0: has not said hello */
	bool said_hello, ready, reduced;
	struct msg_hello hello;
	struct msg_ready ready_said;
	struct msg_heartbeat beat;
	struct msg_reduced reduced_said;
	struct msg_committed committed;
	int keeps; /* stage it keeps a copy of; -1 none */
	bool kept, copy_reduced;
	struct msg_kept kept_said;
	struct msg_committed copy_committed;
	struct msg_reduced copy_reduced_said;
	uint32_t troubles;
	char trouble[256];
	uint8_t stage;
};

struct cluster {
	uint32_t n_nodes, n_stages, n_shards;
	uint32_t dim; /* 0: 16 */
	struct model_config config;
	char *model;           /* its JSON */
	char corpus_path[64];
	struct corpus *corpus;
	double time_scale, task_s, overhead_s, serialise;
	bool bf16;             /* what goes from stage to stage is rounded */
	int64_t stopped_us;    /* the agents' clocks stand there; 0: they go */
	bool copies_lag;       /* nobody waits for copies' sums and steps */
	size_t memory_bytes;   /* what agents started from now on may take; 0: what is free */
	size_t chunk_bytes, message_bytes, retained_bytes; /* likewise, as in agent_options */
	bool may_give_up;      /* an agent's fatal trouble is no failure of the test */
	float delay_s[CLUSTER_NODES], sync_s[CLUSTER_NODES]; /* the same from every node */

	struct keys_identity *identity;
	struct keys_list *admitted;
	struct post *post;
	char address[LINK_ADDRESS_SIZE];
	struct node nodes[CLUSTER_NODES];
	uint64_t assignments;

	/* The iteration under way. */
	uint64_t iteration, epoch;
	uint32_t per_shard, n_batches;
	struct route routes[CLUSTER_BATCHES];
	struct msg_rank ranks[3 * CLUSTER_BATCHES]; /* every node's; n_ranks 0: none */
	uint32_t n_ranks;
	struct msg_task_event events[CLUSTER_EVENTS]; /* all, in the order they came; node is set */
	uint32_t n_events;
	uint32_t first_attempt; /* of the iteration's routes: the least */
	float loss[CLUSTER_BATCHES];
	uint32_t n_evaluated, wanted_evaluations;
	float evaluated[CLUSTER_BATCHES];
	uint64_t links_reported;

	/* The same by the model alone: one stage a node. */
	struct stage *twins[CLUSTER_NODES];
};

/* stages: (n_nodes) the stage of each. Agents are made, but not waited for. *c is
 * zero, or sets its dim and the agents' options. */
void cluster_init(struct cluster *c, uint32_t n_nodes, const uint8_t *stages);
void cluster_fini(struct cluster *c);
void cluster_turn(struct cluster *c);  /* everybody gets a turn */
/* Turns until done says so; fails after 20 s. */
void cluster_until(struct cluster *c, bool (*done)(struct cluster *c), const char *what);
void cluster_turns(struct cluster *c, int n);

void cluster_start_agent(struct cluster *c, uint32_t node);
void cluster_kill(struct cluster *c, uint32_t node);
void cluster_restart_controller(struct cluster *c);

void cluster_send(struct cluster *c, uint32_t node, const struct msg *m);
void cluster_welcome(struct cluster *c, uint32_t node);
void cluster_peers(struct cluster *c); /* to all */
/* Makes the other agents forget its key. */
void cluster_expel(struct cluster *c, uint32_t node);
/* -1: from the seed; else it fetches a copy, waits for it, and loads it. */
void cluster_assign(struct cluster *c, uint32_t node, int source);
/* Keeps a copy of the stage from then on; -1: drops it. Not waited for. */
void cluster_keep(struct cluster *c, uint32_t node, int stage, uint16_t source);
/* Hello, welcome, peers, assign, ready: all of them. */
void cluster_gather(struct cluster *c);
bool cluster_all_said_hello(struct cluster *c); /* who is there */
bool cluster_all_ready(struct cluster *c);

/* Route m through nodes (their stages are known); shard and wave follow from m. */
void cluster_route(struct cluster *c, uint32_t m, uint32_t n, const uint16_t *nodes);
void cluster_start(struct cluster *c);  /* PLAN and START of the next iteration */
void cluster_fault(struct cluster *c, uint32_t node, uint32_t fault, uint8_t kind, int32_t peer,
		   float factor);
/* Every microbatch in `which` (bits) begins again as its route now says. */
void cluster_reroute(struct cluster *c, uint32_t which, int gone);
/* Counted by all whom its route has. */
bool cluster_through(const struct cluster *c, uint32_t m);
bool cluster_all_through(struct cluster *c);
/* The living of each stage sum up (attempt), and are waited for. */
void cluster_reduce(struct cluster *c, uint32_t attempt);
void cluster_commit(struct cluster *c, uint32_t attempt);
/* Evaluates n validation batches through the first node of every stage. */
void cluster_evaluate(struct cluster *c, uint32_t n);

/* AdamW's numbers for every step, and the gradient's factor, 1 / microbatches. */
extern const struct adamw cluster_recipe;
float cluster_scale(const struct cluster *c);

/* twins.c: what the twins make of the same iteration, in the order the agents counted: hashes and
 * sums of squares must be the same, to the bit. Between cluster_reduce and cluster_commit. */
void cluster_check_twins(struct cluster *c);
float cluster_twin_evaluation(struct cluster *c, uint32_t k);

/* ---- six_nodes.c ---- */

extern const uint8_t cluster_six[6]; /* stages: two data nodes, two replicas of two more */
void cluster_route_six(struct cluster *c); /* eight microbatches, of one to three hops, one swapped */
struct cluster *cluster_of_six(void); /* made, gathered and with those routes; cluster_unmake */
struct cluster *cluster_make(uint32_t n, const uint8_t *stages); /* malloc and cluster_init */
void cluster_unmake(struct cluster *c);
void cluster_finish(struct cluster *c);  /* all through, summed, the twins agree, committed */
void cluster_iterate(struct cluster *c); /* starts, and finishes */
uint32_t cluster_troubles(const struct cluster *c); /* reported by all agents */
bool cluster_any_trouble(struct cluster *c);   /* any are */
bool cluster_three_has_counted(struct cluster *c);
bool cluster_three_is_ready(struct cluster *c);
/* Everything that node 3 had a part in goes by node 2; the microbatches, as bits. */
uint32_t cluster_without_three(struct cluster *c);

#endif
