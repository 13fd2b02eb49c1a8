/* player.h - for tests: simulated agents ("players") and their world: a whole controller and a
 * console.
 *
 * Players compute nothing. They report what agents would report of their tasks. A faulty player
 * does so until a given iteration, and then shows its fault. A test assigns the faults and advances
 * the world turn by turn. */
#ifndef CONTROLLER_TESTS_PLAYER_H
#define CONTROLLER_TESTS_PLAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "controller/tests/visitor.h"

enum {
	PLAYERS = 9,
	BATCHES = 64,
	FAULTS_FROM = 4, /* the first iteration with a fault */
	BAD_DATA = 2     /* iterations of data, from that of FAULTS_FROM on */
};

enum player_fault {
	HEALTHY,
	COUNTS_TWICE,
	COUNTS_OTHERS,
	COUNTS_NOT,
	OTHER_SQUARES,
	OTHER_SLICE, /* as if a bit of another node's slice had flipped */
	OTHER_LENGTH,
	/* sends absurd tensors to all others, which report it in every iteration */
	SENDS_ABSURD,
	HOLDS_A_SUM_UP, /* the others wait for its part */
	REPORTS_NO_SUM, /* though all others have it */
	ENDS_NOTHING,   /* and reports that a task runs */
	STARTS_NOTHING, /* and reports that tasks wait */
	DOES_NOTHING,   /* and reports that the node is at rest */
	KEEPS_TENSORS,  /* passes no tensors on, and reports that they are on their way */
	EVALUATES_NOT,  /* and reports that a task runs */
	EVALUATES_IN_SECRET,
	ANSWERS_FOR_OTHERS, /* answers validations of other data nodes, with another loss */
	OTHER_WEIGHTS,      /* reports another hash after every commit */
	A_FLIPPED_BIT,      /* reports another hash once */
	MISSES_A_COMMIT,
	SAVES_NOT,    /* and does not report the failure */
	RESTORES_NOT, /* and reports nothing */
	CANNOT_READ,  /* reports that it cannot read the file to restore from */
	BEATS_FIRST,  /* no fault: reports the stage with a heartbeat before READY */
	LOSS_IS_NAN,  /* computes losses that are not finite */
	DATA_IS_BAD,  /* no fault: the losses of BAD_DATA iterations are not finite */
	CANNOT_MAKE   /* reports that it cannot rebuild a stage from its neighbours */
};

struct world;

/* Emulated times to the other players: of an activation, of a stage's gradient */
struct emulated {
	float delay_s[PLAYERS], sum_s[PLAYERS];
};

/* An order to sum, with the memory of its nodes. */
struct player_order {
	struct msg_reduce sum;
	uint16_t nodes[PLAYERS];
};

/* A peer's key as last announced. */
struct player_knowledge {
	bool key;        /* true if the peer's key is admitted */
	uint8_t absence; /* enum peer_absence */
};

/* A player's newest order to connect. */
struct player_connect {
	uint64_t id;        /* 0: none */
	bool to[PLAYERS];   /* the nodes that it named */
	bool came_too_late; /* a plan had next nodes that no order had named before */
};

struct player {
	struct visitor v;
	struct world *world;
	uint16_t node;
	uint8_t stage;
	bool ready;
	bool asleep; /* neither receives nor sends */
	uint32_t restarts, processes, welcomes;
	struct emulated emulates; /* as last received */
	uint32_t announced[PLAYERS]; /* times that their keys and addresses arrived */
	struct player_knowledge knows[PLAYERS];
	uint64_t run, assignment, committed, iteration, beats;
	/* order to restore, carried out when the player can restore again */
	struct msg_restore owed;
	bool owes;
	int keeps; /* stage of its copy; -1: none */
	int64_t beat_us;
	uint16_t awaits;                /* 1 + the node; 0: none */
	uint8_t wire;                   /* format of the newest start */
	struct route plans[2][BATCHES]; /* plans of even and of odd epochs */
	uint32_t n_routes;
	/* Routes of this iteration, including reroutes. */
	struct route routes[BATCHES];
	bool counted[BATCHES];
	/* The order that came with the start, carried out once all microbatches are counted; no
	 * nodes: none */
	struct player_order ordered;
	struct msg_task_event events[4 * BATCHES];
	uint32_t n_events;
};

struct world {
	struct door *door;
	struct visitor console;
	struct player *players; /* (PLAYERS) */
	enum player_fault faults[PLAYERS];
	struct player_connect connects[PLAYERS];
	uint64_t committed;
	bool slow_copies; /* fetches never end */
	bool never_connected; /* players do not report that they are connected */
	uint64_t forged;  /* added to the hash of fetched weights */
	uint64_t data;    /* iterations of data before that of the newest start */
	uint64_t waits;   /* all players wait in this iteration; 0: none */
	uint32_t restarts;
	enum run_phase phase; /* phase as consoles see it */
	enum node_state states[PLAYERS];
	/* predicted loss of time for each node's death, as consoles see it */
	float lost_s[PLAYERS];
	uint64_t planned;      /* the newest plan in force */
	float planned_s;       /* predicted duration of its iterations */
	/* The run as consoles see it, and its newest step before iterations */
	uint8_t emulated, steps, step;
	uint32_t steps_back;                     /* times that the step went back */
	uint64_t no_link;                        /* missing links of node 0, bits 1 << to */
	struct msg_link links[PLAYERS][PLAYERS]; /* links as consoles see them */
	int link_messages;
	uint32_t validations;
	float validated; /* the last validation */
};

/* Starts a world of nine agents in three stages of three, which have joined. options: extra
 * options of the controller, ended by NULL. A microbatch's tasks take no time. */
struct world *world_new(const char *const *options);
int world_free(struct world *w);  /* ends the controller */
void world_turn(struct world *w); /* one turn of every player */
/* Lets the players that waited and are awake work. */
void world_work(struct world *w);
/* Replaces the player by a new process, which holds nothing. */
void player_replace(struct player *p);
/* The player reports link delays that are this many times the announced delays. */
void player_reports_delays(struct player *p, float times);
bool world_all_live(const struct world *w);
/* Returns true if each player has a stage and has reported it */
bool world_all_ready(const struct world *w);

/* Turns the world until the condition holds; fails with the journal after 40 s. */
#define WORLD_UNTIL(w, condition) \
	do { \
		int64_t give_up_ = clock_monotonic_us() + TEST_PATIENCE_US; \
		while (!(condition)) \
			world_turn_before(w, give_up_, #condition); \
	} while (0)
void world_turn_before(struct world *w, int64_t give_up_us, const char *what);

#endif
