/* link_failures.h - detects links that no longer transfer anything, and chooses which end of such a
 * link is at fault. network/failed_links.h stores the links that are cut. */
#ifndef CONTROLLER_ITERATION_LINK_FAILURES_H
#define CONTROLLER_ITERATION_LINK_FAILURES_H

#include <stdbool.h>
#include <stdint.h>

struct link_failure;
struct member;
struct members;
struct msg_stuck;
struct run;

/* How many links of one member are cut. */
struct link_tally {
	/* Number of the member's links that seem cut (link_failures_count), and how many of these
	 * the member itself reported */
	uint16_t cut, reported;
	uint16_t surely; /* number of the member's links that are certainly cut */
};

/* Returns the first report of a link that counts as cut but is not yet marked as cut, and sets *m
 * to the member that sent the report. NULL: there is no such report. The report is borrowed until
 * the member's next heartbeat. */
const struct msg_stuck *link_failures_next(struct members *members, struct member **m);
/* Counts, for each member, the links that seem cut and the links that are certainly cut. A link
 * seems cut once its stall has lasted half as long as a cut requires. tallies: one for each
 * member, zeroed by the caller. */
void link_failures_count(const struct members *members, struct link_tally *tallies);
/* Chooses which end of a cut link is removed. The first rule that distinguishes the two ends
 * decides:
 *
 * 1. The end with more links that seem cut is removed.
 * 2. An end that has the only weights of a stage stays.
 * 3. An end that is the last replica of its stage stays. Its removal would restart the iteration.
 * 4. The end that reported more of its links that seem cut is removed.
 *
 * Returns NULL if the chosen end has the only weights of a stage. */
struct member *link_failures_worse(struct members *members, const struct link_tally *tallies,
				   struct member *x, struct member *y);
/* Returns true if a sum needs the link, because both ends are replicas of one stage. */
bool link_failures_in_a_sum(const struct run *run, const struct member *m, const struct member *o);

/* Marks the link as absent, orders its ends to drop the transfers between them, and drops the
 * standby copies that need the link. The result is borrowed until the next cut. */
struct link_failure *link_failures_mark(struct members *members, const struct member *m,
					const struct msg_stuck *s);
/* Marks the link as absent in the cluster. Delays that were measured or reported during the cut are
 * saved for the link's return. */
void link_failures_keep_away(const struct run *run, struct link_failure *k);
/* Returns true if the link works again: both ends are present, and no agent has reported the link
 * for some time. The required time is longer for a link that was cut repeatedly. */
bool link_failures_over(const struct members *members, const struct link_failure *k);
/* Uses the link again, with the delays that it had before the cut. */
void link_failures_end(struct run *run, struct link_failure *k);

/* Removes m, one end of a cut link; `other` is the other end. others: m is also cut off from other
 * nodes. stays_out: m may rejoin only when none of its links is stuck. */
void link_failures_remove(struct run *run, struct member *m, const struct member *other,
			  bool others, bool stays_out);
/* Removes one end of a cut link because no plan is possible without that link. Returns false if no
 * cut link has an end that can be removed. */
bool link_failures_remove_end(struct members *members);

/* Writes to the journal that a link is cut. then: what the run does because of the cut. */
void link_failures_note(struct members *members, const struct msg_stuck *s, uint16_t from,
			const char *then);
/* Reports in the journal from time to time that the run waits for a cut link, because neither of
 * its ends can be removed. */
void link_failures_note_wait(struct members *members, const struct member *x,
			     const struct member *y);

#endif
