/* protocol.h - for tests: a model of an iteration's protocol, from COMPUTING to the next START.
 *
 * A state consists of the controller's beliefs about every node, and of the true state of every
 * node. A step is one event. For example, a node counts, reports or sums a gradient, reports a
 * sum, or applies a commit. In other steps a node dies, returns, or is believed dead although it
 * lives, a standby copy becomes complete, or a sum is wrong. The controller can die at any
 * moment, even in the middle of an announcement, and another controller then replaces it. The
 * controller's steps are those of iteration.c, reroute.c, commit.c, recover.c and startup.c,
 * under the same names.
 *
 * The model omits everything that does not affect which node counted which gradient. It has no
 * forward passes and no loss: the input of a gradient is present or not. It has no slots, reroutes
 * around a cut link, evaluations, checkpoints or faulty nodes. Messages between agents arrive, or
 * are lost with their sender. The controller's messages reach all agents at once, unless the
 * controller dies while it sends them. Agents' reports take time. Only the report of a data node's
 * count and the report of a sum arrive at once, because no node can notice the difference. While no
 * controller runs, no event occurs: all events occur before the controller's death or after the
 * restart.
 *
 * Tensors are sent in a format. Agents recognize a tensor by its iteration. If a tensor of that
 * iteration has another format, they mistake it for wrong numbers. The owner of a slice encodes
 * its sum, and every replica and standby copy decodes these bytes.
 *
 * Stages may start from a trained stage (--stack). Their nodes fetch a standby copy of the
 * trained stage. Until the copy makes this commit's step, it has the state of the commit before.
 * The next plan visits the new stages, so the record of this commit must say that their nodes
 * take the copy's layers.
 *
 * Nodes may move to another stage after the commit (--phase-moves). The model then ends with the
 * next START. A node that will move fetches a copy. When the iteration begins, the controller
 * lists the nodes whose copies are complete. Between the iterations all listed nodes get their
 * new stages at once, and load their copies.
 *
 * The trained model may be cut into other stages after the commit. The model of the protocol then
 * ends with the next START, too. The operator's order to do this may be recorded at any time. The
 * nodes save the commit. The controller then restarts, and records the new stages and their
 * files. Agents drop the weights of their former stages, and read those of the new stages.
 *
 * Nodes of a stage are alike, and so are microbatches. States that differ only in their names are
 * therefore one state. The fields of a node never name another node, so such states become equal
 * once their nodes are sorted. */
#ifndef CONTROLLER_TESTS_PROTOCOL_H
#define CONTROLLER_TESTS_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* If a sanitizer makes the tests slow, they explore fewer states. */
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
	/* The run stalled while COMPUTING. In the next two states it stalled while REDUCING and
	 * while PLANNING */
	P_STALLED,
	P_STALLED_REDUCING,
	P_STALLED_PLANNING,
	P_PLANNING,  /* the iteration restarts */
	P_GATHERING, /* the controller is dead, or the next controller gathers the agents */
	P_COMMITTED
};

enum p_standing {
	P_GONE,
	P_JOINER /* holds the weights and may be admitted */,
	P_SYNCING /* a joiner admitted for the sums */,
	P_LIVE
};

enum p_sum {
	P_NO_SUM,
	P_BEGUN /* has sent its part of the sum */,
	P_BROKEN /* lacks a part of the sum, which will not arrive */,
	P_SUMMED,
	P_COUNTING /* was ordered to sum before it has counted everything, and still counts */
};

/* Progress of stages that will start from a trained stage, until a commit says that they start. */
enum p_stack {
	P_NO_STACK,
	P_STACK_LATER, /* the phase that visits these stages waits for the copies */
	P_STACK_NEXT,  /* the next iteration visits these stages */
	P_STACKED      /* the commit says that these stages start from trained stages */
};

/* Origin of a node's weights after the node has applied the commit. */
enum p_layers {
	P_OWN_LAYERS,
	P_LAYERS_BEFORE,   /* the layers of the source stage, from before this commit's step */
	P_LAYERS_OF_COMMIT /* the layers of the source stage, after this commit's step */
};

/* Progress of nodes that move to another stage between two iterations. */
enum p_moves {
	P_NO_MOVES,
	P_MOVES_LATER,
	P_LISTED, /* the listed nodes move before the next iteration */
	P_MOVED   /* the record has the new stages */
};

/* A change of stages. */
enum p_cut {
	P_NO_CUT,
	P_CUT_WANTED, /* the operator may order a change */
	P_CUT_DROPPED,
	P_CUT_ORDERED, /* the order is in the record */
	P_CUT_SAVING,
	P_CUT_RECORDED, /* the record has the new stages */
	P_CUT_SETTLED   /* the new stages' files are in the folder from which agents read */
};

/* The cut to which a node's weights belong, once the record has the new stages. */
enum p_cut_held { P_OF_FORMER, P_OF_NONE, P_OF_NEW };

/* How far a node is in getting the weights of its stage. */
enum p_load {
	/* the node has not moved, or the controller knows that it holds its new stage */
	P_HAS_WEIGHTS,
	P_LOAD_ORDERED, /* the node is about to load its copy, as ordered */
	P_LOAD_AWAITED, /* the order to load the copy was lost */
	P_LOADED        /* the node has loaded its copy, but has not reported this yet */
};

/* An agent's knowledge of a route: the controller's present route, or an earlier one. */
enum p_view { P_CURRENT, P_OLD };

struct p_move {
	/* 1 + the stage that the node has in the next phase; 0: the stage does not change */
	uint8_t to;
	uint8_t listed; /* the node moves to its next stage before the next iteration */
	uint8_t load;   /* a value of enum p_load */
	uint8_t cut;    /* a value of enum p_cut_held */
};

/* One node. Each set of microbatches is a number with a bit for each. */
struct p_node {
	uint8_t stage;
	/* The following fields are the controller's beliefs. */
	uint8_t standing;
	/* Sets of microbatches. on: the node is on their routes. owed: the node owes their work as
	 * a substitute. reported: the node has reported that it counted them */
	uint8_t on, owed, reported;
	uint8_t at; /* stage in which the microbatches of `on` visit the node */
	uint8_t reduced, in_sum;
	uint8_t keeps, copies, copy_reduced; /* keeps: 1 + the stage of its standby copy; 0: none */
	uint8_t fetching;                    /* the copy is not complete */
	/* The following fields are the true state. */
	uint8_t alive;
	/* start of the iteration at this node. 0: not begun; 1: with the present epoch; 2: with an
	 * older epoch */
	uint8_t began;
	/* mine: microbatches on the routes that the node knows. has: microbatches whose inputs have
	 * arrived at the node, which keeps these inputs if their sender dies */
	uint8_t counted, mine, has;
	uint8_t view[P_BATCHES];
	/* Microbatches that the node reported while it was believed dead */
	uint8_t dropped;
	uint8_t given_up; /* other nodes run the node's work again */
	/* due: the announcement of the commit is on its way to the node */
	uint8_t sum, wrong, due, applied;
	uint8_t copy_sum, copy_wrong, copy_due, copy_applied;
	uint8_t layers; /* a value of enum p_layers */
	struct p_move move;
};

struct p_state {
	struct p_node nodes[P_NODES];
	uint8_t phase;
	/* Sets of microbatches. home: microbatches whose last backward pass was reported.
	 * changed: microbatches that were rerouted */
	uint8_t home, changed;
	/* Microbatches that started over. Earlier reports about them must not mark them as home */
	uint8_t over;
	uint8_t summing; /* set of stages that sum */
	/* Reports of sums in this attempt. Bit 0: some node reported a right sum; bit 1: a wrong
	 * sum; bit 2: two nodes have reported */
	uint8_t sums_reported[P_STAGES];
	uint8_t taken_over, committed;
	/* For each kind of fault: number of times that it may happen from now on */
	uint8_t deaths, wrongs, takeovers;
	/* Formats of tensors, 0 or 1. format: format of the iteration; wanted: format that the
	 * operator wants */
	uint8_t format, wanted;
	/* number of times that the operator may change the wanted format from now on */
	uint8_t changes;
	/* The controller has begun the iteration at least once, or has resumed it */
	uint8_t tried;
	/* Formats, as bits, in which nodes may have sent tensors of this iteration */
	uint8_t sent;
	uint8_t stack;   /* a value of enum p_stack */
	uint8_t moves;   /* a value of enum p_moves */
	uint8_t cut;     /* a value of enum p_cut */
	uint8_t saved;   /* stages, as bits, of which a file of the commit exists */
	uint8_t has_files; /* the files of the new stages exist */
	uint8_t started; /* the next iteration has begun */
	/* number of times that each gradient is in its stage's sum, which must be 1 */
	uint8_t content[P_STAGES][P_BATCHES];
};

/* Rules of the code. Each rule can be switched off, and the model must then find the resulting
 * fault. */
enum p_rule {
	/* If a node died after its stage's sum, its work runs again before the sums restart */
	P_RERUN_DEAD = 1,
	P_AUDIT_HOPS = 2, /* the audit checks that the work of a dead node ran again */
	/* Gradients that were completed while the run was stalled are summed */
	P_SUM_AFTER_STALL = 4,
	/* If a node reported gradients while it was believed dead, the iteration restarts, even if
	 * the run waits for other nodes */
	P_HEED_DROPPED = 8,
	/* A node that was believed dead receives the routes that changed meanwhile */
	P_REPEAT_ROUTES = 16,
	/* when an iteration starts, an agent drops its counts of earlier attempts */
	P_START_AT_ZERO = 32,
	/* After a commit, a node is dropped if its weights differ from the weights of its stage */
	P_COMPARE_HASHES = 64,
	P_KEEP_FORMAT = 128,  /* an iteration that restarts keeps its format */
	P_STORE_FORMAT = 256, /* the format is stored before the start is announced */
	/* The owner of a slice uses the sum that it has encoded and decoded, as all other nodes
	 * do */
	P_DECODE_OWN = 512,
	/* An agent takes the layers of its source stage only after the copy has made the commit's
	 * step */
	P_AWAIT_COPY_STEP = 1024,
	P_NEED_WHOLE_COPY = 2048, /* a stage cannot start from a copy that is still being fetched */
	/* At the commit, a node without the copy leaves its stage */
	P_DROP_WITHOUT_COPY = 4096,
	/* Copies of a stage become void when the stage starts from its source */
	P_VOID_COPIES = 8192,
	/* The commit's record says that stages start from trained stages */
	P_RECORD_STACK = 16384,
	/* Only nodes with complete copies are listed for a move */
	P_LIST_WHOLE_COPIES = 32768,
	P_KEEP_STAYERS = 65536, /* one replica of each stage does not move */
	/* An exchange is dropped if a listed node cannot move, or if the only replica that was to
	 * stay has died */
	P_CHECK_LISTED = 131072,
	/* Nodes move only after their copies have made the commit's step */
	P_AWAIT_LISTED = 262144,
	/* A restarted controller lets nodes load the copies that they report */
	P_LOAD_REPORTED = 524288,
	/* The model is cut only if the last commit is saved */
	P_SAVE_LAST = 1048576,
	/* The new stages' files are written before the record has these stages */
	P_FILES_FIRST = 2097152,
	/* A restarted controller moves the new stages' files to their folder */
	P_SETTLE_FILES = 4194304,
	/* The new stages have another identity, so that agents drop weights of the former stages */
	P_NEW_IDENTITY = 8388608,
	P_ALL_RULES = 16777215
};

/* The cluster to explore, and the variant of the code. */
struct protocol {
	int stages, nodes;
	uint8_t stage_of[P_NODES];
	uint8_t absent; /* nodes, as bits, that are absent in the beginning */
	/* The stages on each microbatch's path, as bits. The first stage is the data node's */
	uint8_t path[P_BATCHES];
	int deaths, wrongs, takeovers;
	/* How the names of states change when two microbatches are exchanged (protocol_names.c) */
	uint64_t swaps[4];
	int changes;  /* number of times that the operator may change the wanted format */
	bool fresh;   /* the iteration has not begun yet, so it will have the wanted format */
	bool overlap; /* a stage sums as soon as all its gradients are counted */
	/* Sums are ordered together with the start. Each node sends its part once it has counted
	 * its microbatches */
	bool ahead;
	/* always: stages, as bits, from which the other stages start; 0: none. All nodes of the
	 * other stages fetch a copy. have_copies: nodes, as bits, that have a copy in the
	 * beginning. */
	uint8_t always, have_copies;
	/* The exploration begins after the controller has entered the phase that visits the other
	 * stages, although some nodes still fetch copies. */
	bool entered;
	/* 1 + the stage that each node has in the next phase; 0: the stage does not change. The
	 * nodes in have_copies have a copy of this stage in the beginning. */
	uint8_t to[P_NODES];
	bool cuts; /* the operator may order other stages */
	int rules; /* set of values of enum p_rule */
};

enum p_event {
	P_COUNT,
	P_REPORT,
	P_DROP, /* the report of a node that is believed dead is dropped */
	P_REDUCED,
	P_REDUCED_WRONG,
	P_COPY_REDUCED,
	P_COPY_REDUCED_WRONG,
	P_COPY_OVERDUE,
	P_APPLY,
	P_COPY_APPLY,
	P_KILL,
	P_NOTICE,
	P_SILENCE, /* a node is believed dead, but lives */
	P_JOIN,
	P_NEW_PROCESS,
	P_KEEP,
	P_FETCHED, /* a node's copy becomes complete */
	P_RESUME,  /* the last replica of a stage is heard again */
	P_ADMIT,
	P_TAKE_OVER,
	P_RESTART,
	P_BEGIN,
	P_CRASH,
	P_GATHER,
	/* a microbatch that started over ends again at its data node, which had already counted
	 * it */
	P_AGAIN,
	P_CHANGE, /* the operator wants the other format */
	P_LOSE,   /* a node that will move loses its copy */
	P_EXCHANGE,
	P_EXCHANGE_LATE, /* a copy does not make the commit's step in time */
	P_ORDER_LOAD,
	P_LOAD,
	P_READY,
	P_ORDER_CUT,
	P_SAVE, /* the nodes are asked to save the commit */
	P_SAVED,
	P_SAVE_FAILS,
	P_CUT,
	P_MEET,  /* an agent joins the controller that has begun again */
	P_READ,  /* a node reads its new stage */
	P_START, /* the iteration that follows the commit begins */
	P_EVENTS
};

struct p_step {
	enum p_event event;
	int node, arg; /* -1: none. arg: the step's microbatch or stage */
	bool free;     /* the step needs no fault and no event from outside */
};

/* wrong: the property that is violated; NULL: none */
typedef void (*p_visit)(void *context, const struct p_step *step, const struct p_state *next,
			const char *wrong);

/* Returns the protocol with all rules of the code, three deaths, one wrong sum and one restart of
 * the controller. */
struct protocol protocol_of(int stages, int each);
void protocol_begin(const struct protocol *p, struct p_state *s);
/* Visits every step that may happen next, with its result. If the controller has several choices in
 * a step, the step is visited once for each choice. Nodes keep their numbers. */
void protocol_next(const struct protocol *p, const struct p_state *s, p_visit visit, void *context);
bool p_all_counted(const struct p_state *s, int m);
bool protocol_ended(const struct protocol *p, const struct p_state *s);
/* Returns true if every stage has a living node that holds its weights, so that the iteration can
 * end. */
bool protocol_can_end(const struct protocol *p, const struct p_state *s);
/* Writes the state's name, which consists of p->nodes + 1 numbers. All states that differ only in
 * the order of nodes or microbatches have the same name, and protocol_read returns one of these
 * states. like: NULL, or another state, whose name is `likes`. The numbers of nodes that are
 * equal in both states are copied from `likes`, which is faster. */
void protocol_name(const struct protocol *p, const struct p_state *s, const struct p_state *like,
		   const uint64_t *likes, uint64_t *name);
void protocol_read(const struct protocol *p, const uint64_t *name, struct p_state *s);
void protocol_print(const struct protocol *p, const struct p_state *s, FILE *to);
const char *protocol_event_name(enum p_event e);

#endif
