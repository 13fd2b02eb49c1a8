/* faults.h - every kind of failure that can be injected, once.
 *
 * A kind is a row here and what it does in the agent (agent/fault.h). The message's limits, the names that
 * are typed, stored and shown, the console's list and dialog, the help of --at, what is refused and
 * what heals by itself follow. New ones are appended: the numbers travel and are recorded by name.
 */
#ifndef WIRE_FAULTS_H
#define WIRE_FAULTS_H

#include <stdbool.h>

enum fault_factor {
	FACTOR_NONE,
	FACTOR_TIMES,      /* slower, 1 to FACTOR_MOST_TIMES */
	FACTOR_PROBABILITY /* of a loss, 0 to 0.99 */
};
enum { FACTOR_MOST_TIMES = 1000 };
#define FAULT_HEALS "heals by itself; X heals all at once"

struct fault_description {
	const char *name;   /* "slow-node": typed, stored, shown */
	const char *words;  /* "slow node": in sentences */
	const char *what;   /* it does to a node, for who chooses one */
	const char *ending; /* how it ends; NULL: FAULT_HEALS */
	enum fault_factor factor;
	bool of_links;      /* it may concern the links to one other node only */
	bool both_ends;     /* of these links: that node is told too */
	bool stops_process; /* the agent does not go on: not the last copy of a stage, unless forced */
	bool for_good;      /* no healing */
	bool moves_work;    /* what would pass the node has to go elsewhere */
	bool confirmed;     /* the console wants the node's number typed */
};

/* X(enumerator, name, the other members) */
#define FAULT_KINDS(X) \
	X(KILL, "kill", .words = "kill", .what = "the agent's process dies", \
	  .ending = "it stays dead until its agent is started there again", .stops_process = true, \
	  .for_good = true, .moves_work = true, .confirmed = true) \
	X(HANG, "hang", .words = "hang", .what = "it stops answering", \
	  .ending = "it wakes by itself and fetches what it missed", .stops_process = true, .moves_work = true) \
	X(SLOW_NODE, "slow-node", .words = "slow node", .what = "it computes more slowly", .factor = FACTOR_TIMES) \
	X(SLOW_LINK, "slow-link", .words = "slow link", .what = "what it sends takes longer", \
	  .factor = FACTOR_TIMES, .of_links = true) \
	X(LOSS, "loss", .words = "packet loss", .what = "what it sends is lost at times", \
	  .factor = FACTOR_PROBABILITY, .of_links = true) \
	X(PARTITION, "partition", .words = "partition", .what = "it cannot reach the others", .of_links = true, \
	  .both_ends = true, .moves_work = true, .confirmed = true) \
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

/* For help: the literal ", kill, hang, ...", and without the first comma. */
#define FAULT_NAME_AFTER_COMMA(NAME, name, ...) ", " name
#define FAULT_NAMES_FOLLOW FAULT_KINDS(FAULT_NAME_AFTER_COMMA)
#define FAULT_NAMES (&(FAULT_NAMES_FOLLOW)[2])

/* Of a number that may be anything; FAULT_NONE is "none". */
const struct fault_description *fault_describe(unsigned kind);
const char *fault_name(unsigned kind);
int fault_named(const char *name); /* an enum fault_kind; -1: none has that name */
/* NULL, or what is wrong with a factor for that kind, in words: "a slowdown is 1 to 1000 times". */
const char *fault_refusal(unsigned kind, float factor);

#endif
