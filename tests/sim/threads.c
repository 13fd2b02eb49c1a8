/* What works in threads of its own, in place of agent/execution/worker.c and of the planner's thread: it is done in the
 * caller at once, with a clock that goes on meanwhile, and told when that clock says so. A job touches only what is
 * its own until it is told, so nobody can see the difference. */
#include <time.h>

#include "tests/sim/sim.h"

enum { TASK_US = 1000 /* usual */, LOOK_US = 10000 /* a planner's look at its clock */, NOBODY = SIM_PROCESSES };

static int64_t pace_us[SIM_PROCESSES];

/* Its budget is time on the processor, which goes on as it looks. */
static int planner_time(struct timespec *t)
{
	int64_t us = sim.now_us + sim.ahead_us;

	sim.ahead_us += sim.step_us;
	t->tv_sec = us / 1000000;
	t->tv_nsec = us % 1000000 * 1000;
	return 0;
}

/* The real planner, but for its thread: what it is asked by is ours, below. */
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

/* ---- both ---- */

struct due {
	uint32_t process; /* NOBODY: free */
	int64_t at_us;    /* world; INT64_MAX nothing is under way */
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
	return NULL;
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
	struct worker *w = calloc(1, sizeof(*w));

	if (!w || !(w->due = due_new())) {
		free(w);
		return error_set(err, -ENOMEM, "no memory for a worker");
	}
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

void worker_start(struct worker *w, void (*does)(void *context, void *job), void *context, void *job)
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

/* What the threaded one calls a planner is in it, for run(). */
struct sim_planner {
	struct planner real;
	struct due *due;
	struct answer *answers; /* oldest first */
	int64_t free_us;
};

static int begin_planner(struct planner **out, bool idle, struct error *err)
{
	struct sim_planner *p = calloc(1, sizeof(*p));

	if (!p || !(p->due = due_new())) {
		free(p);
		return error_set(err, -ENOMEM, "planner: out of memory");
	}
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

uint64_t planner_ask(struct planner *planner, const struct cluster *c, const struct planner_request *q)
{
	struct sim_planner *p = (struct sim_planner *)planner;
	struct job *j = job_new(c, q);
	struct answer *a = calloc(1, sizeof(*a)), **end = &p->answers;

	if (!j || !a) {
		job_free(j);
		free(a);
		return 0;
	}
	j->number = ++p->real.numbers;
	j->answer->request = j->number;
	j->answer->kind = q->kind;
	memcpy(j->answer->reason, j->reason, sizeof(j->reason));
	sim.step_us = LOOK_US;
	sim.ahead_us = 0;
	run_request(&p->real, j);
	p->free_us = (p->free_us > sim.now_us ? p->free_us : sim.now_us) + sim.ahead_us + sim_delay(LOOK_US);
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
	struct planned *told;

	if (!a || a->at_us > sim.now_us)
		return NULL;
	told = a->job->answer;
	a->job->answer = NULL;
	p->answers = a->next;
	p->due->at_us = p->answers ? p->answers->at_us : INT64_MAX;
	job_free(a->job);
	free(a);
	return told;
}
