/* stacking.c - stages that are visited for the first time start from a trained stage (--stack).
 *
 * In the first phase of the skip schedule, microbatches skip all stages that may be skipped.
 * During this phase the weights of these stages are not worth keeping. Each of these stages has a
 * source, a stage that is always visited (stage_set_source). Some iterations before a phase
 * visits these stages, each of their replicas fetches a standby copy of the source. The copy
 * follows every commit, as every standby copy does.
 *
 * The commit of the last iteration before the phase says that the stages start from these copies
 * (msg_commit.stack_from). At this commit, an agent makes the step of the copy instead of the step
 * of its own weights, and takes the copy's layers. The store writes this fact in the same
 * transaction as the commit. A death at any moment therefore leaves either the state before the
 * commit or the state after it. Because the fact is part of the commit, nodes that missed the
 * commit also learn it when the commit is repeated.
 *
 * Each of these stages needs one replica with a copy. A replica without a copy is dropped with the
 * commit and fetches the stage. If the copies are not complete in time, the phase begins later
 * (planning/skip_phases.c). The phase waits only a few iterations for the copies of a stage's other
 * replicas. */
#include "controller/weights/stacking.h"

#include <math.h>

#include "controller/members/member.h"
#include "controller/planning/skip_phases.h"
#include "controller/run/journal.h"
#include "controller/weights/copies.h"
#include "controller/weights/placement.h"
#include "controller/weights/backups.h"

enum {
	EARLIEST = 8, /* fetches of copies begin at least this many iterations before the phase */
	/* Number of iterations for which the phase waits for nodes that are still fetching */
	PATIENCE = 3,
	/* The phase does not wait for a node that failed this many times to keep a copy */
	MOST_FAILURES = 3,
	AGAIN_US = 30000000 /* time after which a node that failed tries again */
};

static int source_of(const struct run *run, const struct member *m)
{
	return stage_set_source(run->cluster->always | 1, member_stage(run, m));
}

/* Returns true if m is a replica of a stage that will start from a trained stage. */
static bool is_concerned(const struct run *run, const struct member *m)
{
	return member_is_replica(m) && !m->is_marked &&
	       !stage_set_has(run->cluster->always | 1, member_stage(run, m));
}

static bool has_copy(const struct run *run, const struct member *m)
{
	return m->copy.stage == source_of(run, m) && m->copy.state == COPY_WHOLE &&
	       copy_expected(run, m, m->copy.stage);
}

static bool has_failed(const struct run *run, const struct member *m)
{
	return m->copy.n_refused >= MOST_FAILURES &&
	       run->now_us - m->copy.refused_us <= AGAIN_US;
}

/* Returns true if m has no complete copy of its stage's source, but can fetch it or is fetching
 * it. */
static bool may_fetch(const struct run *run, const struct member *m)
{
	int source = source_of(run, m);

	return m->copy.stage < 0 ? copy_fits(run, m, source) && !has_failed(run, m)
				 : m->copy.stage == source && m->copy.state == COPY_FETCHING;
}

/* Returns how many iterations before the phase the fetches have to begin, so that the slowest
 * fetch ends in time. */
static uint64_t find_lead(const struct backups *backups)
{
	const struct curves *c = &backups->run->record.curves;
	double each_s = c->n_iterations > 0 ? (double)c->iterations[c->n_iterations - 1].real_s : 0;
	double fetch_s = 0;

	for (uint32_t i = 0; i < backups->members->n; i++) {
		const struct member *to = &backups->members->list[i];
		int source = is_concerned(backups->run, to) ? source_of(backups->run, to) : -1;

		for (uint32_t k = 0; source >= 0 && k < backups->members->n; k++) {
			const struct member *from = &backups->members->list[k];

			if (member_is_replica(from) && member_stage(backups->run, from) == source)
				fetch_s = fmax(
					fetch_s,
					placement_transfer_s(
						backups->members, from, to,
						STATE_BYTES *
							(double)backups->run->training
								.stage_parameters[source]));
		}
	}
	return EARLIEST + (each_s > 0 ? (uint64_t)fmin(1e9, 2 * fetch_s / each_s) : 0);
}

/* Lets m give up a copy that m keeps for another purpose, so that m can fetch its stage's source.
 * If another node has a copy of the same stage, releases m's copy. Otherwise makes another node
 * fetch a copy of that stage. A stage whose only replica kept such a copy could never start from
 * its source. */
static void free_node(struct backups *backups, struct member *m)
{
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *o = &backups->members->list[i];

		if (o != m && copy_usable(backups->run, o, m->copy.stage)) {
			copies_release(backups->members, m);
			return;
		}
	}
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *o = &backups->members->list[i];

		if (o->copy.stage == m->copy.stage && o != m)
			return; /* node o is already fetching this copy */
	}
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *o = &backups->members->list[i];

		if (o->state == MEMBER_LIVE && !is_concerned(backups->run, o) && !o->is_marked &&
		    o->copy.stage < 0 && member_stage(backups->run, o) != m->copy.stage &&
		    copy_fits(backups->run, o, m->copy.stage) && !has_failed(backups->run, o) &&
		    copies_fetch(backups->members, o, m->copy.stage))
			return;
	}
}

bool stacking_is_near(const struct backups *backups)
{
	uint64_t at = skip_phases_stacks_at(backups->run);

	return at != 0 && backups->run->iteration + find_lead(backups) >= at;
}

void stacking_turn(struct backups *backups)
{
	struct run *run = backups->run;

	if (run->committed == 0 || run->phase == PHASE_STALLED || backups->standbys.lacks ||
	    !stacking_is_near(backups))
		return;
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *m = &backups->members->list[i];
		int source;

		if (!is_concerned(run, m) || m->state == MEMBER_SUMMING)
			continue;
		source = source_of(run, m);
		if (m->copy.stage < 0 && may_fetch(run, m))
			m->copy.purpose = copies_fetch(backups->members, m, source)
						  ? COPY_FOR_STACKING
						  : COPY_FOR_SAFETY;
		else if (has_copy(run, m))
			m->copy.purpose = COPY_FOR_STACKING;
		else if (m->copy.stage >= 0 && m->copy.stage != source)
			free_node(backups, m);
	}
}

bool stacking_ready(const struct backups *backups)
{
	const struct run *run = backups->run;
	stage_set have = run->cluster->always | 1;
	bool is_patient = run->iteration + 1 < skip_phases_stacks_at(run) + PATIENCE;

	for (uint32_t i = 0; i < backups->members->n; i++) {
		const struct member *m = &backups->members->list[i];

		if (!is_concerned(run, m))
			continue;
		if (has_copy(run, m))
			have |= (stage_set)1 << member_stage(run, m);
		else if (is_patient && may_fetch(run, m))
			return false;
	}
	return stage_set_count(have) == run->cluster->n_stages;
}

bool stacking_lacks(const struct run *run, const struct member *m, stage_set from)
{
	return from && !stage_set_has(from, member_stage(run, m)) &&
	       (!has_copy(run, m) || m->copy.sum_state != COPY_SUM_REPORTED);
}

stage_set stacking_due(const struct backups *backups)
{
	const struct run *run = backups->run;
	stage_set from = run->cluster->always | 1, have = from;

	if (!skip_phases_forbid(run, run->wanted.path_length, run->wanted.skip_share))
		return 0;
	for (uint32_t i = 0; i < backups->members->n; i++) {
		const struct member *m = &backups->members->list[i];

		if (member_is_replica(m) && !stacking_lacks(run, m, from))
			have |= (stage_set)1 << member_stage(run, m);
	}
	return stage_set_count(have) == run->cluster->n_stages ? from : 0;
}

void stacking_begin(struct backups *backups, stage_set from)
{
	struct run *run = backups->run;
	char text[STAGE_SET_TEXT];

	run->wanted.stack = false;
	stage_set_format(from, text);
	note(run, NOTE_EVENT, -1, 'S',
	     "after it%llu the other stages start from copies of the stages %s in turn",
	     (unsigned long long)run->iteration, text);
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *m = &backups->members->list[i];

		if (m->copy.stage < 0 || stage_set_has(from, m->copy.stage))
			continue;
		if (member_is_replica(m))
			copies_release(backups->members, m);
		else
			copies_fetch_again(backups->members, m);
	}
}

bool stacking_needs(const struct run *run, const struct member *m)
{
	const struct msg_commit *last = &run->last_commit;
	bool will_take = run->wanted.stack && m->copy.purpose == COPY_FOR_STACKING;
	bool takes = last->stack_from && last->iteration == run->committed && m->weights.hash == 0;

	return (will_take || takes) && m->copy.state != COPY_DROPPED && is_concerned(run, m) &&
	       m->copy.stage == source_of(run, m);
}
