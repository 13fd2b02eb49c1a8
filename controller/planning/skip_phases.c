/* skip_phases.c - follows the run's skip schedule.
 *
 * A phase changes the number of skipped stages as the operator's command does, but at a known
 * iteration. The plan is requested while the iteration before is computed, from a plan that was
 * made ahead in idle time. Therefore no iteration waits for it. An operator's change of the skip
 * ratio holds until the next phase begins.
 */
#include "controller/planning/skip_phases.h"

#include <errno.h>

#include "controller/history/run_state.h"
#include "controller/operator/journal.h"
#include "controller/planning/planning.h"
#include "controller/planning/replan.h"

/* Returns the number of stages that a microbatch visits in a phase. */
static uint32_t length_of(const struct run *run, uint32_t phase)
{
	return (uint32_t)run->cluster->n_stages - run->wanted.schedule.phases[phase].skip;
}

int skip_phases_begin(struct run *run, struct error *err)
{
	struct wanted *w = &run->wanted;
	uint32_t phase;

	if (!w->schedule_text)
		return 0;
	if (run->options.planning.algorithm == PLAN_DTFM)
		return error_set(err, -EINVAL,
				 "--skip-schedule: this run is planned by dtfm, which visits every "
				 "stage");
	if (skip_schedule_parse(&w->schedule, w->schedule_text, run->options.iterations,
				(uint32_t)cluster_most_skipped(run->cluster), err) != 0)
		return -EINVAL;
	phase = skip_schedule_at(&w->schedule, run->committed + 1);
	if (!run->options.mode.resume || w->phase != phase) {
		w->phase = phase;
		w->path_length = length_of(run, phase);
	}
	return 0;
}

uint32_t skip_phases_next_length(const struct run *run)
{
	const struct wanted *w = &run->wanted;

	return w->phase + 1 < w->schedule.n ? length_of(run, w->phase + 1) : 0;
}

void skip_phases_turn(struct planning *planning)
{
	struct run *run = planning->run;
	struct wanted *w = &run->wanted;
	uint32_t phase, length, stages = (uint32_t)run->cluster->n_stages;

	if (w->schedule.n == 0)
		return;
	phase = skip_schedule_at(&w->schedule, run->iteration + 1);
	if (phase == w->phase)
		return;
	w->phase = phase;
	length = length_of(run, phase);
	note(run, NOTE_EVENT, -1, 'S',
	     "phase %u of %u of the skip schedule from it%llu: skip %u/%u -> %u/%u", phase + 1,
	     w->schedule.n, (unsigned long long)run->iteration + 1, stages - w->path_length, stages,
	     stages - length, stages);
	if (length != w->path_length) {
		w->path_length = length;
		replan(planning, "a phase of the skip schedule");
	}
	resume_save(planning->members);
}

bool skip_phases_wait(const struct planning *planning)
{
	const struct run *run = planning->run;
	const struct wanted *w = &run->wanted;

	return w->schedule.n > 0 && planning->wanted_id != 0 && run->plan &&
	       w->schedule.phases[w->phase].from == run->committed + 1 &&
	       run->plan->plan->path_length != (int)w->path_length;
}
