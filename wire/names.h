/* names.h - the lists of a run's phases, a node's states, the kinds of notes and the operator's
 * verbs, with their names.
 *
 * Messages contain an enumerator's number, the record its name. New rows are appended. A function
 * that takes a number accepts any and returns "?" for an unknown one. A function that takes a name
 * returns -1 for an unknown one.
 */
#ifndef WIRE_NAMES_H
#define WIRE_NAMES_H

#include <stdbool.h>

/* X(enumerator, name) */
#define RUN_PHASES(X) \
	X(GATHERING, "gathering") \
	X(PLANNING, "planning") \
	X(COMPUTING, "computing") \
	X(REDUCING, "reducing") \
	X(COMMITTING, "committing") \
	X(EVALUATING, "evaluating") \
	X(PAUSED, "paused") \
	X(STALLED, "stalled") \
	X(FINISHED, "finished")

#define NOTE_KINDS(X) \
	X(LOG, "log") \
	X(EVENT, "event") \
	X(COMMAND, "command") \
	X(PREDICTION, "prediction") \
	X(WARNING, "warning") \
	X(ALERT, "alert") \
	X(AGENT, "agent") /* a warning or error in the log of an agent */

#define COMMAND_VERBS(X) \
	X(SKIP, "skip") /* value: stages skipped; text "preview" only plans it */ \
	X(FAIL, "fail") /* names a node; with the text "preview" the controller only plans it */ \
	X(RECOVER, "recover") /* node */ \
	X(INJECT, "inject")   /* injects a fault, with node, peer, factor and ttl_ms */ \
	X(HEAL, "heal")       /* value: fault id */ \
	X(HEAL_ALL, "heal-all") \
	X(PAUSE, "pause") /* pauses at the end of the iteration */ \
	X(RESUME, "resume") \
	X(STEP, "step")       /* runs one iteration, then pauses */ \
	X(ARM, "arm")         /* value: seconds of the operator's lease; 0 ends it */ \
	X(ACK, "acknowledge") /* value: id of the alert; 0: all alerts */ \
	X(UNDO, "undo")       /* value: command id; text "preview" */ \
	X(STOP, "stop")       /* ends the run */ \
	/* Requests a plan for comparison. value: stages skipped; node: excluded node, -1: none; \
	 * text: the algorithm, or "wire q6" or "sum-wire q6". The answer is an MSG_SEE_PLAN with \
	 * `candidate`. */ \
	X(COMPARE, "compare") \
	X(SEEK, "seek")         /* replay: value, microseconds of the recorded run's clock */ \
	X(SPEED, "speed")       /* in a replay: the speed as a multiple of real time; 0 stops */ \
	X(WIRE, "wire")         /* value: enum tensor_format of activations; text "preview" */ \
	X(SUM_WIRE, "sum-wire") /* value: enum tensor_format of sums; text "preview" */ \
	/* The learning rate falls over `value` iterations after the one under way, then the run \
	 * ends. 0 takes the order back. Text "preview". */ \
	X(FINISH, "finish") \
	X(STAGES, "stages") /* the journal says which stages would be chosen now */ \
	X(HOURS, "hours")   /* the journal says what recipes reach in `value` hours */ \
	X(CUT, "cut") /* text: the layers of each stage, "0,7,5"; "": the stages proposed last. \
		       * "preview" or "preview 0,7,5" only describes the change. */

/* Coarse classes of the states of a node: whether it takes part in the run. */
enum node_presence { NODE_NOT_THERE, NODE_COMES, NODE_TAKES_PART, NODE_LOST };

/* X(enumerator, name in the record, name on consoles, short name for narrow columns, presence).
 * FAILED: the operator marked the node, or it computed numbers that are not finite. DRAINING: the
 * agent got SIGTERM and leaves soon. LEFT: the agent has left after draining. */
#define NODE_STATES(X) \
	X(ABSENT, "absent", "absent", "absent", NODE_NOT_THERE) \
	X(JOINING, "joining", "joining", "joins", NODE_COMES) \
	X(SYNCING, "syncing", "syncing", "syncs", NODE_COMES) \
	X(LIVE, "live", "live", "live", NODE_TAKES_PART) \
	X(SUSPECT, "suspect", "suspect", "suspect", NODE_TAKES_PART) \
	X(FAILED, "failed", "FAILED", "FAIL", NODE_LOST) \
	X(DEAD, "dead", "DEAD", "DEAD", NODE_LOST) \
	X(DRAINING, "draining", "draining", "drains", NODE_TAKES_PART) \
	X(LEFT, "left", "left", "left", NODE_NOT_THERE)

#define ONE_MORE(...) + 1
#define ENUMERATOR(NAME, ...) PHASE_##NAME,
enum run_phase { RUN_PHASES(ENUMERATOR) };
#undef ENUMERATOR
#define ENUMERATOR(NAME, ...) NOTE_##NAME,
enum note_kind { NOTE_KINDS(ENUMERATOR) };
#undef ENUMERATOR
#define ENUMERATOR(NAME, ...) COMMAND_##NAME,
enum command_verb { COMMAND_VERBS(ENUMERATOR) };
#undef ENUMERATOR
#define ENUMERATOR(NAME, ...) NODE_##NAME,
enum node_state { NODE_STATES(ENUMERATOR) };
#undef ENUMERATOR

enum {
	PHASE_LAST = RUN_PHASES(ONE_MORE) - 1,
	NOTE_LAST = NOTE_KINDS(ONE_MORE) - 1,
	COMMAND_LAST = COMMAND_VERBS(ONE_MORE) - 1,
	NODE_LAST = NODE_STATES(ONE_MORE) - 1
};
#undef ONE_MORE

const char *phase_name(unsigned phase);      /* name of a phase, e.g. "gathering" */
const char *note_name(unsigned kind);        /* name of a kind of note, e.g. "log" */
/* Returns true if notes of this kind stay on consoles until an operator acknowledges them. */
bool note_stands(unsigned kind);
const char *verb_name(unsigned verb);        /* name of a verb, e.g. "heal-all" */
const char *node_state_name(unsigned state); /* name of a state in the record, e.g. "failed" */
int phase_named(const char *name);
int note_named(const char *name);
int node_state_named(const char *name);

const char *node_state_shown(unsigned state); /* name of a state on consoles, e.g. "FAILED" */
const char *node_state_brief(unsigned state); /* short name of a state on consoles, e.g. "FAIL" */
enum node_presence node_presence(unsigned state);

/* Writes why a GPU is throttled (bits of enum gpu_throttling), the worst first: "heat, power
 * limit"; "" if it is not. Returns out. */
enum { GPU_THROTTLING_TEXT = 64 };
char *gpu_throttling_text(unsigned throttling, char out[GPU_THROTTLING_TEXT]);
int gpu_throttling_named(const char *text); /* text may be NULL */

#endif
