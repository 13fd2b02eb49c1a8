/* Replaces agent/execution/worker.c and the planner's thread. A job is done at once in the caller,
 * with a clock that advances during the job. Its result is returned when the simulated time has
 * come. A job changes only its own data until then, so the difference to a real thread cannot be
 * seen. */
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "tests/sim/sim.h"

enum {
	TASK_US = 1000,        /* usual length of a job */
	LOOK_US = 10000,       /* between two looks of the planner at its clock */
	NOBODY = SIM_PROCESSES /* no process */
};

static int64_t pace_us[SIM_PROCESSES];

/* The planner's budget is CPU time, which advances at each look. */
static int planner_time(struct timespec *t)
{
	int64_t us = sim.now_us + sim.ahead_us;

	sim.ahead_us += sim.step_us;
	t->tv_sec = us / 1000000;
	t->tv_nsec = us % 1000000 * 1000;
	return 0;
}

/* The real planner without its thread. The functions of its header are defined below. */
#include "controller/planning/planner.h"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define planner_start      threaded_start
#define planner_start_idle threaded_start_idle
#define planner_stop       threaded_stop
#define planner_fd         threaded_fd
#define planner_ask        threaded_ask
#define planner_take       threaded_take
#define clock_gettime(clock, t) planner_time(t)
#include "controller/planning/planner.c"
#undef planner_start
#undef planner_start_idle
#undef planner_stop
#undef planner_fd
#undef planner_ask
#undef planner_take
#pragma GCC diagnostic pop

#include "agent/execution/worker.h"

/* ---- jobs of workers and planners ---- */

struct due {
	uint32_t process; /* NOBODY: free */
	int64_t at_us;    /* world; INT64_MAX: nothing is in progress */
};

enum { DUES = 4 * SIM_PROCESSES };
static struct due dues[DUES];

void threads_begin(void)
{
	for (int i = 0; i < DUES; i++)
		dues[i] = (struct due){ NOBODY, INT64_MAX };
	for (int i = 0; i < SIM_PROCESSES; i++)
		pace_us[i] = TASK_US;
}

void threads_pace(uint32_t process, int64_t task_us)
{
	pace_us[process] = task_us;
}

static struct due *due_new(void)
{
	for (int i = 0; i < DUES; i++)
		if (dues[i].process == NOBODY) {
			dues[i] = (struct due){ sim.self, INT64_MAX };
			return &dues[i];
		}
	abort();
}

static void due_free(struct due *d)
{
	*d = (struct due){ NOBODY, INT64_MAX };
}

int64_t threads_due_us(uint32_t process)
{
	int64_t at_us = INT64_MAX;

	for (int i = 0; i < DUES; i++)
		if (dues[i].process == process && dues[i].at_us < at_us)
			at_us = dues[i].at_us;
	return at_us;
}

/* ---- agent/execution/worker.h ---- */

struct worker {
	struct due *due;
	void *job; /* NULL: idle */
};

int worker_new(struct worker **out, struct error *err)
{
	struct worker *w = alloc_new(sizeof(*w));

	(void)err;
	w->due = due_new();
	*out = w;
	return 0;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	due_free(w->due);
	free(w);
}

int worker_fd(const struct worker *w)
{
	(void)w;
	return -1;
}

void worker_start(struct worker *w, void (*does)(void *context, void *job), void *context,
		  void *job)
{
	sim.step_us = sim_delay(pace_us[sim.self]);
	sim.ahead_us = 0;
	does(context, job);
	w->job = job;
	w->due->at_us = sim.now_us + sim.ahead_us;
	sim.step_us = sim.ahead_us = 0;
}

bool worker_busy(const struct worker *w)
{
	return w->job != NULL;
}

void *worker_finished(struct worker *w)
{
	void *job = w->job;

	if (!job || w->due->at_us > sim.now_us)
		return NULL;
	w->job = NULL;
	w->due->at_us = INT64_MAX;
	return job;
}

/* ---- controller/planning/planner.h ---- */

struct answer {
	struct job *job;
	int64_t at_us;
	struct answer *next;
};

/* It contains a real planner, for run_request(). */
struct sim_planner {
	struct planner real;
	struct due *due;
	struct answer *answers; /* oldest first */
	int64_t free_us;
};

static int begin_planner(struct planner **out, bool idle, struct error *err)
{
	struct sim_planner *p = alloc_new(sizeof(*p));

	(void)err;
	p->due = due_new();
	p->real.idle = idle;
	*out = &p->real;
	return 0;
}

int planner_start(struct planner **out, struct error *err)
{
	return begin_planner(out, false, err);
}

int planner_start_idle(struct planner **out, struct error *err)
{
	return begin_planner(out, true, err);
}

void planner_stop(struct planner *planner)
{
	struct sim_planner *p = (struct sim_planner *)planner;

	if (!p)
		return;
	while (p->answers) {
		struct answer *a = p->answers;

		p->answers = a->next;
		job_free(a->job);
		free(a);
	}
	due_free(p->due);
	free(p);
}

int planner_fd(const struct planner *p)
{
	(void)p;
	return -1;
}

/* Draws an allocation for each phase. The best allocations of so few nodes seldom differ, and their
 * search would take longer than the short run. */
static void draw_phases(struct job *j)
{
	struct planned *a = j->answer;
	const struct cluster *c = j->cluster;

	a->n_phases = (int)j->schedule.n;
	a->phase_stages = alloc_array((size_t)(a->n_phases * c->n_nodes), sizeof(int));
	for (int k = 0; k < a->n_phases; k++) {
		int *stage_of = a->phase_stages + (size_t)(k * c->n_nodes);

		do
			for (int i = 0; i < c->n_nodes; i++)
				stage_of[i] = sim_chance(0.5) ? c->nodes[i].stage :
						      (int)sim_draw(0, c->n_stages - 1);
		while (!cluster_may_have_stages(c, stage_of));
	}
}

uint64_t planner_ask(struct planner *planner, const struct cluster *c,
		     const struct planner_request *q)
{
	struct sim_planner *p = (struct sim_planner *)planner;
	struct job *j = job_new(c, q);
	struct answer *a = alloc_new(sizeof(*a)), **end = &p->answers;

	if (!j) {
		free(a);
		return 0;
	}
	j->number = ++p->real.numbers;
	j->answer->request = j->number;
	j->answer->kind = q->kind;
	memcpy(j->answer->reason, j->reason, sizeof(j->reason));
	sim.step_us = LOOK_US;
	sim.ahead_us = 0;
	if (q->kind == PLANNER_PHASES)
		draw_phases(j);
	else
		run_request(&p->real, j);
	p->free_us = (p->free_us > sim.now_us ? p->free_us : sim.now_us) + sim.ahead_us +
		     sim_delay(LOOK_US);
	sim.step_us = sim.ahead_us = 0;
	a->job = j;
	a->at_us = p->free_us;
	while (*end)
		end = &(*end)->next;
	*end = a;
	p->due->at_us = p->answers->at_us;
	return j->number;
}

struct planned *planner_take(struct planner *planner)
{
	struct sim_planner *p = (struct sim_planner *)planner;
	struct answer *a = p->answers;
	struct planned *planned;

	if (!a || a->at_us > sim.now_us)
		return NULL;
	planned = a->job->answer;
	a->job->answer = NULL;
	p->answers = a->next;
	p->due->at_us = p->answers ? p->answers->at_us : INT64_MAX;
	job_free(a->job);
	free(a);
	return planned;
}
