/* Plans several candidates at the same time. */
#include "schedule/fleet/evaluate.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
	MOST_THREADS = 64,
	/* Finding a first plan and its bound takes as long as this many evaluations. */
	FIRST_PLAN = 50
};

struct jobs {
	void (*run)(void *arg, int i);
	void *arg;
	int n;
	atomic_int next;
};

static void *run_jobs(void *arg)
{
	struct jobs *j = arg;

	for (int i; (i = atomic_fetch_add(&j->next, 1)) < j->n;)
		j->run(j->arg, i);
	return NULL;
}

/* The caller's thread works too, so the call succeeds even if no thread can be created. */
void effort_run(const struct effort *e, int n, void (*run)(void *arg, int i), void *arg)
{
	struct jobs j = { .run = run, .arg = arg, .n = n };
	pthread_t threads[MOST_THREADS];
	int started = 0;

	while (started < e->q->threads - 1 && started < n - 1 && started < MOST_THREADS &&
	       pthread_create(&threads[started], NULL, run_jobs, &j) == 0)
		started++;
	run_jobs(&j);
	for (int i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

struct evaluations {
	struct candidate *const *list;
	int64_t each;
	const struct candidate_frame *f;
};

static void evaluate_one(void *arg, int i)
{
	const struct evaluations *x = arg;

	candidate_evaluate(x->list[i], x->each, x->f);
}

int64_t effort_of(const struct candidate *c, int64_t evaluations, const struct candidate_frame *f)
{
	int64_t visits = c->n_stages - candidate_skip(f, c->n_stages);

	return f->batch / c->sequences * (2 * visits + 1) * (FIRST_PLAN + evaluations);
}

static void report_progress(const struct effort *e)
{
	if (e->q->on_progress)
		e->q->on_progress(e->q->on_progress_arg,
				  e->done < e->work ? (double)e->done / (double)e->work : 1,
				  e->best);
}

void effort_evaluate(struct effort *e, struct candidate *const *list, int n, int64_t evaluations)
{
	struct evaluations x = { list, evaluations, &e->q->frame };

	effort_run(e, n, evaluate_one, &x);
	for (int i = 0; i < n; i++)
		e->done += effort_of(list[i], evaluations, &e->q->frame);
	e->evaluated += n;
	report_progress(e);
}

bool effort_is_over(const struct effort *e, double share)
{
	const struct choose_request *q = e->q;

	return (double)e->done >= share * (double)e->work ||
	       (q->budget_s > 0 && q->clock_us &&
		(double)(q->clock_us(q->clock_arg) - e->start_us) >= q->budget_s * 1e6);
}
