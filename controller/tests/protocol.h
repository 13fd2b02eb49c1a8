/* protocol.h - for tests: a model of an iteration's protocol, from COMPUTING to the next START.
 *
 * A state is what the controller believes of every node, and what is true. A step is one event: a
 * gradient is counted, reported or summed, a sum is reported, a commit is applied. A node dies, is
 * believed dead though it lives, or returns; a standby copy is complete; a sum is wrong. The
 * controller can die at any moment, also while it sends an announcement, and another one takes its
 * place. The controller's steps are those of iteration.c, reroute.c, commit.c, recover.c and
 * startup.c, under the same names.
 *
 * The model omits what does not affect which node counted which gradient: forward passes and the
 * loss (the input of a gradient is present or not), slots, moves around a cut link, evaluations,
 * checkpoints and faulty nodes. Messages between agents arrive or are lost with their sender. The
 * controller's messages reach all agents at once, unless it dies meanwhile. Agents' reports take
 * time, except where nobody can see the difference: a data node's count and a sum are visible once
 * reported. Events without a controller happen before it died or after it returned.
 *
 * Tensors travel in a format. Agents recognize a tensor by its iteration, and take a tensor of that
 * iteration in another format for wrong numbers. A sum is encoded by the owner of a slice; every
 * replica and standby copy decodes these bytes.
 *
 * Stages may start from a trained stage (--stack). Their nodes fetch a standby copy of it. The copy
 * has the state of the last commit until it makes this commit's step. The next plan then visits
 * these stages, so that the commit must say that they take the copy's layers.
 *
 * Nodes may move to another stage after the commit (--phase-moves). The model then ends with the
 * next START. A node that will move fetches a copy. When the iteration begins, the controller lists
 * the nodes whose copies are complete. Between the iterations all of them get their new stages at
 * once, and load their copies.
 *
 * Nodes of a stage are alike, and so are microbatches. States that differ only in names are one
 * state. No node's record names another node, so sorting the nodes is enough. */
#ifndef CONTROLLER_TESTS_PROTOCOL_H
#define CONTROLLER_TESTS_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The tests explore less where a sanitizer makes them slow. */
#if defined(__has_feature)
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	HAS_FEATURE(address_sanitizer) || HAS_FEATURE(thread_sanitizer)
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif

enum {
	P_NODES = 6,
	P_STAGES = 3,
	P_BATCHES = 2,
	P_ALL = (1 << P_BATCHES) - 1,
	P_NAME = P_NODES + 1
};

enum p_phase {
	P_COMPUTING,
	P_REDUCING,
	/* while COMPUTING; the next two: while REDUCING, while PLANNING, in this order */
	P_STALLED,
	P_STALLED_REDUCING,
	P_STALLED_PLANNING,
	P_PLANNING,  /* the iteration restarts */
	P_GATHERING, /* the controller is dead, or a new one gathers */
	P_COMMITTED
};

enum p_standing {
	P_GONE,
	P_JOINER /* holds the weights */,
	P_SYNCING /* a joiner admitted for the sums */,
	P_LIVE
};

enum p_sum {
	P_NO_SUM,
	P_BEGUN /* sent its part */,
	P_BROKEN /* a part will not arrive */,
	P_SUMMED,
	P_COUNTING /* ordered ahead */
};

/* Stages that start from a trained stage: from the first iterations to the commit that says so. */
enum p_stack {
	P_NO_STACK,
	P_STACK_LATER, /* the phase that visits them waits for the copies */
	P_STACK_NEXT,  /* the next iteration visits them */
	P_STACKED      /* the commit says that they start from trained stages */
};

/* The origin of a node's weights, once it has applied the commit. */
enum p_layers {
	P_OWN_LAYERS,
	P_LAYERS_BEFORE,   /* the source's, from before this commit's step */
	P_LAYERS_OF_COMMIT /* the source's, after this commit's step */
};

/* Nodes that move to another stage between two iterations. */
enum p_moves {
	P_NO_MOVES,
	P_MOVES_LATER,
	P_LISTED, /* the listed nodes move before the next iteration */
	P_MOVED   /* the record has the new stages */
};

/* The weights of a node with regard to its stage. */
enum p_load {
	/* the node has not moved, or the controller knows that it has its new stage */
	P_HAS_WEIGHTS,
	P_LOAD_ORDERED, /* the node is about to load its copy */
	P_LOAD_AWAITED, /* the order to load the copy was lost */
	P_LOADED        /* the node has not reported this yet */
};

/* An agent's knowledge of a route: the controller's present route, or an earlier one. */
enum p_view { P_CURRENT, P_OLD };

struct p_move {
	uint8_t to;     /* stage + 1 that the node has in the next phase; 0: no other one */
	uint8_t listed; /* the node moves to that stage before the next iteration */
	uint8_t load;   /* enum p_load */
};

/* One node. Sets of microbatches are bits. */
struct p_node {
	uint8_t stage;
	/* State as the controller believes it. */
	uint8_t standing;
	/* microbatches on its route; owed by it as a substitute; reported as counted */
	uint8_t on, owed, reported;
	uint8_t at; /* its stage on those routes */
	uint8_t reduced, in_sum;
	uint8_t keeps, copies, copy_reduced; /* keeps: stage + 1 of its standby copy; 0: none */
	uint8_t fetching;                    /* the copy is not complete */
	/* State as it really is. */
	uint8_t alive;
	/* it began the iteration: 1: with the present epoch, 2: with an older one */
	uint8_t began;
	/* mine: on the routes that the node knows; has: microbatches whose inputs are present,
	 * whoever dies */
	uint8_t counted, mine, has;
	uint8_t view[P_BATCHES];
	uint8_t dropped;                  /* reported while believed dead */
	uint8_t given_up;                 /* its work runs again elsewhere */
	uint8_t sum, wrong, due, applied; /* due: COMMIT is travelling to it */
	uint8_t copy_sum, copy_wrong, copy_due, copy_applied;
	uint8_t layers; /* enum p_layers */
	struct p_move move;
};

struct p_state {
	struct p_node nodes[P_NODES];
	uint8_t phase;
	/* Microbatches: home: the last backward pass was reported; changed: rerouted */
	uint8_t home, changed;
	/* Microbatches that started over: earlier reports do not bring them home */
	uint8_t over;
	uint8_t summing; /* stages */
	/* Reports in this attempt: bit 0: a right sum, bit 1: a wrong one, bit 2: two reports */
	uint8_t sums_reported[P_STAGES];
	uint8_t taken_over, committed;
	uint8_t deaths, wrongs, takeovers; /* faults that may still happen */
	/* Formats of tensors, as numbers of one bit: the iteration's, and the operator's wish */
	uint8_t format, wanted;
	uint8_t changes; /* number of times that the operator may still change the wish */
	uint8_t tried;   /* the controller has begun the iteration, or resumed it */
	uint8_t sent;    /* formats, as bits, in which nodes may have sent tensors of it */
	uint8_t stack;   /* enum p_stack */
	uint8_t moves;   /* enum p_moves */
	uint8_t started; /* the next iteration has begun */
	/* number of times each gradient is in the stage's sum */
	uint8_t content[P_STAGES][P_BATCHES];
};

/* Each rule of the code can be switched off, to show that the model then finds the fault. */
enum p_rule {
	/* Before sums restart, the work of a node that died in its stage's sum runs again */
	P_RERUN_DEAD = 1,
	P_AUDIT_HOPS = 2,      /* the audit checks that this work ran again */
	P_SUM_AFTER_STALL = 4, /* what ended while the run was stalled is summed */
	/* If a node counted gradients while believed dead, its reports force a restart, even if
	 * other nodes are awaited */
	P_HEED_DROPPED = 8,
	P_REPEAT_ROUTES = 16, /* a node believed dead receives the routes that changed meanwhile */
	P_START_AT_ZERO = 32, /* at a start an agent drops its counts of earlier attempts */
	/* A node whose weights differ from its stage's after a commit is dropped */
	P_COMPARE_HASHES = 64,
	P_KEEP_FORMAT = 128,  /* an iteration that restarts keeps its format */
	P_STORE_FORMAT = 256, /* the format is stored before the start is announced */
	/* The owner of a slice decodes the sum that it has encoded, as all others do */
	P_DECODE_OWN = 512,
	/* An agent takes its source's layers once the copy has made the commit's step */
	P_AWAIT_COPY_STEP = 1024,
	P_NEED_WHOLE_COPY = 2048, /* a stage cannot start from a copy that is being fetched */
	/* A node without the copy leaves its stage with the commit */
	P_DROP_WITHOUT_COPY = 4096,
	P_VOID_COPIES = 8192,   /* copies of a stage that starts from its source are void */
	P_RECORD_STACK = 16384, /* the commit's record says that stages start from trained stages */
	/* Only nodes with complete copies are listed */
	P_LIST_WHOLE_COPIES = 32768,
	P_KEEP_STAYERS = 65536, /* a replica stays in each stage */
	/* An exchange is dropped if a listed node cannot move, or the last one to stay died */
	P_CHECK_LISTED = 131072,
	/* Nodes move once their copies have made the commit's step */
	P_AWAIT_LISTED = 262144,
	P_LOAD_REPORTED = 524288, /* a new controller lets nodes load the copies that they report */
	P_ALL_RULES = 1048575
};

/* The cluster to explore, and the variant of the code. */
struct protocol {
	int stages, nodes;
	uint8_t stage_of[P_NODES];
	uint8_t absent;          /* nodes, as bits, that are absent at first */
	uint8_t path[P_BATCHES]; /* stages as bits; the first is the data node's */
	int deaths, wrongs, takeovers;
	/* Changes of names when the microbatches are exchanged: protocol_names.c */
	uint64_t swaps[4];
	int changes;  /* of the wanted format */
	bool fresh;   /* the iteration has not begun, and its wanted format is new */
	bool overlap; /* a stage sums as soon as its gradients are counted */
	/* Sums are ordered with the start: each node sends its part once it has counted its
	 * microbatches */
	bool ahead;
	/* Stages as bits: those that others start from; 0: none does. All nodes of the others fetch
	 * a copy, or have one in the beginning: nodes as bits. */
	uint8_t always, have_copies;
	bool entered; /* the phase that visits these stages is next, though copies are fetched */
	/* Stage + 1 that each node has in the next phase; 0: the one that it has. Nodes of
	 * have_copies have a copy in the beginning. */
	uint8_t to[P_NODES];
	int rules;    /* enum p_rule */
};

enum p_event {
	P_COUNT,
	P_REPORT,
	P_DROP, /* a report from a node believed dead */
	P_REDUCED,
	P_REDUCED_WRONG,
	P_COPY_REDUCED,
	P_COPY_REDUCED_WRONG,
	P_COPY_OVERDUE,
	P_APPLY,
	P_COPY_APPLY,
	P_KILL,
	P_NOTICE,
	P_SILENCE, /* believed dead, and alive */
	P_JOIN,
	P_NEW_PROCESS,
	P_KEEP,
	P_FETCHED, /* the copy is complete */
	P_RESUME,  /* the last replica of its stage is heard again */
	P_ADMIT,
	P_TAKE_OVER,
	P_RESTART,
	P_BEGIN,
	P_CRASH,
	P_GATHER,
	/* a microbatch that started over is home again, and its data node had counted it before */
	P_AGAIN,
	P_CHANGE, /* the operator wants another format */
	P_LOSE,   /* a node that will move loses its copy */
	P_EXCHANGE,
	P_EXCHANGE_LATE, /* a copy did not make the commit's step in time */
	P_ORDER_LOAD,
	P_LOAD,
	P_READY,
	P_START, /* the iteration after the commit begins */
	P_EVENTS
};

struct p_step {
	enum p_event event;
	int node, arg; /* node, microbatch or stage of the step; -1: none */
	bool free;     /* neither a fault nor an event from outside */
};

/* wrong: the violated property; NULL: none */
typedef void (*p_visit)(void *context, const struct p_step *step, const struct p_state *next,
			const char *wrong);

/* Returns the complete code, with three deaths, a wrong sum and one new controller. */
struct protocol protocol_of(int stages, int each);
void protocol_begin(const struct protocol *p, struct p_state *s);
/* Visits every step that may happen next, with its result. A step in which the controller has
 * several choices is visited for each. Nodes keep their places. */
void protocol_next(const struct protocol *p, const struct p_state *s, p_visit visit, void *context);
bool p_all_counted(const struct p_state *s, int m);
bool protocol_ended(const struct protocol *p, const struct p_state *s);
/* Returns true if every stage has a living node that holds its weights. The iteration can then end.
 */
bool protocol_can_end(const struct protocol *p, const struct p_state *s);
/* Writes (p->nodes + 1) numbers that are equal for all states that differ only in names;
 * protocol_read returns one of these states. like: NULL, or the state read from likes, whose equal
 * parts need no new work. */
void protocol_name(const struct protocol *p, const struct p_state *s, const struct p_state *like,
		   const uint64_t *likes, uint64_t *name);
void protocol_read(const struct protocol *p, const uint64_t *name, struct p_state *s);
void protocol_print(const struct protocol *p, const struct p_state *s, FILE *to);
const char *protocol_event_name(enum p_event e);

#endif
