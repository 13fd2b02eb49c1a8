/* planner.c - the thread that searches for plans.
 *
 * A search takes up to seconds, and the controller's loop must not wait for it. The thread
 * therefore works on copies of the requests, and the loop may change the cluster meanwhile. If a
 * newer request replaces an older request, the planner drops the older request. If the search for
 * the older request has begun, the planner cancels this search. Answers wait in a list, and an
 * eventfd wakes the loop.
 *
 * The thread of an idle planner (planner_start_idle) must not slow the training, and must still
 * end at once. A thread of the class SCHED_IDLE, or of the lowest priority, may wait many seconds
 * for a processor. Linux ends a process only after its last thread has run once more. Therefore
 * this thread has a moderate nice value, and pauses for most of the time while other threads want
 * its processor. A signal wakes a paused thread. */
#include "controller/planning/planner.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "schedule/execution/check.h"
#include "schedule/search/phase_plans.h"

enum {
	LESS_NICE = 10,       /* added to the nice value of an idle planner */
	BURST_US = 1000,      /* processor time between two checks of the load */
	PAUSE_BURSTS = 20,    /* length of a pause, as a multiple of BURST_US */
	END_MOST_US = 300000, /* longest time that planner_stop waits for the thread */
};

struct planner_job {
	struct planner_job *next;
	uint64_t number;
	struct planner_request request;
	struct skip_schedule schedule;
	char reason[96];
	struct cluster *cluster;
	bool *excluded;
	struct plan *from;
	struct planned *answer;
};

struct planner {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct planner_job *waiting, *answered; /* lists of requests and of answers, oldest first */
	const struct planner_job *running;
	atomic_bool cancel;
	bool quit, idle;
	bool ended; /* planner_stop has been called, so the thread takes no more requests */
	/* planner_stop did not wait for the thread to end, so the thread frees the planner */
	bool left;
	/* The following fields are used only by the thread. burst_us: the thread's processor time
	 * at its last check of the load. looked_us: the time of that check */
	bool yields; /* true if the thread pauses when the processor is busy */
	int64_t burst_us, looked_us;
	uint64_t numbers;
	int event;
};

void planned_free(struct planned *p)
{
	if (!p)
		return;
	plan_free(p->plan);
	simulation_free(p->trace);
	for (int k = 0; p->phase_plans && k < p->n_phases; k++)
		plan_free(p->phase_plans[k]);
	free(p->phase_plans);
	free(p->phase_stages);
	free(p);
}

static void job_free(struct planner_job *j)
{
	if (!j)
		return;
	cluster_free(j->cluster);
	free(j->excluded);
	plan_free(j->from);
	planned_free(j->answer);
	free(j);
}

static int64_t monotonic(void *arg)
{
	(void)arg;
	return clock_monotonic_us();
}

/* Waits until the condition `change` is signalled, or until the time `us`. The caller holds the
 * lock. */
static void wait_until(struct planner *p, int64_t us)
{
	struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	pthread_cond_timedwait(&p->work, &p->lock, &t);
}

/* Pauses if the thread waited too long for a processor: for more than a quarter of the processor
 * time that it used since the last check. used_us: the thread's processor time so far. */
static void yield_processor(struct planner *p, int64_t used_us)
{
	int64_t burst_us = used_us - p->burst_us, now_us = clock_monotonic_us();
	int64_t waited_us = now_us - p->looked_us - burst_us;
	int64_t until_us = now_us + PAUSE_BURSTS * burst_us;

	if (burst_us < BURST_US)
		return;
	if (waited_us > burst_us / 4) {
		pthread_mutex_lock(&p->lock);
		while (!atomic_load(&p->cancel) && clock_monotonic_us() < until_us)
			wait_until(p, until_us);
		pthread_mutex_unlock(&p->lock);
	}
	p->burst_us = used_us;
	p->looked_us = clock_monotonic_us();
}

static int64_t processor_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void begin_burst(struct planner *p)
{
	p->burst_us = processor_us();
	p->looked_us = clock_monotonic_us();
	p->yields = true;
}

static int64_t on_processor(void *arg)
{
	struct planner *p = arg;
	int64_t us = processor_us();

	if (p->yields)
		yield_processor(p, us);
	return us;
}

/* Simulates and checks the plan that was found. If the plan breaks a rule, drops the plan and keeps
 * the reason. */
static void judge_plan(const struct planner_job *j, struct planned *a)
{
	struct check_options options = { .excluded = j->excluded };
	struct check_report report = { 0 };
	struct error err = { "" };

	if (simulate(j->cluster, a->plan, &a->trace, &err) != 0) {
		snprintf(a->infeasible, sizeof(a->infeasible), "%.250s", err.text);
	} else {
		check_plan(j->cluster, a->plan, a->trace, &options, &report);
		if (report.n_breaches > 0)
			snprintf(a->infeasible, sizeof(a->infeasible), "%.250s",
				 report.breaches[0]);
	}
	check_report_fini(&report);
	if (a->infeasible[0]) {
		plan_free(a->plan);
		a->plan = NULL;
	}
}

/* Clears an answer before the next search. */
static void clear_answer(struct planned *a)
{
	plan_free(a->plan);
	simulation_free(a->trace);
	a->plan = NULL;
	a->trace = NULL;
	a->infeasible[0] = a->instead[0] = '\0';
}

/* Searches by one algorithm and checks the plan that it finds. */
static void search_plan(const struct planner_job *j, struct plan_request *q,
			enum plan_algorithm algorithm)
{
	struct error err = { "" };
	struct planned *a = j->answer;

	clear_answer(a);
	q->algorithm = algorithm;
	if (plan_search(j->cluster, q, &a->plan, &err) != 0) {
		a->plan = NULL;
		snprintf(a->infeasible, sizeof(a->infeasible), "%.250s",
			 err.text[0] ? err.text : "no plan");
	} else {
		judge_plan(j, a);
	}
}

/* Returns true if the algorithm itself chose the plan's paths. A baseline that finds no paths of
 * its own answers with arbitrary legal paths, and reports that it has evaluated no plan. */
static bool has_own_paths(const struct planned *a)
{
	return a->plan && a->plan->search.evaluations > 0;
}

/* Returns true if the search used up its budget. */
static bool is_late(const struct planned *a, const struct plan_request *q)
{
	return q->budget_s > 0 && a->plan->search.elapsed_s >= q->budget_s;
}

/* Returns true for the conflict-based searches, which may use up their budget before they have
 * paths. */
static bool takes_time(enum plan_algorithm a)
{
	return a == PLAN_CBS || a == PLAN_NO_TC2;
}

/* Writes why the algorithm has no paths of its own. */
static void say_why(const struct planned *a, const struct plan_request *q, char out[128])
{
	if (!a->plan)
		snprintf(out, 128, "has no plan (%.100s)", a->infeasible);
	else if (takes_time(q->algorithm) && is_late(a, q))
		snprintf(out, 128, "finds no paths of its own in %.3g s", q->budget_s);
	else
		snprintf(out, 128, "has no paths of its own");
}

/* Plans by a baseline algorithm within its budget. If the baseline finds no paths of its own, tries
 * the substitutes that the request allows, one after another. */
static void search_baseline(const struct planner *p, const struct planner_job *j,
			    struct plan_request *q)
{
	enum plan_algorithm wanted = j->request.algorithm, now = wanted;
	const char *name = plan_algorithm_name(wanted);
	struct planned *a = j->answer;
	char why[128];

	search_plan(j, q, wanted);
	if (has_own_paths(a) && is_late(a, q))
		snprintf(a->instead, sizeof(a->instead),
			 "%s used up its %.3g s (--budget): its best plan so far is used", name,
			 q->budget_s);
	if (has_own_paths(a) || j->request.substitute == SUBSTITUTE_ANY || atomic_load(&p->cancel))
		return;
	say_why(a, q, why);
	if (takes_time(wanted))
		search_plan(j, q, now = PLAN_DTFM_SKIP);
	if (!has_own_paths(a) && j->request.substitute == SUBSTITUTE_BEST)
		search_plan(j, q, now = PLAN_BEST);
	if (now == wanted || (now != PLAN_BEST && !has_own_paths(a))) {
		clear_answer(a);
		snprintf(a->infeasible, sizeof(a->infeasible), "%s %s", name, why);
	} else if (a->plan) {
		snprintf(a->instead, sizeof(a->instead), "%s %s: the plan of %s is used", name, why,
			 plan_algorithm_name(now));
	}
}

/* Plans an allocation of the nodes for each phase. A node that no plan uses gets the stage -1. */
static void plan_phases(const struct planner_job *j, const struct plan_request *search)
{
	struct phase_plans_request q = {
		.search = *search,
		.schedule = &j->schedule,
		.iterations = j->request.iterations,
		.stack = j->request.stack,
		.state_ratio = phase_plans_state_ratio(
			tensor_format_sum_share(j->request.formats.sum_wire)),
	};
	struct planned *a = j->answer;
	int n_nodes = j->cluster->n_nodes;
	struct error err = { "" };
	struct phase_plans plans;

	if (phase_plans_choose(j->cluster, &q, &plans, &err) != 0) {
		snprintf(a->infeasible, sizeof(a->infeasible), "%.250s", err.text);
		return;
	}
	a->n_phases = plans.with_moves.n;
	a->phase_stages = alloc_array((size_t)(a->n_phases * n_nodes), sizeof(int));
	a->phase_plans = alloc_array((size_t)a->n_phases, sizeof(*a->phase_plans));
	for (int k = 0; k < a->n_phases; k++) {
		const struct plan *plan = plans.with_moves.phases[k].plan;

		plan_stages(plan, n_nodes, a->phase_stages + (size_t)(k * n_nodes));
		a->phase_plans[k] = plan_copy(plan);
	}
	phase_plans_fini(&plans);
}

static void run_request(struct planner *p, struct planner_job *j)
{
	struct plan_request q;
	int64_t start = clock_monotonic_us();

	plan_request_init(&q);
	q.path_length = j->request.path_length;
	q.skip_share = j->request.skip_share;
	q.free_assignment = j->request.free_assignment;
	q.overlap_sync = j->request.overlap_sync;
	q.budget_s = j->request.budget_s;
	q.threads = j->request.threads;
	q.seed = j->request.seed;
	q.excluded = j->excluded;
	q.keep_batch = true;
	q.ascending = j->request.no_swaps || q.path_length == j->cluster->n_stages;
	q.from = j->from;
	q.clock_us = p->idle ? on_processor : monotonic;
	q.clock_arg = p;
	q.cancel = &p->cancel;
	if (j->request.kind == PLANNER_PHASES)
		plan_phases(j, &q);
	else if (j->request.algorithm == PLAN_BEST)
		search_plan(j, &q, PLAN_BEST);
	else
		search_baseline(p, j, &q);
	j->answer->elapsed_s = (double)(clock_monotonic_us() - start) * 1e-6;
}

static void append_answer(struct planner_job **list, struct planner_job *j)
{
	while (*list)
		list = &(*list)->next;
	j->next = NULL;
	*list = j;
}

/* Returns true if the search must be repeated: a request for the run has cancelled the search for a
 * PLANNER_BASELINE, and no newer PLANNER_BASELINE waits. */
static bool must_repeat(const struct planner *p, const struct planner_job *j)
{
	const struct planner_job *other = p->waiting;

	while (other && other->request.kind != PLANNER_BASELINE)
		other = other->next;
	return j->request.kind == PLANNER_BASELINE && atomic_load(&p->cancel) && !p->quit && !other;
}

/* Serves requests until planner_stop is called. The caller holds the lock. */
static void serve_requests(struct planner *p)
{
	const uint64_t one = 1;

	while (!p->quit) {
		struct planner_job *j = p->waiting;

		if (!j) {
			pthread_cond_wait(&p->work, &p->lock);
			continue;
		}
		p->waiting = j->next;
		p->running = j;
		atomic_store(&p->cancel, false);
		pthread_mutex_unlock(&p->lock);
		if (p->idle)
			begin_burst(p);
		run_request(p, j);
		pthread_mutex_lock(&p->lock);
		p->running = NULL;
		if (must_repeat(p, j)) {
			clear_answer(j->answer);
			append_answer(&p->waiting, j);
			continue;
		}
		append_answer(&p->answered, j);
		/* The write wakes the loop, which then takes the lock. Releasing the lock first
		 * saves the loop a wait. */
		pthread_mutex_unlock(&p->lock);
		/* The write cannot fail, because an eventfd counts to 2^64 - 2 */
		(void)!write(p->event, &one, sizeof(one));
		pthread_mutex_lock(&p->lock);
	}
}

static void drop_all(struct planner_job *j)
{
	while (j) {
		struct planner_job *next = j->next;

		job_free(j);
		j = next;
	}
}

static void planner_free(struct planner *p)
{
	drop_all(p->waiting);
	drop_all(p->answered);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->work);
	close(p->event);
	free(p);
}

static void *run_planner(void *arg)
{
	struct planner *p = arg;

	bool left;

	if (p->idle) /* on Linux each thread has its own nice value */
		setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, 0) + LESS_NICE);
	pthread_mutex_lock(&p->lock);
	serve_requests(p);
	p->ended = true;
	left = p->left;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	if (left)
		planner_free(p);
	return NULL;
}

static int start_planner(struct planner **out, bool idle, struct error *err)
{
	struct planner *p = alloc_new(sizeof(*p));
	pthread_condattr_t attributes;
	sigset_t all, was;
	int rc;

	p->idle = idle;
	p->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (p->event < 0) {
		rc = -errno;
		free(p);
		return error_set(err, rc, "planner: eventfd: %s", strerror(-rc));
	}
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&p->work, &attributes);
	pthread_condattr_destroy(&attributes);
	sigfillset(&all); /* only the loop handles signals */
	pthread_sigmask(SIG_SETMASK, &all, &was);
	rc = -pthread_create(&p->thread, NULL, run_planner, p);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (rc != 0) {
		close(p->event);
		free(p);
		return error_set(err, rc, "planner: no thread: %s", strerror(-rc));
	}
	*out = p;
	return 0;
}

int planner_start(struct planner **out, struct error *err)
{
	return start_planner(out, false, err);
}

int planner_start_idle(struct planner **out, struct error *err)
{
	return start_planner(out, true, err);
}

/* Waits a short time for the running search. A search that takes longer frees the planner when it
 * ends. */
void planner_stop(struct planner *p)
{
	const int64_t until_us = clock_monotonic_us() + END_MOST_US;
	pthread_t thread;
	bool left;

	if (!p)
		return;
	thread = p->thread;
	pthread_mutex_lock(&p->lock);
	p->quit = true;
	atomic_store(&p->cancel, true);
	pthread_cond_broadcast(&p->work);
	while (!p->ended && clock_monotonic_us() < until_us)
		wait_until(p, until_us);
	p->left = left = !p->ended;
	pthread_mutex_unlock(&p->lock);
	if (left) {
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	planner_free(p);
}

int planner_fd(const struct planner *p)
{
	return p->event;
}

static struct planner_job *job_new(const struct cluster *c, const struct planner_request *q)
{
	struct planner_job *j = alloc_new(sizeof(*j));

	j->request = *q;
	snprintf(j->reason, sizeof(j->reason), "%s", q->reason ? q->reason : "");
	j->answer = alloc_new(sizeof(*j->answer));
	j->cluster = cluster_copy(c);
	j->excluded = alloc_array((size_t)c->n_nodes, sizeof(bool));
	j->from = q->from ? plan_copy(q->from) : NULL;
	if (q->stages)
		cluster_set_stages(j->cluster, q->stages);
	if (q->schedule)
		j->schedule = *q->schedule;
	j->answer->exchange = q->exchange;
	if (q->excluded)
		memcpy(j->excluded, q->excluded, (size_t)c->n_nodes * sizeof(bool));
	return j;
}

/* Drops the waiting requests of a kind, and cancels the running request if it is of that kind.
 * Called because a newer request replaces these requests. */
static void drop_older(struct planner *p, enum planner_kind kind)
{
	for (struct planner_job **at = &p->waiting; *at;) {
		struct planner_job *j = *at;

		if (j->request.kind == kind) {
			*at = j->next;
			job_free(j);
		} else {
			at = &j->next;
		}
	}
	if (p->running && p->running->request.kind == kind)
		atomic_store(&p->cancel, true);
}

uint64_t planner_ask(struct planner *p, const struct cluster *c, const struct planner_request *q)
{
	struct planner_job *j = job_new(c, q);

	pthread_mutex_lock(&p->lock);
	if (q->kind != PLANNER_COMPARE)
		drop_older(p, q->kind);
	j->number = ++p->numbers;
	j->answer->request = j->number;
	j->answer->kind = q->kind;
	j->answer->formats = q->formats;
	memcpy(j->answer->reason, j->reason, sizeof(j->reason));
	/* The run waits for the answer, so this request is served before all others. */
	if (q->kind == PLANNER_RUN) {
		j->next = p->waiting;
		p->waiting = j;
		if (p->running && p->running->request.kind == PLANNER_BASELINE)
			atomic_store(&p->cancel, true);
	} else {
		append_answer(&p->waiting, j);
	}
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	return j->number;
}

struct planned *planner_take(struct planner *p)
{
	struct planned *a = NULL;
	struct planner_job *j;
	uint64_t n;

	if (pthread_mutex_trylock(&p->lock) != 0)
		/* the thread has a low priority and may hold the lock for a long time, so this
		 * function does not wait */
		return NULL;
	j = p->answered;
	if (j) {
		p->answered = j->next;
		a = j->answer;
		j->answer = NULL;
	} else if (read(p->event, &n, sizeof(n)) < 0) {
		/* the read fails with EAGAIN if another call has already reset the event */
	}
	pthread_mutex_unlock(&p->lock);
	job_free(j);
	return a;
}
