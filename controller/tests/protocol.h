/* protocol.h - for tests: a model of an iteration's protocol, from COMPUTING to the next START.
 *
 * A state is what the controller believes of every node, and what is so; a step is one thing that may happen: a
 * gradient is counted, told, summed, the sum told, the commit applied; a node dies, is taken for dead though it
 * lives, comes back; a keeper's copy is whole; a sum is wrong; the controller dies, at any moment, also while it tells
 * its agents something, and another takes over. The controller's steps are those of iteration.c, reroute.c,
 * commit.c, recover.c and startup.c, under the same names.
 *
 * Left out, as they change nothing of what is counted where: F and the loss (what a gradient needs is there, or not),
 * slots, moves around a cut link, evaluations, checkpoints, faulty nodes. What agents send each other arrives
 * or is lost with its sender. What the controller tells is with all agents at once, but where it dies meanwhile. What
 * agents tell takes its time, but where nobody can see the difference: what a data node has counted shows when it
 * is told, and a sum likewise. What happens while nobody leads happened before, or happens after.
 *
 * Nodes of a stage are alike, and so are microbatches: states that differ in names only are one. No node's record
 * names another node, so that is done by sorting.
 */
#ifndef CONTROLLER_TESTS_PROTOCOL_H
#define CONTROLLER_TESTS_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { P_NODES = 6, P_STAGES = 3, P_BATCHES = 2, P_ALL = (1 << P_BATCHES) - 1, P_NAME = P_NODES + 1 };

enum p_phase {
	P_COMPUTING,
	P_REDUCING,
	P_STALLED, /* in COMPUTING; then in REDUCING, in PLANNING: in this order */
	P_STALLED_REDUCING,
	P_STALLED_PLANNING,
	P_PLANNING,  /* it begins anew */
	P_GATHERING, /* the controller is dead, or another one gathers */
	P_COMMITTED
};

enum p_standing { P_GONE, P_JOINER /* has the weights */, P_SYNCING /* a joiner, in for the sums */, P_LIVE };

enum p_sum { P_NO_SUM, P_BEGUN /* its part is given */, P_BROKEN /* one will not come */, P_SUMMED, P_COUNTING /* ordered ahead */ };

/* A route, as the agent knows it: the controller's, or one before it. */
enum p_view { P_CURRENT, P_OLD };

/* Microbatches are bits. */
struct p_node {
	uint8_t stage;
	/* What the controller believes. */
	uint8_t standing;
	uint8_t on, owed, told;       /* on its route; stands in and has not; counted */
	uint8_t at;                   /* the stage that it has there */
	uint8_t reduced, in_sum;
	uint8_t keeps, copies, copy_reduced; /* keeps: stage + 1; 0 none */
	/* What is so. */
	uint8_t alive;
	uint8_t began;                 /* the iteration: 1 by this epoch, 2 by an older one */
	/* Mine: on the route that it knows; has: what that needs, whoever dies */
	uint8_t counted, mine, has;
	uint8_t view[P_BATCHES];
	uint8_t dropped;               /* told when it passed for dead */
	uint8_t given_up;              /* what it did runs again elsewhere */
	uint8_t sum, wrong, due, applied; /* due: COMMIT is on its way */
	uint8_t copy_sum, copy_wrong, copy_due, copy_applied;
};

struct p_state {
	struct p_node nodes[P_NODES];
	uint8_t phase;
	/* Microbatches: their last backward was told; routes are not the plan's */
	uint8_t home, changed;
	/* Microbatches that started over: what was told of them before brings none home */
	uint8_t over;
	uint8_t summing;       /* stages */
	/* In this attempt, by whomever: bit 0 right ones, bit 1 a wrong one, bit 2 two */
	uint8_t sums_told[P_STAGES];
	uint8_t taken_over, committed;
	uint8_t deaths, wrongs, takeovers; /* that may still come */
	uint8_t content[P_STAGES][P_BATCHES]; /* how often it is in the stage's sum */
};

/* What is explored, and by which code. */
struct protocol {
	int stages, nodes;
	uint8_t stage_of[P_NODES];
	uint8_t absent;          /* nodes, as bits, that are not there at first */
	uint8_t path[P_BATCHES]; /* stages as bits; the first is the data node's */
	int deaths, wrongs, takeovers;
	/* How names change with the microbatches exchanged: protocol_names.c */
	uint64_t swaps[4];
	bool overlap;            /* a stage sums as soon as its gradients are counted */
	/* With the start: each node gives its part when it has counted all that it was given */
	bool ahead;
	/* Without them, it is as it once was. */
	bool reruns_the_dead;    /* who died in its stage's sum runs again before sums begin anew */
	bool audits_hops;        /* and the audit looks for it */
	bool sums_after_a_stall; /* what ended while a stage was awaited is summed */
	/* What it told when it passed for dead counts against going on, though others are awaited
	 */
	bool minds_unheard;
	bool tells_again;        /* and it is told the routes that changed meanwhile */
	/* At a start an agent drops what it counted for the attempts before */
	bool starts_at_zero;
	/* Who holds other weights than the others of its stage after a commit takes no part */
	bool compares_hashes;
};

enum p_event {
	P_COUNT,
	P_REPORT,
	P_DROP, /* it reports, and passes for dead */
	P_REDUCED,
	P_REDUCED_WRONG,
	P_COPY_REDUCED,
	P_COPY_REDUCED_WRONG,
	P_COPY_OVERDUE,
	P_APPLY,
	P_COPY_APPLY,
	P_KILL,
	P_NOTICE,
	P_SILENCE, /* taken for dead, and lives */
	P_JOIN,
	P_NEW_PROCESS,
	P_KEEP,
	P_RESUME, /* the last of its stage is heard again */
	P_ADMIT,
	P_TAKE_OVER,
	P_RESTART,
	P_BEGIN,
	P_CRASH,
	P_GATHER,
	P_AGAIN, /* a microbatch that started over is home again, and its data node had counted it before */
	P_EVENTS
};

struct p_step {
	enum p_event event;
	int node, arg; /* -1 none; arg: a microbatch or a stage */
	bool free;     /* it happens of itself: no fault, and nobody from outside */
};

/* What went wrong; NULL: nothing. */
typedef void (*p_visit)(void *context, const struct p_step *step, const struct p_state *next, const char *wrong);

/* All that is mended, three deaths, a wrong sum, a takeover */
struct protocol protocol_of(int stages, int each);
void protocol_begin(const struct protocol *p, struct p_state *s);
/* All that may happen next, and what comes of it: a step that the controller may do in several ways is visited for
 * each. Nodes keep their places. */
void protocol_next(const struct protocol *p, const struct p_state *s, p_visit visit, void *context);
bool p_all_counted(const struct p_state *s, int m);
bool protocol_ended(const struct p_state *s);
/* Every stage has somebody who lives and holds its weights: then the iteration can end. */
bool protocol_can_end(const struct protocol *p, const struct p_state *s);
/* (p->nodes + 1) numbers, the same for all states that differ in names only; and one of those states. like: NULL, or
 * a state that was read from likes: what is alike need not be worked out. */
void protocol_name(const struct protocol *p, const struct p_state *s, const struct p_state *like,
		   const uint64_t *likes, uint64_t *name);
void protocol_read(const struct protocol *p, const uint64_t *name, struct p_state *s);
void protocol_print(const struct protocol *p, const struct p_state *s, FILE *to);
const char *protocol_event_name(enum p_event e);

#endif
