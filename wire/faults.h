/* faults.h - the list of the kinds of failures that can be injected.
 *
 * A new kind needs a row here, and code for its effect in the agent (agent/shared/fault.h).
 * Everything else follows from the row: the limits in messages, the names that are typed, stored
 * and shown, and the console's list and dialog. The help of --at, the refused values and the end
 * of the fault follow from the row too. New rows are appended, because messages contain the
 * numbers.
 */
#ifndef WIRE_FAULTS_H
#define WIRE_FAULTS_H

#include <stdbool.h>

enum fault_factor {
	FACTOR_NONE,
	FACTOR_TIMES,      /* a slowdown by a factor from 1 to FACTOR_MOST_TIMES */
	FACTOR_PROBABILITY /* a probability of a loss, from 0 to 0.99 */
};
enum { FACTOR_MOST_TIMES = 1000 };
#define FAULT_HEALS "heals by itself; X heals all at once"

/* The part of the cluster that a fault affects. */
enum fault_target {
	FAULT_OF_NODE,     /* the fault affects the node itself */
	/* The fault affects the node's links to all nodes or to one node, but only at this node's
	 * end. */
	FAULT_OF_LINKS,
	/* As FAULT_OF_LINKS, but the fault also affects the node at the other end. */
	FAULT_OF_BOTH_ENDS
};

struct fault_description {
	const char *name;   /* name as it is typed, stored and shown: "slow-node" */
	const char *words;  /* name in sentences: "slow node" */
	/* The fault's effect on a node. The console shows this text where an operator chooses a
	 * fault. */
	const char *what;
	const char *ending; /* text that says how the fault ends; NULL: the text FAULT_HEALS */
	enum fault_factor factor;
	enum fault_target target;
	/* The fault stops the agent's process. If no other node has the node's stage, the
	 * operator must force the fault. */
	bool stops_process;
	bool for_good;      /* a fault of this kind cannot be healed */
	bool moves_work;    /* microbatches have to be rerouted around the node */
	bool confirmed;     /* the console asks the operator to type the node's number */
};

/* The columns are X(enumerator, name, the other members of struct fault_description). */
#define FAULT_KINDS(X) \
	X(KILL, "kill", .words = "kill", .what = "the agent's process dies", \
	  .ending = "it stays dead until its agent is started there again", .stops_process = true, \
	  .for_good = true, .moves_work = true, .confirmed = true) \
	X(HANG, "hang", .words = "hang", .what = "it stops answering", \
	  .ending = "it wakes by itself and fetches what it missed", .stops_process = true, \
	  .moves_work = true) \
	X(SLOW_NODE, "slow-node", .words = "slow node", .what = "it computes more slowly", \
	  .factor = FACTOR_TIMES) \
	X(SLOW_LINK, "slow-link", .words = "slow link", .what = "what it sends takes longer", \
	  .factor = FACTOR_TIMES, .target = FAULT_OF_LINKS) \
	X(LOSS, "loss", .words = "packet loss", .what = "what it sends is lost at times", \
	  .factor = FACTOR_PROBABILITY, .target = FAULT_OF_LINKS) \
	X(PARTITION, "partition", .words = "partition", .what = "it cannot reach the others", \
	  .target = FAULT_OF_BOTH_ENDS, .moves_work = true, .confirmed = true) \
	X(CORRUPT, "corrupt", .words = "corruption", .what = "what it computes is not finite", \
	  .ending = "marked failed at its first wrong number; R takes it back", .moves_work = true)

enum fault_kind {
	FAULT_NONE,
#define ENUMERATOR(NAME, ...) FAULT_##NAME,
	FAULT_KINDS(ENUMERATOR)
#undef ENUMERATOR
};
enum {
#define ONE_MORE(...) + 1
	FAULT_LAST = 0 FAULT_KINDS(ONE_MORE)
#undef ONE_MORE
};

/* For help texts: FAULT_NAMES_FOLLOW is ", kill, hang, ...", and FAULT_NAMES is the same without
 * the first comma. */
#define FAULT_NAME_AFTER_COMMA(NAME, name, ...) ", " name
#define FAULT_NAMES_FOLLOW FAULT_KINDS(FAULT_NAME_AFTER_COMMA)
#define FAULT_NAMES (&(FAULT_NAMES_FOLLOW)[2])

/* The functions below accept any number as `kind`. The name of FAULT_NONE is "none". */
const struct fault_description *fault_describe(unsigned kind);
const char *fault_name(unsigned kind);
int fault_named(const char *name); /* returns an enum fault_kind; -1: unknown name */
/* Returns NULL if the factor is valid for the kind. Otherwise returns the violated rule in words:
 * "a slowdown is 1 to 1000 times". */
const char *fault_refusal(unsigned kind, float factor);

#endif
