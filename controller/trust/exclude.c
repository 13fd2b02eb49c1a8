/* exclude.c - takes a node out of the run because of data that it sent, until the operator recovers
 * the node.
 *
 * The controller trusts an admitted agent to be honest, but its memory, its device or its program
 * may be faulty. An agent that breaks the protocol, or sends numbers that no computation yields,
 * would do so again after a restart. The controller therefore marks the node failed, which an
 * operator can do too, and the other agents forget the node's key. If several nodes compute such
 * numbers from the same weights, the weights are the cause, and the run ends without blaming a
 * node. */
#include "controller/trust/exclude.h"

#include <stdio.h>

#include "controller/members/finish.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/members/peers.h"
#include "controller/run/journal.h"

void exclude_member(struct members *members, struct member *m, const char *why)
{
	/* The sums may contain wrong numbers from this node */
	members->run->requests.restart_sums = true;
	/* Ends the node's drain, because the end of a drain would clear the mark */
	member_drain(members, m, DRAIN_NOT);
	member_mark(members, m, true);
	member_shun(members, m, true);
	member_apply(members->run, m, EVENT_LOST, why);
	/* The node's process still runs, so its state becomes FAILED instead of DEAD */
	member_apply(members->run, m, EVENT_BAR, why);
}

/* Returns the controller's notes about bad numbers in the iteration under way. Notes about an
 * earlier iteration are cleared. */
static struct bad_numbers *bad_numbers_now(struct members *members)
{
	struct bad_numbers *b = &members->bad_numbers;

	if (b->iteration != members->run->iteration)
		*b = (struct bad_numbers){ .iteration = members->run->iteration };
	return b;
}

bool exclude_try_skipping(struct members *members, uint64_t epoch, const char *what)
{
	struct bad_numbers *b = bad_numbers_now(members);
	struct run *run = members->run;

	if (epoch == 0 || run->options.skip_bad_steps == 0)
		return false;
	/* Several nodes may report bad numbers of one attempt, even after the attempt has ended. */
	if (epoch != run->epoch || b->skipped_epoch == epoch)
		return true;
	if (b->n_skipped == run->options.skip_bad_steps)
		return false;
	b->n_skipped++;
	b->skipped_epoch = epoch;
	run->training.skipped++;
	note(run, NOTE_WARNING, -1, 0, "it%llu: %s: its data is skipped (%u of %u times)",
	     (unsigned long long)run->iteration, what, b->n_skipped,
	     run->options.skip_bad_steps);
	request_restart(&run->requests, "the data of the iteration was skipped");
	return true;
}

void exclude_for_number(struct members *members, struct member *m, uint64_t epoch, const char *why)
{
	struct bad_numbers *b = bad_numbers_now(members);
	bool is_second = b->excluded && b->excluded != m;
	char what[80];

	if (!member_is_replica(m))
		return;
	snprintf(what, sizeof(what), "n%02u %s", m->id, why);
	if (exclude_try_skipping(members, epoch, what))
		return;
	if (is_second)
		snprintf(what, sizeof(what), "n%02u and n%02u computed impossible numbers",
			 b->excluded->id, m->id);
	else
		snprintf(what, sizeof(what), "n%02u computed impossible numbers", m->id);
	if (is_second || stage_replicas(members, member_stage(members->run, m), m) == 0) {
		training_diverged(members, what);
		return;
	}
	b->excluded = m;
	exclude_member(members, m, why);
}

void training_diverged(struct members *members, const char *what)
{
	struct bad_numbers *b = bad_numbers_now(members);
	struct run *run = members->run;
	char why[160];

	if (b->excluded && b->excluded->is_marked) {
		member_mark(members, b->excluded, false);
		member_apply(run, b->excluded, EVENT_MISS, "the training has diverged");
	}
	snprintf(why, sizeof(why),
		 "the training has diverged in iteration %llu: %s; the learning rate of %g may be "
		 "too high",
		 (unsigned long long)run->iteration, what, (double)rates_of(run, run->iteration));
	controller_finish(members, 1, why);
}
