/* iteration_record.c - writes plans, iterations and commits to the record.
 *
 * The run depends on plans and commits, so functions that write them return an error. A commit is
 * one transaction, which holds the routes, the order in which each node accumulated its gradients,
 * and the sums. The rows of the tasks follow. The row that gives the commit's time is the last. */
#include "controller/iteration/iteration_record.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/alloc.h"
#include "controller/iteration/iteration.h"
#include "controller/members/member.h"
#include "controller/members/member_record.h"
#include "controller/run/record.h"

/* Returns the loss as JSON. A rehearsal has no loss. */
static json_t *pack_loss(float loss)
{
	return isnan(loss) ? json_null() : json_real((double)loss);
}

void record_iteration(struct iteration *it, const struct msg_see_iteration *s)
{
	json_int_t tasks = it->progress.ended + it->progress.voided, repeated = tasks;
	json_t *o;

	for (uint32_t i = 0; i < it->routes.n; i++)
		repeated -= 2 * it->routes.microbatches[i].route.n_hops + 1;
	o = json_pack("{s:s, s:I, s:o, s:f, s:f, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, "
		      "s:i, s:I, s:I, s:I, s:s, s:s}",
		      "event", "iteration", "n", (json_int_t)s->iteration, "loss",
		      pack_loss(s->loss), "iteration_s", (double)s->iteration_s, "predicted_s",
		      (double)s->predicted_s, "collisions", (int)s->collisions, "nodes_alive",
		      (int)s->alive, "path_length", (int)s->path_length, "collision_wait_s",
		      (double)s->wait_s, "sync_s", (double)s->sync_s, "predicted_sync_s",
		      (double)s->predicted_sync_s, "real_s", (double)s->real_s, "tokens_per_s",
		      (double)s->tokens_per_s, "rerun", (int)s->rerun, "epoch",
		      (json_int_t)s->epoch, "tasks", tasks, "tasks_again",
		      repeated > 0 ? repeated : 0, "wire",
		      tensor_format_name((enum tensor_format)s->wire), "sum_wire",
		      tensor_format_name((enum tensor_format)s->sum_wire));
	if (s->skip_share > 0)
		json_object_set_new(o, "skip_share", json_integer(s->skip_share));
	if (run_is_rehearsal(it->run))
		json_object_set_new(o, "rehearsal", json_true());
	record_event(it->run, o);
}

/* Writes the event `plan` last, so that a tool that reads this event finds the plan's row and
 * file. */
int record_plan(struct run *run, const struct planned *p, struct error *err)
{
	char path[PATH_MAX], *text = plan_format(p->plan);
	struct store_plan sp = { p->epoch,
				 p->iteration,
				 p->reason,
				 (uint32_t)p->plan->path_length,
				 text,
				 p->plan->predicted.iteration_s,
				 plan_visible_sync_s(p->plan) };
	struct store_moment moment = {
		.kind = "plan", .node = -1, .stage = -1, .value = (int64_t)p->epoch
	};
	int rc;

	if (!text)
		return error_set(err, -ENOMEM, "out of memory");
	rc = store_plan(run->record.store, &sp, err);
	record_plan_file(run, p->epoch, text);
	record_plan_path(run, p->epoch, path);
	record_moment(run, &moment);
	if (run->record.jsonl)
		record_event(run,
			     json_pack("{s:s, s:I, s:I, s:s, s:s?, s:i, s:f, s:f, s:f, s:s, s:o}",
				       "event", "plan", "epoch", (json_int_t)p->epoch, "iteration",
				       (json_int_t)p->iteration, "reason", p->reason, "algorithm",
				       p->plan->search.algorithm, "path_length",
				       p->plan->path_length, "predicted_s",
				       p->plan->predicted.iteration_s, "predicted_sync_s",
				       plan_visible_sync_s(p->plan), "elapsed_s", p->elapsed_s,
				       "file", path, "plan", json_loads(text, 0, NULL)));
	free(text);
	return rc;
}

/* ---- commits ---- */

/* The rows from which `skippipe verify` can repeat a commit's sums in their original order. */
struct audit {
	struct route *routes;
	struct store_order *orders;
	struct store_counted *counted;
	struct store_reduction *reductions;
	uint16_t *nodes;
	size_t n_orders, n_reductions;
};

static void audit_fini(struct audit *a)
{
	free(a->routes);
	free(a->orders);
	free(a->counted);
	free(a->reductions);
	free(a->nodes);
}

static void audit_orders(const struct iteration *it, struct audit *a)
{
	size_t at = 0;

	for (uint32_t i = 0; i < it->members->n; i++) {
		const struct counts *k = &it->routes.counts[i];

		if (!it->members->list[i].sum.counts || k->n == 0)
			continue;
		a->orders[a->n_orders++] =
			(struct store_order){ (uint16_t)i, it->members->list[i].sum.stage, k->n,
					      a->counted + at, it->members->list[i].hello.device };
		for (uint32_t n = 0; n < k->n; n++)
			a->counted[at++] =
				(struct store_counted){ k->list[n].microbatch,
							k->list[n].kind == TASK_LOSS ? 'L' : 'B' };
	}
}

static void audit_reductions(const struct members *members, struct audit *a)
{
	size_t at = 0;

	for (int s = 0; s < members->run->cluster->n_stages; s++) {
		struct store_reduction *r = &a->reductions[a->n_reductions++];

		*r = (struct store_reduction){ (uint8_t)s, 0, a->nodes + at };
		for (uint32_t i = 0; i < members->n; i++)
			if (members->list[i].sum.counts && members->list[i].sum.stage == s) {
				a->nodes[at++] = (uint16_t)i;
				r->n_nodes++;
			}
	}
}

static void audit_init(const struct iteration *it, struct audit *a)
{
	size_t counted = 0;

	for (uint32_t i = 0; i < it->members->n; i++)
		counted += it->routes.counts[i].n;
	*a = (struct audit){
		.routes = alloc_array(it->routes.n, sizeof(*a->routes)),
		.orders = alloc_array(it->members->n, sizeof(*a->orders)),
		.counted = alloc_array(counted, sizeof(*a->counted)),
		.reductions =
			alloc_array((size_t)it->run->cluster->n_stages, sizeof(*a->reductions)),
		.nodes = alloc_array(it->members->n, sizeof(*a->nodes)),
	};
	for (uint32_t i = 0; i < it->routes.n; i++)
		a->routes[i] = it->routes.microbatches[i].route;
	audit_orders(it, a);
	audit_reductions(it->members, a);
}

/* Writes one row for each task, from its start event and its end event. The start event has the
 * times of arrival and waiting. */
static void record_tasks(struct iteration *it)
{
	const struct progress *p = &it->progress;
	struct store_task *tasks = alloc_array(p->n_events, sizeof(*tasks));
	int64_t *open = alloc_array(it->members->n, sizeof(*open));
	struct error err = { "" };
	size_t n = 0;

	for (uint32_t i = 0; i < it->members->n; i++)
		open[i] = -1;
	for (uint32_t i = 0; i < p->n_events; i++) {
		const struct msg_task_event *e = &p->events[i];

		if (e->type == WORK_STARTS) {
			tasks[n] = (struct store_task){
				.iteration = it->run->iteration,
				.microbatch = e->microbatch,
				.attempt = e->attempt,
				.node = e->node,
				.kind = *task_kind_name((enum task_kind)e->kind),
				.waited_for = e->blocker == UINT32_MAX ? -1 : (int64_t)e->blocker,
				.arrived_us = e->arrived_us,
				.start_us = e->at_us,
				.end_us = e->at_us,
			};
			open[e->node] = (int64_t)n++;
		} else if (e->type == WORK_ENDS && open[e->node] >= 0) {
			tasks[open[e->node]].end_us = e->at_us;
			tasks[open[e->node]].counted = e->counted;
			open[e->node] = -1;
		}
	}
	if (n > 0 && store_tasks(it->run->record.store, tasks, n, &err) != 0)
		log_line(&it->run->log, LOG_ERROR, "%s", err.text);
	free(tasks);
	free(open);
}

static void thin_tasks(struct run *run)
{
	struct error err = { "" };

	if (run->iteration > run->options.keep_tasks &&
	    store_thin(run->record.store, run->iteration - run->options.keep_tasks, &err) != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
}

static void add_totals(struct curve_totals *t, const struct msg_see_iteration *see)
{
	t->iterations++;
	t->collisions += see->collisions;
	t->rerun += see->rerun;
	t->wait_s += (double)see->wait_s;
}

int record_commit(struct iteration *it, const struct msg_commit *m,
		  const struct msg_see_iteration *see, struct error *err)
{
	struct audit a;
	int rc;

	audit_init(it, &a);
	struct store_commit sc = {
		.iteration = m->iteration,
		.epoch = it->run->epoch,
		.attempt = m->attempt,
		.scale = m->scale,
		.lr = m->lr,
		.beta1 = m->beta1,
		.beta2 = m->beta2,
		.eps = m->eps,
		.weight_decay = m->weight_decay,
		.stack_from = m->stack_from,
		.visits = m->visits,
		.formats = it->run->cluster->formats,
		.loss = see->loss,
		.gradient_norm = see->gradient_norm,
		.iteration_s = see->iteration_s,
		.predicted_s = see->predicted_s,
		.sync_s = see->sync_s,
		.real_s = see->real_s,
		.collisions = { see->collisions, (double)see->wait_s },
		.alive = see->alive,
		.path_length = see->path_length,
		.repeats = { see->rerun, it->run->training.skipped },
		.wall_us = see->wall_us,
		.n_routes = it->routes.n,
		.n_orders = a.n_orders,
		.n_reductions = a.n_reductions,
		.routes = a.routes,
		.orders = a.orders,
		.reductions = a.reductions,
	};
	struct store_moment moment = { .kind = "commit",
				       .node = -1,
				       .stage = -1,
				       .value = (int64_t)(it->progress.busy_s * 1e6) };

	rc = store_commit(it->run->record.store, &sc, err);
	audit_fini(&a);
	if (rc != 0)
		return rc;
	record_keep(it->run, see);
	add_totals(&it->run->record.curves.totals, see);
	it->run->last_commit = *m;
	record_tasks(it);
	record_gpus(it->members);
	/* The commit's time is written last, so that a tool that reads this time finds the tasks
	 * too */
	record_moment(it->run, &moment);
	thin_tasks(it->run);
	record_event(it->run, json_pack("{s:s, s:I, s:I, s:i, s:f, s:f}", "event", "commit", "n",
					(json_int_t)m->iteration, "epoch",
					(json_int_t)it->run->epoch, "attempt", (int)m->attempt,
					"scale", (double)m->scale, "lr", (double)m->lr));
	return 0;
}
