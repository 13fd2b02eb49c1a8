/* player.h - for tests: agents that are played, and the world they are in: a whole controller and a console.
 *
 * Players compute nothing. They report what agents would report of the work that they are told to do, but for those
 * that are faulty, from an iteration on. A test gives out the faults and turns the world.
 */
#ifndef CONTROLLER_TESTS_PLAYER_H
#define CONTROLLER_TESTS_PLAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "controller/tests/visitor.h"

enum { PLAYERS = 9, BATCHES = 64, FAULTS_FROM = 4 /* the first iteration with a fault */ };

enum player_fault {
	HEALTHY,
	COUNTS_TWICE,
	COUNTS_OTHERS,
	COUNTS_NOT,
	OTHER_SQUARES,
	OTHER_SLICE,     /* of another's sum, as if a bit of that had flipped */
	OTHER_LENGTH,
	SENDS_ABSURD,    /* to all others, which report it in every iteration */
	HOLDS_A_SUM_UP,  /* the others wait for its part */
	REPORTS_NO_SUM,  /* though all others have it */
	ENDS_NOTHING,    /* and reports that a task runs */
	STARTS_NOTHING,  /* and reports that tasks wait */
	DOES_NOTHING,    /* and reports that it is at rest */
	KEEPS_TENSORS,   /* passes nothing on, and reports that they are on their way */
	EVALUATES_NOT,   /* and reports that a task runs */
	EVALUATES_IN_SECRET,
	ANSWERS_FOR_OTHERS, /* with another loss */
	OTHER_WEIGHTS,   /* after every commit it reports another hash */
	A_FLIPPED_BIT,   /* after one */
	MISSES_A_COMMIT,
	SAVES_NOT,       /* nor reports that it cannot */
	RESTORES_NOT,    /* nor reports anything when it is told to */
	CANNOT_READ,     /* the file that it is to restore from, and reports that */
	BEATS_FIRST,     /* it reports with a heartbeat that its stage is there, and then READY; no fault */
	CANNOT_MAKE      /* a stage of its neighbours, and reports that */
};

struct world;

struct player {
	struct visitor v;
	struct world *world;
	uint16_t node;
	uint8_t stage;
	bool ready;
	bool asleep; /* neither hears nor says anything */
	uint32_t restarts, processes;
	uint32_t welcomes;
	float emulates_s[PLAYERS]; /* the ways to the others, as last told */
	uint32_t told_of[PLAYERS]; /* their keys and addresses, so often */
	bool knows[PLAYERS];       /* a key that is let in */
	uint64_t run, assignment, committed, iteration, beats;
	struct msg_restore owed; /* done when it restores again */
	bool owes;
	int keeps; /* -1 none */
	int64_t beat_us;
	uint16_t awaits; /* 1 + the node; 0 nobody */
	struct route plans[2][BATCHES]; /* of an even and an odd epoch */
	uint32_t n_ways;
	/* Of this iteration: the plan's, and as they were rerouted since */
	struct route ways[BATCHES];
	bool counted[BATCHES];
	/* With the start: done when all is counted; no nodes: nothing is */
	struct msg_reduce ordered;
	uint16_t ordered_nodes[PLAYERS];
	struct msg_task_event events[4 * BATCHES];
	uint32_t n_events;
};

struct world {
	struct door *door;
	struct visitor console;
	struct player *players; /* (PLAYERS) */
	enum player_fault faults[PLAYERS];
	uint64_t committed;
	bool slow_copies; /* no fetch ends */
	uint64_t forged;  /* is added to the hash of what is fetched */
	uint64_t waits; /* in this iteration all wait; 0 none */
	uint32_t restarts;
	enum run_phase phase; /* as consoles are told */
	enum node_state states[PLAYERS];
	float lost_s[PLAYERS]; /* as consoles are told */
	uint64_t planned;      /* the newest plan in force, */
	float planned_s;       /* how long it says that an iteration takes */
	/* As consoles are told: the run, and its newest step before iterations; */
	uint8_t emulated, steps, step;
	uint32_t steps_back;           /* so often an earlier one than before */
	uint64_t no_way;               /* bits 1 << to, of node 0 */
	struct msg_link links[PLAYERS][PLAYERS]; /* as consoles are told */
	int links_told;
	uint32_t validations;
	float validated; /* the last */
};

/* Nine agents in three stages of three, that have come in. options: of the controller, beside those; NULL
 * last. A microbatch's tasks take no time. */
struct world *world_new(const char *const *options);
int world_free(struct world *w); /* ends the controller */
void world_turn(struct world *w); /* everybody's turn */
/* Those who waited, and are awake, work. */
void world_work(struct world *w);
/* Its process is a new one, which holds nothing. */
void player_replace(struct player *p);
/* It has measured that all its ways take so many times as long as it was told. */
void player_tells_ways(struct player *p, float times);
bool world_all_live(const struct world *w);
bool world_all_ready(const struct world *w); /* each has a stage, and has said so */

/* Turns the world until the condition holds; fails with the journal when that takes 40 s. */
#define WORLD_UNTIL(w, condition) \
	do { \
		int64_t give_up_ = clock_monotonic_us() + 40000000; \
		while (!(condition)) \
			world_turn_before(w, give_up_, #condition); \
	} while (0)
void world_turn_before(struct world *w, int64_t give_up_us, const char *what);

#endif
