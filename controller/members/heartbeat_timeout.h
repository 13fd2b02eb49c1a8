/* heartbeat_timeout.h - how long an agent may be quiet before it is dead.
 *
 * An agent says a word ten times a second, over several connections in turn. What keeps the next one
 * from coming is of three kinds. On its way a word is lost and sent again, which takes some round
 * trips: so many are added, of each agent's own. Its machine, or this one, has too much to do: then
 * words come late without any being missing, and twice the longest lateness of the last seconds is
 * allowed, or healthy agents would be declared dead in turn. Or it is dead: a machine that vanishes is
 * known within half a second and four round trips.
 *
 * Limits from what is seen of each agent, as an accrual detector has them (Hayashibara et al., SRDS
 * 2004), but not from a distribution of its gaps: losses are rare, and whoever has had none for a
 * minute would get a limit that the first one breaks. Lateness as in Lifeguard (Dadgar et al., DSN-W
 * 2018): who is slow oneself does not judge others. Pure: times come in, microseconds.
 */
#ifndef CONTROLLER_HEARTBEAT_TIMEOUT_H
#define CONTROLLER_HEARTBEAT_TIMEOUT_H

#include <stddef.h>
#include <stdint.h>

#define TIMEOUT_PATIENCE 4 /* times the limit, at most */
#define TIMEOUT_BEAT_US  100000 /* between two words */
#define TIMEOUT_ROUNDS   15
#define TIMEOUT_ROUND_MOST_US 2000000 /* who tells of a longer one, by an echo of its own making, gains nothing */

/* The last round trips of one agent, as its words tell them. A zeroed struct knows none. */
struct timeout_rounds {
	int64_t us[TIMEOUT_ROUNDS];
	uint32_t n; /* so far */
};

void timeout_round(struct timeout_rounds *r, int64_t us);
/* The usual one: their median, which lost words do not move. 0: none is known. */
int64_t timeout_round_trip(const struct timeout_rounds *r);

/* Of a gap until a word that is `words` after the one before, as said or as heard: what the missing ones do
 * not explain. */
int64_t timeout_late(int64_t gap_us, uint64_t words);

/* The longest lateness lately, once a word has come so late. A silence past all patience was no
 * delay but a hang, and teaches nothing. */
int64_t timeout_learn(int64_t longest_us, int64_t late_us, int64_t limit_us);

/* A quarter of the n latenesses are above this, no more; 0 for none. Sorts them. A machine that has too
 * much to do makes now this and now that agent late. */
int64_t timeout_usual(int64_t *late_us, size_t n);

/* What this agent is allowed: twice the longest lateness that it, or a quarter of its machine's agents,
 * had lately, but at least the limit and at most TIMEOUT_PATIENCE times that; and three round trips. */
int64_t timeout_allowed(int64_t longest_us, int64_t usual_us, int64_t limit_us,
			int64_t round_trip_us);

/* What this agent is allowed when some agent's connection has ended since it was last heard: twice its longest
 * lateness or TIMEOUT_BEAT_US, whichever is more, and one round trip, but no more than timeout_allowed. A process
 * that has ended says no more; a live one's next word comes by a new connection soon. */
int64_t timeout_hung_up(int64_t longest_us, int64_t usual_us, int64_t limit_us,
			int64_t round_trip_us);

#endif
