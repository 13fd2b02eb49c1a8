/* hours_comparison.c - the thread that compares recipes for the nodes of a run
 * (hours_comparison.h). */
#include "controller/planning/hours_comparison.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/run/run.h"
#include "model/shape.h"
#include "schedule/search/phase_plans.h"

/* Seconds of each search. A comparison makes about 25 searches. */
static const double budget_s = 0.2;

struct hours_comparison {
	pthread_t thread;
	struct cluster *cluster; /* owned */
	struct model_shape shape;
	struct hours_request request;
	struct hours_row rows[RECIPES]; /* valid if result is 0 */
	struct error err;
	int result;
	int64_t hours;
	atomic_bool cancel, is_done;
};

static int64_t read_clock(void *arg)
{
	(void)arg;
	return clock_monotonic_us();
}

/* Returns a cluster of the nodes that could train now, with their stages. NULL: a stage has none of
 * these nodes, or the number of data nodes does not divide the batch. */
static struct cluster *pick_present(const struct members *members)
{
	const struct cluster *c = members->run->cluster;
	int nodes[MSG_NODES], stage_of[MSG_NODES], n = 0;
	struct cluster *picked;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (!member_alive(m) || m->is_marked)
			continue;
		stage_of[n] = member_is_replica(m) ? c->nodes[i].stage : -1;
		nodes[n++] = (int)i;
	}
	if (n == 0)
		return NULL;
	picked = cluster_pick(c, nodes, n);
	if (!cluster_may_have_stages(picked, stage_of)) {
		cluster_free(picked);
		return NULL;
	}
	cluster_set_stages(picked, stage_of);
	return picked;
}

static void fill_request(const struct run *run, struct hours_comparison *h)
{
	double scale = run->options.cluster.time_scale;

	plan_request_init(&h->request.search);
	h->request.search.budget_s = budget_s;
	h->request.search.threads = 1;
	h->request.search.seed = run->options.seed;
	h->request.search.clock_us = read_clock;
	h->request.search.cancel = &h->cancel;
	h->request.search.free_assignment = true;
	h->request.search.overlap_sync = run->options.planning.overlap_sync;
	/* A plan second of an emulated cluster takes `scale` real seconds. */
	h->request.seconds = (double)h->hours * 3600 / (scale > 0 ? scale : 1);
	h->request.state_ratio =
		phase_plans_state_ratio(tensor_format_sum_share(h->cluster->formats.sum_wire));
	model_shape_of(&run->training.model, &run->training.hyper, &h->shape);
	h->request.shape = &h->shape;
}

static void *compare(void *arg)
{
	struct hours_comparison *h = arg;

	h->result = hours_compare(h->cluster, &h->request, h->rows, &h->err);
	atomic_store(&h->is_done, true);
	return NULL;
}

int hours_comparison_start(const struct members *members, int64_t hours,
			   struct hours_comparison **out, struct error *err)
{
	struct cluster *c = pick_present(members);
	struct hours_comparison *h;
	sigset_t all, was;
	int rc;

	if (!c)
		return error_set(err, -EINVAL, "the connected nodes leave a stage without nodes, "
					       "or cannot share the batch equally");
	h = alloc_new(sizeof(*h));
	h->hours = hours;
	h->cluster = c;
	fill_request(members->run, h);
	sigfillset(&all); /* only the loop's thread handles signals */
	pthread_sigmask(SIG_SETMASK, &all, &was);
	rc = -pthread_create(&h->thread, NULL, compare, h);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (rc != 0) {
		cluster_free(h->cluster);
		free(h);
		return error_set(err, rc, "no thread to compare recipes: %s", strerror(-rc));
	}
	*out = h;
	return 0;
}

void hours_comparison_free(struct hours_comparison *h)
{
	if (!h)
		return;
	atomic_store(&h->cancel, true);
	pthread_join(h->thread, NULL);
	cluster_free(h->cluster);
	free(h);
}

bool hours_comparison_is_done(const struct hours_comparison *h)
{
	return atomic_load(&h->is_done);
}

const struct hours_row *hours_comparison_rows(const struct hours_comparison *h, struct error *err)
{
	if (h->result == 0)
		return h->rows;
	*err = h->err;
	return NULL;
}

int64_t hours_comparison_hours(const struct hours_comparison *h)
{
	return h->hours;
}

const struct cluster *hours_comparison_cluster(const struct hours_comparison *h)
{
	return h->cluster;
}
