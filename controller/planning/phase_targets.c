/* phase_targets.c - plans the stage of each node in each phase of the skip schedule.
 *
 * While microbatches skip stages, the nodes of these stages have little to do. With --phase-moves
 * the controller therefore requests an allocation of the nodes for each phase
 * (schedule/search/phase_plans.h). The controller makes this request once, when the first
 * iteration runs. The search takes seconds, and the run may need a plan meanwhile, so the search
 * has its own thread. The allocations are saved for a resumed run. weights/phase_moves.c moves
 * the nodes. */
#include "controller/planning/phase_targets.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/alloc.h"
#include "controller/members/member.h"
#include "controller/planning/planning.h"
#include "controller/planning/request.h"
#include "controller/run/journal.h"

static const char setting[] = "phase_stages";
/* Time limit of each search, in seconds. A request for allocations needs some tens of searches */
static const double most_budget_s = 0.2;
/* number of iterations that is assumed for a last phase without an end */
enum { ENDLESS = 100000 };

/* ---- saving ---- */

static void save(const struct planning *planning)
{
	const struct planned *a = planning->targets.answer;
	json_t *list = json_array();
	struct error err = { "" };
	char *text;

	for (uint32_t i = 0; i < (uint32_t)a->n_phases * planning->members->n; i++)
		json_array_append_new(list, json_integer(a->phase_stages[i]));
	text = json_dumps(list, JSON_COMPACT);
	if (!text || store_set(planning->run->record.store, setting, text, &err) != 0)
		log_line(&planning->run->log, LOG_ERROR, "%s", text ? err.text : "out of memory");
	free(text);
	json_decref(list);
}

static int load_list(struct planning *planning, const json_t *list)
{
	struct planned *a = planning->targets.answer = alloc_new(sizeof(*a));
	size_t n = (size_t)planning->run->wanted.schedule.n * planning->members->n;

	if (json_array_size(list) % planning->members->n != 0 || json_array_size(list) > n)
		return -EINVAL;
	n = json_array_size(list);
	a->n_phases = (int)(n / planning->members->n);
	a->phase_stages = alloc_array(n, sizeof(*a->phase_stages));
	for (size_t i = 0; i < n; i++) {
		json_int_t stage = json_integer_value(json_array_get(list, i));

		if (stage < -1 || stage >= planning->run->cluster->n_stages)
			return -EINVAL;
		a->phase_stages[i] = (int)stage;
	}
	return 0;
}

static int load(struct planning *planning, struct error *err)
{
	char *text = NULL;
	json_t *list;
	int rc = store_get(planning->run->record.store, setting, &text, err);

	if (rc != 0)
		return rc == -ENOENT ? 0 : rc;
	list = json_loads(text, 0, NULL);
	free(text);
	rc = load_list(planning, list);
	json_decref(list);
	return rc == 0 ? 0
		       : error_set(err, rc, "%s: the saved stages of the phases are damaged",
				   planning->run->options.run_dir);
}

/* Counts the nodes of each stage again, because moves changed the nodes' stages before the run was
 * resumed. */
static void resize_stages(struct run *run)
{
	int stage_of[MSG_NODES];

	for (int i = 0; i < run->cluster->n_nodes; i++)
		stage_of[i] = run->cluster->nodes[i].stage;
	if (cluster_may_have_stages(run->cluster, stage_of))
		cluster_set_stages(run->cluster, stage_of);
}

void phase_targets_apply(struct planning *planning, enum phase_moves_event event)
{
	bool is_possible = phase_moves_apply(&planning->targets.state, event);

	assert(is_possible);
	(void)is_possible;
}

int phase_targets_start(struct planning *planning, struct error *err)
{
	struct run *run = planning->run;
	int rc = 0;

	if (!run->options.planning.phase_moves)
		return 0;
	if (run->resumed) {
		resize_stages(run);
		rc = load(planning, err);
	}
	if (rc == 0)
		rc = planner_start(&planning->targets.planner, err);
	if (rc != 0)
		return rc;
	phase_targets_apply(planning, PHASE_MOVES_START);
	if (planning->targets.answer)
		phase_targets_apply(planning, PHASE_MOVES_LOAD);
	return 0;
}

void phase_targets_stop(struct planning *planning)
{
	planner_stop(planning->targets.planner);
	planned_free(planning->targets.answer);
}

/* ---- planning ---- */

static void request(struct planning *planning)
{
	struct run *run = planning->run;
	const struct skip_schedule *s = &run->wanted.schedule;
	double budget_s = run->options.planning.budget_s;
	bool excluded[MSG_NODES];
	struct planner_request q;

	replan_request(planning->members, &q, excluded);
	q.excluded = NULL; /* absent nodes get stages too, which they use when they return */
	q.kind = PLANNER_PHASES;
	q.schedule = s;
	q.iterations = run->options.iterations > 0 ? run->options.iterations
						    : s->phases[s->n - 1].from + ENDLESS;
	q.stack = run->options.stack;
	q.budget_s = budget_s > 0 ? fmin(budget_s, most_budget_s) : most_budget_s;
	q.reason = "allocations for the phases";
	replan_set_times(planning->members);
	replan_send(planning->members, planning->targets.planner, &q);
	phase_targets_apply(planning, PHASE_MOVES_REQUEST);
}

static void take_answer(struct planning *planning, struct planned *a)
{
	struct phase_targets *t = &planning->targets;

	if (a->phase_stages) {
		phase_targets_apply(planning, PHASE_MOVES_PLAN);
		t->answer = a;
		t->exchange.at = planning->run->iteration;
		save(planning);
		note(planning->run, NOTE_EVENT, -1, 0,
		     "allocations for %d phases were planned in %.1f s", a->n_phases,
		     a->elapsed_s);
		return;
	}
	phase_targets_apply(planning, PHASE_MOVES_NO_PLAN);
	note(planning->run, NOTE_ALERT, -1, 0,
	     "no allocations for the phases, so nodes keep their stages: %s", a->infeasible);
	planned_free(a);
}

void phase_targets_turn(struct planning *planning)
{
	struct phase_targets *t = &planning->targets;
	struct planned *a;

	if (t->state == PHASE_MOVES_UNPLANNED && planning->run->phase == PHASE_COMPUTING)
		request(planning);
	if (t->state == PHASE_MOVES_REQUESTED && (a = planner_take(t->planner)) != NULL)
		take_answer(planning, a);
}

int phase_targets_stage(const struct planning *planning, uint32_t phase, uint32_t node)
{
	const struct planned *a = planning->targets.answer;

	return a && phase < (uint32_t)a->n_phases
		       ? a->phase_stages[phase * planning->members->n + node]
		       : -1;
}

const struct plan *phase_targets_plan(const struct planning *planning)
{
	const struct planned *a = planning->targets.answer;
	uint32_t phase = planning->run->wanted.phase;
	const struct plan *plan;

	if (!a || !a->phase_plans || phase >= (uint32_t)a->n_phases)
		return NULL;
	plan = a->phase_plans[phase];
	return replan_as_pinned(planning->run, plan, planning->targets.exchange.to) ? plan : NULL;
}

/* ---- the exchange ---- */

bool phase_targets_fit(const struct planning *planning, const struct planned *p)
{
	const struct exchange *x = &planning->targets.exchange;
	bool is_prepared = planning->targets.state == PHASE_MOVES_PREPARED;

	if (p->exchange != 0 && !(is_prepared && p->exchange == x->number))
		return false;
	return replan_usable_at(planning->members, p, is_prepared ? x->to : NULL);
}

bool phase_targets_drop(struct planning *planning)
{
	if (planning->targets.state != PHASE_MOVES_PREPARED)
		return false;
	phase_targets_apply(planning, PHASE_MOVES_DROP);
	if (planning->pending && planning->pending->exchange != 0) {
		planned_free(planning->pending);
		planning->pending = NULL;
	}
	return true;
}
