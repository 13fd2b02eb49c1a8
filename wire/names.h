/* names.h - the lists of a run's phases, a node's states, the kinds of notes and the operator's
 * verbs, with their names.
 *
 * Messages contain the number of an enumerator, the record contains its name. New rows are
 * appended, because the numbers must not change. A function that takes a number returns "?" for an
 * unknown number. A function that takes a name returns -1 for an unknown name.
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

/* X(enumerator, name). The comment of a verb explains the fields of struct msg_command that the
 * verb uses. With the text "preview", the controller only plans or describes the effect of the
 * command. */
#define COMMAND_VERBS(X) \
	X(SKIP, "skip")       /* value: skip ratio; text: "preview" or "" */ \
	X(FAIL, "fail")       /* node: the node to mark failed; text: "preview" or "" */ \
	X(RECOVER, "recover") /* node: a failed node that may take part again */ \
	X(INJECT, "inject")   /* injects a fault, with node, peer, factor and ttl_ms */ \
	X(HEAL, "heal")       /* value: id of the fault to end */ \
	X(HEAL_ALL, "heal-all") \
	X(PAUSE, "pause") /* pauses at the end of the iteration */ \
	X(RESUME, "resume") \
	X(STEP, "step")       /* runs one iteration, then pauses */ \
	X(ARM, "arm")         /* value: length of the operator's lease, seconds; 0 ends it */ \
	X(ACK, "acknowledge") /* value: id of the alert; 0: all alerts */ \
	X(UNDO, "undo")       /* value: id of the command to undo; text: "preview" or "" */ \
	X(STOP, "stop")       /* ends the run */ \
	/* Requests a plan for comparison. value: skip ratio; node: node to exclude, -1: none; \
	 * text: the algorithm, or a format as in "wire q6" or "sum-wire q6". The answer is an \
	 * MSG_SEE_PLAN with `candidate` set. */ \
	X(COMPARE, "compare") \
	X(SEEK, "seek")         /* replay: jumps. value: time on the recorded run's clock, us */ \
	X(SPEED, "speed")       /* replay: speed as a multiple of real time; 0 stops it */ \
	X(WIRE, "wire")         /* value: new format of activations; text: "preview" or "" */ \
	X(SUM_WIRE, "sum-wire") /* value: new format of sums; text: "preview" or "" */ \
	/* Ends the run `value` iterations after the present iteration. The learning rate falls \
	 * until then. If value is 0, cancels an earlier FINISH. text: "preview" or "". */ \
	X(FINISH, "finish") \
	X(STAGES, "stages") /* writes to the journal which stages would be chosen now */ \
	X(HOURS, "hours")   /* writes to the journal each recipe's loss after `value` hours */ \
	X(CUT, "cut") /* text: number of layers of each stage, "0,7,5"; "": the numbers that were \
		       * proposed last. "preview" may precede the numbers. */

/* Coarse classes of a node's states. The class says how the node takes part in the run. */
enum node_presence { NODE_NOT_THERE, NODE_COMES, NODE_TAKES_PART, NODE_LOST };

/* X(enumerator, name in the record, name on consoles, short name for narrow columns, presence).
 * In state FAILED, the operator has marked the node as failed, or the node has computed numbers
 * that are not finite. In state DRAINING, the agent has got SIGTERM and leaves soon. In state
 * LEFT, the agent has left after draining. */
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
/* Returns true if consoles show notes of this kind until an operator acknowledges them. */
bool note_stands(unsigned kind);
const char *verb_name(unsigned verb);        /* name of a verb, e.g. "heal-all" */
const char *node_state_name(unsigned state); /* name of a state in the record, e.g. "failed" */
int phase_named(const char *name);
int note_named(const char *name);
int node_state_named(const char *name);

const char *node_state_shown(unsigned state); /* name of a state on consoles, e.g. "FAILED" */
const char *node_state_brief(unsigned state); /* short name of a state on consoles, e.g. "FAIL" */
enum node_presence node_presence(unsigned state);

/* Writes why a GPU is throttled, the worst reason first: "heat, power limit". Writes "" if the
 * GPU is not throttled. The reasons are bits of enum gpu_throttling. Returns out. */
enum { GPU_THROTTLING_TEXT = 64 };
char *gpu_throttling_text(unsigned throttling, char out[GPU_THROTTLING_TEXT]);
int gpu_throttling_named(const char *text); /* text may be NULL */

#endif
