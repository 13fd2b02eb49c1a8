/* held_sums.c - sums that do not come: who waits for whom, and who is left out for it. */
#include "controller/trust/held_sums.h"

#include "controller/controller.h"
#include "controller/iteration/stall_detector.h"
#include "controller/iteration/sums.h"
#include "controller/members/member.h"
#include "controller/operator/journal.h"
#include "controller/trust/suspicion.h"

static struct member *awaited_by(struct controller *c, const struct member *m)
{
	uint16_t awaits = m->beat.awaits;
	struct member *other = awaits && awaits <= c->n_members ? &c->members[awaits - 1] : NULL;

	return other && other->replica && member_stage(c, other) == member_stage(c, m) ? other : NULL;
}

/* Along the row of who waits for whom, to its end; in a circle, to somewhere. */
static struct member *end_of_row(struct controller *c, struct member *m, struct member **before)
{
	struct member *next;

	*before = NULL;
	for (uint32_t i = 0; i < c->n_members && (next = awaited_by(c, m)) && next != m; i++) {
		*before = m;
		m = next;
	}
	return m;
}

/* Finds who has all that it needs, and has not said its sum. */
static void says_no_sum(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!m->replica || m->reduced || awaited_by(c, m))
			continue;
		note(c, NOTE_ALERT, m->id, 0, "n%02u waits for nobody, and does not say its sum of S%d",
		     m->id, member_stage(c, m));
		if (suspicion_concerns(c, m->id))
			suspicion_proven(c, m, "does not say its sum");
		else
			suspicion_overdue(c, m, "does not say its sum");
		return;
	}
}

/* Beside the way of the sum, a big gradient is copied, added up and hashed meanwhile. */
static int64_t sum_patience_us(const struct controller *c)
{
	static const double sums = 6, parameter_us = 0.05;
	uint64_t most = 0;

	for (int s = 0; s < c->cluster->n_stages; s++)
		most = c->stage_parameters[s] > most ? c->stage_parameters[s] : most;
	return c->options.overdue_us + (int64_t)(parameter_us * (double)most) +
	       (int64_t)(sums * 1e6 * c->current->plan->predicted.sync_s * c->unit_s);
}

/* Who is awaited at the end of a row of waiting replicas, or the one who waits for it if that one is in more
 * pairs; where nobody says whom it awaits, whoever does not say its sum. */
void suspicion_held_up(struct controller *c)
{
	int64_t patience = sum_patience_us(c);

	if (!stall_look(c) || !stall_for(c, patience))
		return;
	c->steps++;
	if (sums_wait_for_counts(c)) { /* whom, their sums will show: somebody may say that a gradient is home which is not */
		c->requests.sum_anew = true;
		return;
	}
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i], *by, *bad;

		if (!m->replica || m->reduced)
			continue;
		bad = end_of_row(c, m, &by);
		if (!by)
			continue;
		suspicion_pair(c, bad->id, by->id);
		if (contradictions_guilt(&c->contradictions, by->id) > contradictions_guilt(&c->contradictions, bad->id)) {
			struct member *other = bad;

			bad = by;
			by = other;
		}
		note(c, NOTE_ALERT, bad->id, 0, "n%02u waits for n%02u's part of the sum of S%d: without n%02u",
		     by->id, bad->id, member_stage(c, bad), bad->id);
		suspicion_left_out(c, bad, by, "holds a sum up");
		return;
	}
	says_no_sum(c);
}
