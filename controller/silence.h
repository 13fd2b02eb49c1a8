/* silence.h - how long an agent may be quiet before it is dead.
 *
 * An agent says a word ten times a second, so on machines that have time a short limit finds a dead
 * one soon. On an overloaded machine words come late from everyone; the limit then follows the gaps
 * seen lately, or healthy agents would be declared dead in turn. An accrual detector in its simplest
 * form (Hayashibara et al., SRDS 2004, has the idea). Pure: times come in, microseconds.
 */
#ifndef CONTROLLER_SILENCE_H
#define CONTROLLER_SILENCE_H

#include <stddef.h>
#include <stdint.h>

#define SILENCE_PATIENCE 4 /* times the limit, at most */
#define SILENCE_BEAT_US  100000 /* between two words */

/* The longest gap lately, once a word has come after `gap_us`. A silence past all patience was no
 * delay but a hang, and teaches nothing. */
int64_t silence_learn(int64_t longest_us, int64_t gap_us, int64_t limit_us);

/* A quarter of the n gaps are above this, no more; 0 for none. Sorts them. A machine that has too
 * much to do makes now this and now that agent late. */
int64_t silence_usual(int64_t *gaps_us, size_t n);

/* What this agent is allowed: twice the longest gap that it, or a quarter of all, had lately, but at
 * least the limit and at most SILENCE_PATIENCE times that. */
int64_t silence_allowed(int64_t longest_us, int64_t usual_us, int64_t limit_us);

/* And when some agent's connection has ended since it was last heard: twice the longest gap or
 * SILENCE_BEAT_US, but no more than otherwise. Whose process ended says no more; a live one's next
 * word comes by a new connection soon. */
int64_t silence_hung_up(int64_t longest_us, int64_t usual_us, int64_t limit_us);

#endif
