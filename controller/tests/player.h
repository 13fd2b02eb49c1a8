/* player.h - for tests: simulated agents ("players") and their world: a whole controller and a
 * console.
 *
 * Players compute nothing, but send the same reports as agents that compute. A faulty player
 * behaves normally until FAULTS_FROM, and then shows its fault. A test assigns the faults and gives
 * the world one turn after another. */
#ifndef CONTROLLER_TESTS_PLAYER_H
#define CONTROLLER_TESTS_PLAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "controller/tests/visitor.h"

enum {
	PLAYERS = 9,
	BATCHES = 64,
	FAULTS_FROM = 4, /* the first iteration in which a fault appears */
	/* number of iterations whose data is bad, beginning with iteration FAULTS_FROM */
	BAD_DATA = 2
};

enum player_fault {
	HEALTHY,
	COUNTS_TWICE,
	COUNTS_OTHERS,
	COUNTS_NOT,
	OTHER_SQUARES,
	OTHER_SLICE, /* reports sums as if a bit in another node's slice had flipped */
	OTHER_LENGTH,
	/* sends absurd tensors to all other nodes, which report these tensors in every
	 * iteration */
	SENDS_ABSURD,
	HOLDS_A_SUM_UP, /* withholds its part of the sum, so that the other replicas wait */
	REPORTS_NO_SUM, /* does not report its sum, although all other replicas have theirs */
	ENDS_NOTHING,   /* ends no task, and reports that a task runs */
	STARTS_NOTHING, /* starts no task, and reports that tasks wait */
	DOES_NOTHING,   /* does nothing, and reports that the node is at rest */
	KEEPS_TENSORS,  /* passes no tensors on, and reports that they are on their way */
	EVALUATES_NOT,  /* does not validate, and reports that a task runs */
	EVALUATES_IN_SECRET,
	ANSWERS_FOR_OTHERS, /* answers validations in place of the data nodes, with another loss */
	OTHER_WEIGHTS,      /* reports a wrong hash of its weights after every commit */
	A_FLIPPED_BIT,      /* reports a wrong hash of its weights once */
	MISSES_A_COMMIT,
	SAVES_NOT,    /* does not save, and does not report the failure */
	RESTORES_NOT, /* does not restore, and reports nothing */
	CANNOT_READ,  /* reports that it cannot read the file to restore from */
	BEATS_FIRST,  /* not a fault: reports its stage in a heartbeat before it sends READY */
	LOSS_IS_NAN,  /* computes losses that are not finite */
	DATA_IS_BAD,  /* not a fault: the losses of BAD_DATA iterations are not finite */
	CANNOT_MAKE   /* reports that it cannot rebuild a stage from its neighbours */
};

struct world;

/* Emulated transfer times from this player to each of the other players: delay_s of an
 * activation, sum_s of a stage's gradient */
struct emulated {
	float delay_s[PLAYERS], sum_s[PLAYERS];
};

/* An order to sum, with its own copy of the list of nodes. */
struct player_order {
	struct msg_reduce sum;
	uint16_t nodes[PLAYERS];
};

/* The newest announcement of another node's key that a player has received. */
struct player_knowledge {
	bool key;        /* true if the peer's key is admitted */
	uint8_t absence; /* enum peer_absence: why the node is absent */
};

/* A player's newest order to connect. */
struct player_connect {
	uint64_t id;        /* number of the order; 0: none */
	bool to[PLAYERS];   /* the nodes that the order names */
	bool came_too_late; /* a plan needed a connection that no earlier order had named */
};

struct player {
	struct visitor v;
	struct world *world;
	uint16_t node;
	uint8_t stage;
	bool ready;
	bool asleep; /* the player neither receives nor sends */
	uint32_t restarts, processes, welcomes;
	struct emulated emulates;    /* emulated times, as last received */
	/* number of times that each node's key and address were announced to this player */
	uint32_t announced[PLAYERS];
	struct player_knowledge knows[PLAYERS];
	uint64_t run, assignment, committed, iteration, beats;
	/* order to restore that the player received during its fault, and carries out after the
	 * fault */
	struct msg_restore owed;
	bool owes;
	int keeps; /* stage of the player's standby copy; -1: none */
	int64_t beat_us;
	uint16_t awaits; /* 1 + the node for which the player waits; 0: none */
	uint8_t wire;    /* format of activations in the newest MSG_START */
	/* Routes of the newest plans with even and with odd epochs */
	struct route plans[2][BATCHES];
	uint32_t n_routes;
	/* Routes of this iteration, with reroutes. */
	struct route routes[BATCHES];
	bool counted[BATCHES];
	/* The order to sum that came with the start; without nodes, there was no order. The player
	 * carries the order out when all its microbatches are counted */
	struct player_order ordered;
	struct msg_task_event events[4 * BATCHES];
	uint32_t n_events;
};

struct world {
	struct door *door;
	struct visitor console;
	struct player *players; /* array of PLAYERS */
	enum player_fault faults[PLAYERS];
	struct player_connect connects[PLAYERS];
	uint64_t committed;
	bool slow_copies;     /* fetches of standby copies never end */
	bool never_connected; /* players do not report that they are connected */
	uint64_t forged;      /* number added to the hash of fetched weights, to make it wrong */
	/* Number of iterations whose data comes before the data of the newest started iteration.
	 * Trained and skipped iterations count */
	uint64_t data;
	uint64_t waits; /* the iteration in which all players wait; 0: none */
	uint32_t restarts;
	enum run_phase phase; /* phase of the run as consoles see it */
	enum node_state states[PLAYERS];
	/* predicted time of an iteration after each node's death, as consoles see it */
	float lost_s[PLAYERS];
	uint64_t planned; /* epoch of the plan in force */
	float planned_s;  /* predicted duration of an iteration in the plan in force */
	/* The three fields as consoles see them. `emulated`: 1 if the run is emulated. `steps`: set
	 * of the steps of the startup so far. `step`: the newest of these steps */
	uint8_t emulated, steps, step;
	uint32_t steps_back; /* number of times that a step was followed by an earlier step */
	/* Nodes to which node 0 has no link, one bit for each (1 << node) */
	uint64_t no_link;
	struct msg_link links[PLAYERS][PLAYERS]; /* links as consoles see them */
	int link_messages;
	uint32_t validations;
	float validated; /* loss of the last validation */
};

/* Starts a world of nine agents that have joined, in three stages of three agents. Tasks take no
 * time. options: further options of the controller, ending with NULL. */
struct world *world_new(const char *const *options);
int world_free(struct world *w);  /* ends the controller, and frees the world */
void world_turn(struct world *w); /* lets every player take one turn */
/* Makes all players work that have waited, except those that are asleep. */
void world_work(struct world *w);
/* Replaces the player's process by a new process, which holds no weights. */
void player_replace(struct player *p);
/* Makes the player report link delays that are `times` times the emulated delays. */
void player_reports_delays(struct player *p, float times);
bool world_all_live(const struct world *w);
/* Returns true if each player has a stage and has reported it */
bool world_all_ready(const struct world *w);

/* Takes turns until the condition holds. After TEST_PATIENCE_US, prints the journal and fails. */
#define WORLD_UNTIL(w, condition) \
	do { \
		int64_t give_up_ = clock_monotonic_us() + TEST_PATIENCE_US; \
		while (!(condition)) \
			world_turn_before(w, give_up_, #condition); \
	} while (0)
void world_turn_before(struct world *w, int64_t give_up_us, const char *what);

#endif
