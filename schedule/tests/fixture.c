/* Makes random clusters and plans, small enough for the oracle but with every kind of
 * difficulty. */
#include "base/tests/test.h"
#include "schedule/tests/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cluster *fixture_cluster(const char *name)
{
	char path[200];
	struct cluster *c = NULL;
	struct error err = { "" };

	snprintf(path, sizeof(path), "schedule/tests/data/%s", name);
	if (cluster_read(path, &c, &err) != 0)
		fail_msg("%s", err.text);
	return c;
}

struct plan *fixture_plan(const char *name)
{
	char path[200];
	struct plan *p = NULL;
	struct error err = { "" };

	snprintf(path, sizeof(path), "schedule/tests/data/%s", name);
	if (plan_read(path, &p, &err) != 0)
		fail_msg("%s", err.text);
	return p;
}

static double draw_time(struct rng *r, const struct fixture_shape *shape, double least, double most)
{
	double t = least + (most - least) * rng_uniform(r);

	return shape->grid ? (double)(long)(t * 4) / 4 + (least > 0 ? 0.25 : 0) : t;
}

static int upto(struct rng *r, int n)
{
	return 1 + (int)rng_below(r, (uint32_t)n);
}

struct cluster *fixture_random_cluster(struct rng *r, const struct fixture_shape *shape)
{
	int n_stages = 1 + upto(r, shape->most_stages - 1), n = 0, sizes[64], at = 0;
	struct cluster *c;

	for (int s = 0; s < n_stages; s++)
		n += sizes[s] = upto(r, shape->most_replicas);
	c = cluster_alloc(n, n_stages, true);
	assert_non_null(c);
	memcpy(c->stages, sizes, (size_t)n_stages * sizeof(int));
	for (int s = 0; s < n_stages; s++) {
		for (int i = 0; i < sizes[s]; i++)
			c->nodes[at++].stage = s;
	}
	for (int i = n - 1; i > 0; i--) {
		int j = (int)rng_below(r, (uint32_t)i + 1), was = c->nodes[i].stage;

		c->nodes[i].stage = c->nodes[j].stage;
		c->nodes[j].stage = was;
	}
	for (int i = 0; i < n; i++) {
		c->nodes[i].forward_s = draw_time(r, shape, 0.25, 1);
		c->nodes[i].backward_s = draw_time(r, shape, 0.25, 2);
		c->nodes[i].loss_s = draw_time(r, shape, 0, 0.5);
		c->nodes[i].memory = upto(r, shape->most_memory);
		if (shape->unpinned && rng_below(r, 3) == 0)
			c->nodes[i].stage = -1;
		for (int j = 0; j < n; j++) {
			c->sync_pair_s[i * n + j] = draw_time(r, shape, 0, 3);
			c->delay_s[i * n + j] = rng_uniform(r) < shape->absent
				? -1 : draw_time(r, shape, 0, 2);
		}
	}
	/* Every other cluster has stages of unequal work. */
	for (int s = 0; s < n_stages && n % 2; s++)
		c->work[s] = (const double[]){ 0.25, 1, 2.5, 0.5 }[s % 4];
	c->microbatches_per_data_node = upto(r, shape->most_microbatches);
	c->dispatch_overhead_s = draw_time(r, shape, 0, 0.3);
	return c;
}

static void draw_path(struct rng *r, const struct cluster *c, struct plan_microbatch *m)
{
	int stages[64], n = 0, want = m->length - 1;

	for (int s = 1; s < c->n_stages; s++) {
		/* Selection sampling: the stages ascend, and each subset of stages is equally
		 * likely. */
		if ((int)rng_below(r, (uint32_t)(c->n_stages - s)) < want - n)
			stages[n++] = s;
	}
	for (int i = 0; i + 1 < n; i++) {
		if (stages[i + 1] == stages[i] + 1 && rng_below(r, 4) == 0) {
			stages[i]++;
			stages[i + 1]--;
			i++;
		}
	}
	m->path[0] = m->data_node;
	for (int i = 0; i < n; i++) {
		int skip = (int)rng_below(r, (uint32_t)c->stages[stages[i]]);

		for (int v = 0; v < c->n_nodes; v++) {
			if (c->nodes[v].stage == stages[i] && skip-- == 0)
				m->path[i + 1] = v;
		}
	}
}

static void draw_orders(struct rng *r, struct plan *p, int n_nodes)
{
	p->orders = calloc((size_t)n_nodes, sizeof(*p->orders));
	assert_non_null(p->orders);
	for (int v = 0; v < n_nodes; v++) {
		struct plan_order *o = &p->orders[p->n_orders++];

		o->node = v;
		o->tasks = calloc((size_t)p->n_microbatches * 3 + 1, sizeof(*o->tasks));
		assert_non_null(o->tasks);
		for (int i = 0; i < p->n_microbatches; i++) {
			for (int k = 0; k < 3; k++) {
				if (rng_below(r, 3) != 0)
					o->tasks[o->n_tasks++] = (struct plan_task){
						p->microbatches[i].id, (enum task_kind)k };
			}
		}
		for (int i = o->n_tasks - 1; i > 0; i--) {
			int j = (int)rng_below(r, (uint32_t)i + 1);
			struct plan_task was = o->tasks[i];

			o->tasks[i] = o->tasks[j];
			o->tasks[j] = was;
		}
	}
}

struct plan *fixture_random_plan(struct rng *r, const struct cluster *c, int path_length)
{
	int each = c->microbatches_per_data_node, at = 0, sent = 0;
	struct plan *p = plan_alloc(c->n_stages, c->n_nodes, each * c->stages[0], path_length);

	assert_non_null(p);
	for (int s = 0; s < c->n_stages; s++) {
		p->stage_start[s] = at;
		for (int v = 0; v < c->n_nodes; v++) {
			if (c->nodes[v].stage == s)
				p->assigned[at++] = v;
		}
	}
	for (int d = 0; d < c->stages[0]; d++) {
		for (int k = 0; k < each; k++) {
			struct plan_microbatch *m = &p->microbatches[sent++];

			m->data_node = p->assigned[d];
			m->release_s = rng_below(r, 4) == 0 ? rng_uniform(r) : 0;
			draw_path(r, c, m);
		}
	}
	if (rng_below(r, 2))
		draw_orders(r, p, c->n_nodes);
	return p;
}

void fixture_visits(const struct problem *p, const struct solution *s, int *visits)
{
	memset(visits, 0, (size_t)p->n_stages * sizeof(*visits));
	for (int i = 0; i < p->n_mb * p->length; i++)
		visits[s->stage_of[s->path[i]]]++;
}

bool fixture_is_legal(const struct problem *p, const struct solution *s, const int *path)
{
	int last = 0;

	for (int h = 1; h < p->length; h++) {
		int a = s->stage_of[path[h]];
		int b = h + 1 < p->length ? s->stage_of[path[h + 1]] : -1;

		if (b == a - 1 && b > last)
			h++;
		else if (a <= last)
			return false;
		last = a;
	}
	return true;
}

int fixture_pinned_init(struct fixture_pinned *t, const struct cluster *c, int length,
			bool ascending)
{
	int rc;

	plan_request_init(&t->q);
	t->q.path_length = length;
	t->q.ascending = ascending;
	rc = problem_init(&t->p, c, &t->q, NULL);
	if (rc != 0)
		return rc;
	solution_init(&t->s, &t->p);
	for (int i = 0; i < t->p.n_nodes; i++)
		t->s.stage_of[i] = c->nodes[i].stage;
	solution_index(&t->s, &t->p);
	return 0;
}

void fixture_pinned_fini(struct fixture_pinned *t)
{
	solution_fini(&t->s);
	problem_fini(&t->p);
}
