/* threads.c - replaces agent/shared/worker.c and the planner's thread. The caller's thread runs the
 * job, with a clock of the job's own. The caller gets the result when the simulated time has come.
 *
 * The seed decides when a job runs: half of the jobs run when they begin, the other jobs when
 * their result is collected. This finds a caller that frees or changes what a running job uses,
 * or that reads a result too early: with some of the seeds AddressSanitizer then reports an
 * error, or the result differs. */
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "tests/sim/sim.h"

enum {
	TASK_US = 1000, /* usual length of a job */
	/* If a job's usual length is LONG_US or more, each reading of its clock advances this clock
	 * by at most 1.5 times the usual length. */
	LONG_US = 1000000,
	/* Most jobs read the clock twice: at their beginning and at their end. */
	JOB_LOOKS = 2,
	LOOK_US = 10000,       /* time between two readings of the clock by the planner */
	NOBODY = SIM_PROCESSES /* number that no process has */
};

static struct {
	int64_t (*job_us)(void *context, const struct worker *w, const void *job);
	void *context;
} pace;

/* Replaces clock_gettime in the planner, whose budget is CPU time. Each reading advances the
 * clock. */
static int planner_time(struct timespec *t)
{
	int64_t us = sim.now_us + sim.ahead_us;

	sim.ahead_us += sim.step_us;
	t->tv_sec = us / 1000000;
	t->tv_nsec = us % 1000000 * 1000;
	return 0;
}

/* Includes the real planner, but renames the functions of its header. The functions below replace
 * them and use no thread. */
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

#include "agent/shared/worker.h"

/* ---- jobs of workers and planners ---- */

struct due {
	uint32_t process; /* process of the job; NOBODY: the entry is unused */
	/* Time, on the world's clock, at which the job ends; INT64_MAX: no job is under way. */
	int64_t at_us;
};

enum { DUES = 8 * SIM_PROCESSES };
static struct due dues[DUES];

void threads_begin(void)
{
	for (int i = 0; i < DUES; i++)
		dues[i] = (struct due){ NOBODY, INT64_MAX };
	pace.job_us = NULL;
}

void threads_pace(int64_t (*job_us)(void *context, const struct worker *w, const void *job),
		  void *context)
{
	pace.job_us = job_us;
	pace.context = context;
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

/* Starts the clock of a job at this time of the world. Each reading then advances it by step_us. */
static void clock_begin(int64_t world_us, int64_t step_us)
{
	sim.ahead_us = world_us - sim.now_us;
	sim.step_us = step_us;
}

/* Ends the clock of a job and returns its last time. The clock then follows the world's clock
 * again. */
static int64_t clock_end(void)
{
	int64_t at_us = sim.now_us + sim.ahead_us;

	sim.ahead_us = sim.step_us = 0;
	return at_us;
}

int64_t threads_due_us(uint32_t process)
{
	int64_t at_us = INT64_MAX;

	for (int i = 0; i < DUES; i++)
		if (dues[i].process == process && dues[i].at_us < at_us)
			at_us = dues[i].at_us;
	return at_us;
}

/* ---- agent/shared/worker.h ---- */

struct worker {
	struct due *due;
	void *job; /* the job that was begun and not collected; NULL: none */
	void (*does)(void *context, void *job); /* NULL: the job has run */
	void *context;
	int64_t began_us, step_us;
};

int worker_new(struct worker **out, const char *name, struct error *err)
{
	struct worker *w = alloc_new(sizeof(*w));

	(void)name;
	(void)err;
	w->due = due_new();
	*out = w;
	return 0;
}

/* Runs the job. Its clock starts at the time when worker_start was called. */
static void run_job(struct worker *w)
{
	clock_begin(w->began_us, w->step_us);
	w->does(w->context, w->job);
	w->does = NULL;
	w->due->at_us = clock_end();
}

/* Runs a job that has not run, because the real worker waits for the end of its job. */
void worker_free(struct worker *w)
{
	if (!w)
		return;
	if (w->does)
		run_job(w);
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
	int64_t usual_us = pace.job_us ? pace.job_us(pace.context, w, job) : TASK_US;

	w->does = does;
	w->context = context;
	w->job = job;
	w->began_us = sim.now_us;
	/* sim_delay sometimes adds up to twenty times the usual length. A long job would then seem
	 * never to end. */
	w->step_us = usual_us < LONG_US ? sim_delay(usual_us)
					: sim_draw(usual_us / 2, usual_us * 3 / 2);
	w->due->at_us = w->began_us + JOB_LOOKS * w->step_us;
	if (sim_chance(0.5))
		run_job(w);
}

bool worker_busy(const struct worker *w)
{
	return w->job != NULL;
}

void *worker_finished(struct worker *w)
{
	void *job = w->job;

	if (job && w->does && w->due->at_us <= sim.now_us)
		run_job(w); /* this sets at_us to the end of the job, which may be later */
	if (!job || w->due->at_us > sim.now_us)
		return NULL;
	w->job = NULL;
	w->due->at_us = INT64_MAX;
	return job;
}

/* ---- controller/planning/planner.h ---- */

struct answer {
	struct planner_job *job;
	bool is_found;   /* the search has run */
	int64_t from_us; /* time, on the world's clock, at which the request arrived */
	/* Time on the world's clock. Before the search: time at which the search runs. After the
	 * search: time at which the answer may be taken. */
	int64_t at_us;
	struct answer *next;
};

/* Begins with a real planner, which run_request() needs. */
struct sim_planner {
	struct planner real;
	struct due *due;
	struct answer *answers; /* requests and answers, the oldest first */
	int64_t free_us;        /* time at which the latest search ended */
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

/* Draws an allocation of the nodes for each phase. A real search would take longer than the short
 * run, and its allocations would seldom differ between phases. */
static void draw_phases(struct planner_job *j)
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

/* Runs the search for a request, after the previous search has ended. */
static void search(struct sim_planner *p, struct answer *a)
{
	int64_t from_us = p->free_us > a->from_us ? p->free_us : a->from_us;

	clock_begin(from_us, LOOK_US);
	if (a->job->request.kind == PLANNER_PHASES)
		draw_phases(a->job);
	else
		run_request(&p->real, a->job);
	p->free_us = a->at_us = clock_end() + sim_delay(LOOK_US);
	a->is_found = true;
}

static void append(struct sim_planner *p, struct answer *a)
{
	struct answer **end = &p->answers;

	while (*end)
		end = &(*end)->next;
	*end = a;
}

uint64_t planner_ask(struct planner *planner, const struct cluster *c,
		     const struct planner_request *q)
{
	struct sim_planner *p = (struct sim_planner *)planner;
	struct planner_job *j = job_new(c, q);
	struct answer *a = alloc_new(sizeof(*a));

	if (!j) {
		free(a);
		return 0;
	}
	j->number = ++p->real.numbers;
	j->answer->request = j->number;
	j->answer->kind = q->kind;
	j->answer->formats = q->formats;
	memcpy(j->answer->reason, j->reason, sizeof(j->reason));
	a->job = j;
	a->from_us = sim.now_us;
	a->at_us = sim.now_us + sim_delay(LOOK_US);
	append(p, a);
	if (a == p->answers && sim_chance(0.5))
		search(p, a);
	p->due->at_us = p->answers->at_us;
	return j->number;
}

struct planned *planner_take(struct planner *planner)
{
	struct sim_planner *p = (struct sim_planner *)planner;
	struct answer *a = p->answers;
	struct planned *planned;

	if (a && !a->is_found && a->at_us <= sim.now_us)
		search(p, a);
	p->due->at_us = a ? a->at_us : INT64_MAX;
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
