/* heartbeat_timeout.h - how long an agent may be silent before it counts as dead.
 *
 * An agent sends ten heartbeats a second, over several connections in turn. A heartbeat can be
 * missing for three reasons:
 *
 * - The network lost it and the agent sends it again, which takes some round trips. The allowed
 *   silence therefore contains three of the agent's own round trips.
 *
 * - The machine of the agent or of the controller is overloaded. In that case heartbeats are late,
 *   but none is missing. The allowed silence is at least twice the longest recent lateness.
 *   Otherwise healthy agents would be declared dead one after another.
 *
 * - The agent is dead. If a machine fails, the controller finds this within half a second and four
 *   round trips.
 *
 * Like an accrual detector (Hayashibara et al., SRDS 2004), this detector derives limits from
 * observations of each agent. It does not fit a distribution to the gaps between heartbeats: losses
 * are rare, and an agent without a loss for a minute would get a limit that the first loss exceeds.
 * As in Lifeguard (Dadgar et al., DSN-W 2018), a controller that is late itself does not judge
 * others. The functions are pure: times are arguments, in microseconds. */
#ifndef CONTROLLER_HEARTBEAT_TIMEOUT_H
#define CONTROLLER_HEARTBEAT_TIMEOUT_H

#include <stddef.h>
#include <stdint.h>

#define TIMEOUT_PATIENCE 4     /* largest allowance for lateness, as a multiple of the limit */
#define TIMEOUT_BEAT_US 100000 /* time between two heartbeats */
#define TIMEOUT_ROUNDS   15
/* A longer round trip counts as this long, so that an agent gains nothing by forging an echo. */
#define TIMEOUT_ROUND_MOST_US 2000000

/* The newest round trips of one agent, as its heartbeats report them. A zeroed struct holds none.
 */
struct timeout_rounds {
	int64_t us[TIMEOUT_ROUNDS];
	uint32_t n; /* number of round trips recorded so far */
};

void timeout_round(struct timeout_rounds *r, int64_t us);
/* Returns the median round trip, on which single lost heartbeats have no effect. 0: unknown. */
int64_t timeout_round_trip(const struct timeout_rounds *r);

/* Returns the gap between two received heartbeats, minus TIMEOUT_BEAT_US for each heartbeat that is
 * missing between them; at least 0. beats: the second heartbeat's number minus the first one's. The
 * gap may be measured by either clock. */
int64_t timeout_late(int64_t gap_us, uint64_t beats);

/* Updates the longest recent lateness after a heartbeat that was late_us late, and returns the new
 * value. A lateness above the largest allowance, TIMEOUT_PATIENCE times the limit, was a hang and
 * not a delay. Such a lateness is ignored. */
int64_t timeout_learn(int64_t longest_us, int64_t late_us, int64_t limit_us);

/* Returns the usual lateness: at most a quarter of the n agents are later. Returns 0 if n is 0.
 * Sorts the values. An overloaded machine delays a different agent each time, so its agents are
 * judged together. */
int64_t timeout_usual(int64_t *late_us, size_t n);

/* Returns the silence allowed to an agent: an allowance for lateness, and three round trips. The
 * allowance is twice the agent's longest recent lateness, or twice the usual lateness of its
 * machine, whichever is more. The allowance is at least the limit and at most TIMEOUT_PATIENCE
 * times the limit. */
int64_t timeout_allowed(int64_t longest_us, int64_t usual_us, int64_t limit_us,
			int64_t round_trip_us);

/* Returns the silence allowed to an agent if some connection, possibly its own, has ended since its
 * newest message. A process that has ended sends nothing, but a living process soon sends its next
 * heartbeat over a new connection.
 *
 * The allowed silence is one round trip plus twice the largest of three times: the longest gap
 * between the agent's messages, the usual lateness of its machine, and TIMEOUT_BEAT_US. The result
 * is at most timeout_allowed. */
int64_t timeout_hung_up(int64_t longest_us, int64_t usual_us, int64_t limit_us,
			int64_t round_trip_us);

#endif
