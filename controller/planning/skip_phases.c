/* skip_phases.c - follows the run's skip schedule.
 *
 * A phase changes the number of skipped stages at a known iteration. An operator's command can
 * change this number at any time. The controller requests a phase's plan during the iteration
 * before the phase. The search starts from a plan made ahead in idle time, so no iteration has to
 * wait for the plan. An operator's change of the skip ratio holds until the next phase begins.
 *
 * Some stages start from copies of trained stages (weights/stacking.c). If the copies are not
 * ready, the phase that first visits such stages begins later. */
#include "controller/planning/skip_phases.h"

#include <errno.h>
#include <string.h>

#include "base/skip_schedule.h"
#include "controller/members/saved_state.h"
#include "controller/planning/planning.h"
#include "controller/planning/replan.h"
#include "controller/run/journal.h"

/* Returns the number of stages that a microbatch visits in a phase. */
static uint32_t length_of(const struct run *run, uint32_t phase)
{
	return (uint32_t)run->cluster->n_stages - run->wanted.schedule.phases[phase].skip;
}

/* Returns the length of a path that visits only the stages that are never skipped. */
static uint32_t least_length(const struct run *run)
{
	return (uint32_t)(run->cluster->n_stages - cluster_most_skipped(run->cluster));
}

bool skip_phases_forbid(const struct run *run, uint32_t path_length, uint32_t share)
{
	return run->wanted.stack && (share > 0 || path_length > least_length(run));
}

static bool is_forbidden(const struct run *run, uint32_t phase)
{
	return skip_phases_forbid(run, length_of(run, phase),
				  run->wanted.schedule.phases[phase].share);
}

static void enter_phase(struct run *run, uint32_t phase)
{
	run->wanted.phase = phase;
	run->wanted.path_length = length_of(run, phase);
	run->wanted.skip_share = run->wanted.schedule.phases[phase].share;
}

bool skip_phases_planned(const struct run *run)
{
	const struct plan *p = run->plan->plan;

	return p->path_length == (int)run->wanted.path_length &&
	       p->skip_share == (int)run->wanted.skip_share;
}

/* Sets run->wanted.stack. The field is true if the stages that may be skipped will start from
 * copies of trained stages (--stack). The field is false once a committed iteration has visited
 * these stages. */
static int find_stack(struct run *run, struct error *err)
{
	bool visited = false;
	int rc = 0;

	if (run->options.stack && run->committed > 0)
		rc = store_visited(run->record.store, least_length(run), &visited, err);
	run->wanted.stack = rc == 0 && run->options.stack && !visited;
	return rc;
}

/* Returns the phase of the next iteration. If some stages of a phase start from trained stages,
 * the phase waits until these stages can start. */
static uint32_t next_phase(const struct run *run)
{
	const struct wanted *w = &run->wanted;
	uint32_t phase = skip_schedule_at(&w->schedule, run->committed + 1);

	while (phase > 0 && is_forbidden(run, phase))
		phase--;
	return phase;
}

static int check_stack(const struct run *run, struct error *err)
{
	const struct wanted *w = &run->wanted;

	if (!run->options.stack)
		return 0;
	if (cluster_most_skipped(run->cluster) > 0 && w->schedule.n > 0 &&
	    length_of(run, 0) == least_length(run) && w->schedule.phases[0].share == 0)
		return 0;
	return error_set(err, -EINVAL,
			 "--stack: it needs a --skip-schedule whose first phase skips all stages "
			 "that may be skipped: %d",
			 cluster_most_skipped(run->cluster));
}

/* Refuses a share of skipping microbatches for the published baselines, because all of a baseline's
 * microbatches have paths of one length. */
static int check_share(const struct run *run, struct error *err)
{
	bool shares = run->wanted.skip_share > 0;

	for (uint32_t i = 0; i < run->wanted.schedule.n; i++)
		shares = shares || run->wanted.schedule.phases[i].share > 0;
	if (!shares || run->options.planning.algorithm == PLAN_BEST)
		return 0;
	return error_set(err, -EINVAL,
			 "this run is planned by %s, which gives all microbatches paths of one "
			 "length: a share of skipping microbatches needs best",
			 plan_algorithm_name(run->options.planning.algorithm));
}

static int check_moves(const struct run *run, struct error *err)
{
	if (!run->options.planning.phase_moves)
		return 0;
	if (!run->wanted.schedule_text)
		return error_set(err, -EINVAL,
				 "--phase-moves: it needs a --skip-schedule or a --recipe");
	if (run->options.planning.algorithm != PLAN_BEST)
		return error_set(err, -EINVAL,
				 "--phase-moves: this run is planned by %s, and only best has an "
				 "allocation for each phase",
				 plan_algorithm_name(run->options.planning.algorithm));
	return 0;
}

int skip_phases_begin(struct run *run, struct error *err)
{
	struct wanted *w = &run->wanted;
	uint32_t phase;

	if (check_moves(run, err) != 0)
		return -EINVAL;
	if (!w->schedule_text)
		return check_stack(run, err) == 0 ? check_share(run, err) : -EINVAL;
	if (run->options.planning.algorithm == PLAN_DTFM)
		return error_set(err, -EINVAL,
				 "--skip-schedule: this run is planned by dtfm, which visits every "
				 "stage");
	if (skip_schedule_parse(&w->schedule, w->schedule_text, run->options.iterations,
				(uint32_t)cluster_most_skipped(run->cluster), err) != 0 ||
	    check_stack(run, err) != 0 || find_stack(run, err) != 0)
		return -EINVAL;
	phase = next_phase(run);
	if (!run->options.mode.resume || w->phase != phase)
		enter_phase(run, phase);
	return check_share(run, err);
}

/* Goes back to a phase before the present one. */
static void return_to(struct planning *planning, uint32_t phase)
{
	enter_phase(planning->run, phase);
	replan(planning, "an earlier phase of the skip schedule");
	resume_save(planning->members);
}

void skip_phases_go_back(struct planning *planning)
{
	struct run *run = planning->run;
	struct error err = { "" };

	if (run->wanted.schedule.n == 0)
		return;
	if (find_stack(run, &err) != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
	if (next_phase(run) != run->wanted.phase)
		return_to(planning, next_phase(run));
}

bool skip_phases_postpone(struct planning *planning)
{
	struct run *run = planning->run;

	if (!skip_phases_forbid(run, run->wanted.path_length, run->wanted.skip_share))
		return false;
	note(run, NOTE_WARNING, -1, 0,
	     "phase %u of the skip schedule begins later: a stage has no copy of its source",
	     run->wanted.phase + 1);
	return_to(planning, next_phase(run));
	return true;
}

uint64_t skip_phases_stacks_at(const struct run *run)
{
	const struct wanted *w = &run->wanted;

	for (uint32_t i = 0; i < w->schedule.n; i++)
		if (is_forbidden(run, i))
			return w->schedule.phases[i].from;
	return 0;
}

uint32_t skip_phases_next_length(const struct run *run, uint32_t *share)
{
	const struct wanted *w = &run->wanted;

	if (w->phase + 1 >= w->schedule.n)
		return 0;
	*share = w->schedule.phases[w->phase + 1].share;
	return length_of(run, w->phase + 1);
}

void skip_phases_turn(struct planning *planning, bool can_stack)
{
	struct run *run = planning->run;
	struct wanted *w = &run->wanted;
	uint32_t phase, stages = (uint32_t)run->cluster->n_stages;
	char before[SKIP_SHARE_TEXT], after[SKIP_SHARE_TEXT];

	if (w->schedule.n == 0)
		return;
	phase = skip_schedule_at(&w->schedule, run->iteration + 1);
	if (phase == w->phase)
		return;
	if (is_forbidden(run, phase) && !can_stack) {
		if (w->schedule.phases[phase].from == run->iteration + 1)
			note(run, NOTE_EVENT, -1, 0,
			     "phase %u of the skip schedule begins later: its stages still fetch "
			     "copies of trained stages",
			     phase + 1);
		return;
	}
	skip_share_format(w->skip_share, stages - w->path_length, stages, before);
	enter_phase(run, phase);
	skip_share_format(w->skip_share, stages - w->path_length, stages, after);
	note(run, NOTE_EVENT, -1, 'S',
	     "phase %u of %u of the skip schedule from it%llu: skip %s -> %s", phase + 1,
	     w->schedule.n, (unsigned long long)run->iteration + 1, before, after);
	if (strcmp(before, after) != 0)
		replan(planning, "a phase of the skip schedule");
	resume_save(planning->members);
}

bool skip_phases_wait(const struct planning *planning)
{
	const struct run *run = planning->run;
	const struct wanted *w = &run->wanted;

	return w->schedule.n > 0 && planning->wanted_id != 0 && run->plan &&
	       (w->schedule.phases[w->phase].from == run->committed + 1 ||
		(run->last_commit.stack_from && run->last_commit.iteration == run->committed)) &&
	       !skip_phases_planned(run);
}
