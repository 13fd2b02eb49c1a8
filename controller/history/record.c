/* record.c - the run's memory: the store, RUN-DIR/plans, and JSON lines on stdout.
 *
 * What a run must not go on without (commits, plans) returns an error; what is told for people and tools is logged
 * when it cannot be written. A commit is one transaction: its routes, the order in which each node counted, and the
 * sums; tasks follow, and the moment last.
 */
#include "controller/history/record.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "controller/controller.h"
#include "controller/history/run_state.h"
#include "controller/members/member.h"
#include "controller/operator/journal.h"
#include "model/hash.h"

/* ---- JSON lines ---- */

static void put_event(struct controller *c, json_t *o)
{
	if (o && c->jsonl) {
		json_object_set_new(o, "at_s",
				    json_real((double)(c->now_us - c->started_us) * 1e-6));
		json_dumpf(o, c->jsonl, JSON_COMPACT | JSON_REAL_PRECISION(9));
		fputc('\n', c->jsonl);
		fflush(c->jsonl);
	}
	json_decref(o);
}

void record_iteration(struct controller *c, const struct msg_see_iteration *s)
{
	json_int_t tasks = c->progress.ended + c->progress.voided, again = tasks;

	for (uint32_t i = 0; i < c->routes.n; i++)
		again -= 2 * c->routes.microbatches[i].route.n_hops + 1;
	put_event(c, json_pack("{s:s, s:I, s:f, s:f, s:f, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, "
			 "s:i, s:I, s:I, s:I}",
			 "event", "iteration", "n", (json_int_t)s->iteration, "loss",
			 (double)s->loss, "iteration_s", (double)s->iteration_s, "predicted_s",
			 (double)s->predicted_s, "collisions", (int)s->collisions,
			 "nodes_alive", (int)s->alive, "path_length", (int)s->path_length,
			 "collision_wait_s", (double)s->wait_s, "sync_s", (double)s->sync_s,
			 "predicted_sync_s", (double)s->predicted_sync_s, "real_s",
			 (double)s->real_s, "tokens_per_s", (double)s->tokens_per_s, "rerun",
			 (int)s->rerun, "epoch", (json_int_t)s->epoch, "tasks", tasks,
			 "tasks_again", again > 0 ? again : 0));
}

/* ---- the curves, kept for consoles ---- */

void record_keep(struct controller *c, const struct msg_see_iteration *see)
{
	struct curves *v = &c->curves;

	v->n_history = (uint32_t)array_keep_newest(v->history, v->n_history, KEPT_CURVE, sizeof(*v->history));
	if (array_grow(&v->history, &v->room_history, v->n_history + 1, sizeof(*v->history)))
		v->history[v->n_history++] = *see;
}

void record_keep_validation(struct controller *c, const struct msg_see_validation *see)
{
	struct curves *v = &c->curves;

	v->n_validations =
		(uint32_t)array_keep_newest(v->validations, v->n_validations, KEPT_CURVE, sizeof(*v->validations));
	if (array_grow(&v->validations, &v->room_validations, v->n_validations + 1, sizeof(*v->validations)))
		v->validations[v->n_validations++] = *see;
}

void record_validation(struct controller *c, const struct msg_see_validation *v)
{
	struct store_validation sv = { v->iteration, (double)v->loss, clock_wall_us() };
	struct error err = { "" };

	if (store_validation(c->store, &sv, &err) != 0)
		log_line(&c->log, LOG_ERROR, "%s", err.text);
	record_keep_validation(c, v);
	put_event(c, json_pack("{s:s, s:I, s:f}", "event", "validation", "n",
			 (json_int_t)v->iteration, "loss", (double)v->loss));
}

/* Words that are NULL are empty. */
static void record_moment(struct controller *c, struct store_moment *m)
{
	struct error err = { "" };

	m->word = m->word ? m->word : "";
	m->text = m->text ? m->text : "";
	m->device = m->device ? m->device : "";
	m->host = m->host ? m->host : "";
	m->iteration = c->iteration;
	m->at_us = c->now_us;
	m->wall_us = clock_wall_us();
	if (c->store && store_moment(c->store, m, &err) != 0)
		log_line(&c->log, LOG_ERROR, "%s", err.text);
}

void record_phase(struct controller *c)
{
	struct store_moment m = { .kind = "phase", .node = -1, .stage = -1, .word = phase_name(c->phase) };

	record_moment(c, &m);
}

void record_compute(struct controller *c, uint16_t node)
{
	const struct cluster_node *n = &c->cluster->nodes[node];
	struct store_moment m = { .kind = "compute", .node = node, .stage = -1, .forward_s = n->forward_s,
				  .backward_s = n->backward_s, .loss_s = n->loss_s };

	record_moment(c, &m);
}

void record_link(struct controller *c, uint16_t from, uint16_t to)
{
	struct store_moment m = { .kind = "link", .node = from, .stage = -1, .value = to,
				  .forward_s = c->cluster->delay_s[from * c->cluster->n_nodes + to] };

	record_moment(c, &m);
}

void record_cut(struct controller *c, const struct link_failure *k)
{
	put_event(c, json_pack("{s:s, s:i, s:i, s:s, s:f, s:f, s:I}", "event", "link", "from", (int)k->from, "to",
			 (int)k->to, "state", k->active ? "cut" : "back", "quiet_s", k->quiet_s,
			 "expected_s", k->expected_s, "iteration", (json_int_t)c->committed));
}

void record_disk(struct controller *c)
{
	put_event(c, json_pack("{s:s, s:s, s:I}", "event", "disk", "state", c->disk.full ? "full" : "room",
			 "iteration", (json_int_t)c->committed));
}

void record_node(struct controller *c, const struct member *m)
{
	struct store_moment moment = {
		.kind = "node",
		.node = m->id,
		.stage = member_stage(c, m),
		.value = m->hello.pid,
		.word = node_state_name(m->state),
		.text = m->why,
		.forward_s = m->measured_forward_s,
		.backward_s = m->measured_backward_s,
		.loss_s = m->measured_loss_s,
		.device = m->hello.device,
		.host = m->hello.host,
	};

	record_moment(c, &moment);
	put_event(c, json_pack("{s:s, s:i, s:i, s:s, s:s, s:I}", "event", "node", "node", (int)m->id,
			 "stage", member_stage(c, m), "state", node_state_name(m->state), "why",
			 m->why, "iteration", (json_int_t)c->committed));
}

void record_recovery(struct controller *c, const char *step, int node, int64_t value,
		     int64_t at_us)
{
	struct store_moment m = { .kind = "recovery", .node = node, .stage = -1, .value = value, .word = step };

	record_moment(c, &m);
	put_event(c, json_pack("{s:s, s:s, s:i, s:I, s:f}", "event", "recovery", "step", step, "node",
			 node, "value", (json_int_t)value, "step_at_s",
			 (double)(at_us - c->started_us) * 1e-6));
}

void record_fault(struct controller *c, const struct fault *f)
{
	struct store_fault sf = { .id = f->id,
				  .iteration = c->iteration,
				  .kind = fault_name(f->kind),
				  .node = f->node,
				  .peer = f->peer,
				  .factor = (double)f->factor,
				  .ttl_ms = f->ttl_ms,
				  .started_wall_us = f->started_wall_us,
				  .ended_wall_us = f->active ? 0 : clock_wall_us() };
	struct error err = { "" };

	if (store_fault(c->store, &sf, &err) != 0)
		log_line(&c->log, LOG_ERROR, "%s", err.text);
	put_event(c, json_pack("{s:s, s:i, s:s, s:i, s:i, s:b}", "event", "fault", "fault",
			 (int)f->id, "kind", fault_name(f->kind), "node", f->node, "peer",
			 f->peer, "active", f->active));
}

/* ---- plans ---- */

enum { PLAN_FILES = 100 };

static void plan_path(const struct controller *c, uint64_t epoch, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/plans/%04llu.json", c->options.run_dir,
		 (unsigned long long)epoch);
}

/* For other tools, and the newest only: the store has them all, and goes on without these. */
void record_plan_file(struct controller *c, uint64_t epoch, const char *text)
{
	char path[PATH_MAX];
	struct error err;

	if (epoch > PLAN_FILES) {
		plan_path(c, epoch - PLAN_FILES, path);
		unlink(path);
	}
	plan_path(c, epoch, path);
	if (access(path, F_OK) != 0 && file_write(path, text, strlen(text), 0600, &err) != 0)
		note(c, NOTE_WARNING, -1, 0, "a plan's file is missing: %.150s", err.text);
}

/* Durable first, then its file, which other tools read, then the event. */
int record_plan(struct controller *c, const struct planned *p, struct error *err)
{
	char path[PATH_MAX], *text = plan_format(p->plan);
	struct store_plan sp = { p->epoch,
				 p->iteration,
				 p->reason,
				 (uint32_t)p->plan->path_length,
				 text,
				 p->plan->predicted.iteration_s,
				 plan_visible_sync_s(p->plan) };
	struct store_moment moment = { .kind = "plan", .node = -1, .stage = -1, .value = (int64_t)p->epoch };
	int rc;

	if (!text)
		return error_set(err, -ENOMEM, "out of memory");
	rc = store_plan(c->store, &sp, err);
	record_plan_file(c, p->epoch, text);
	plan_path(c, p->epoch, path);
	record_moment(c, &moment);
	if (c->jsonl)
		put_event(c, json_pack("{s:s, s:I, s:I, s:s, s:s?, s:i, s:f, s:f, s:f, s:s, s:o}", "event",
				 "plan", "epoch", (json_int_t)p->epoch, "iteration",
				 (json_int_t)p->iteration, "reason", p->reason, "algorithm",
				 p->plan->search.algorithm, "path_length",
				 p->plan->path_length, "predicted_s",
				 p->plan->predicted.iteration_s, "predicted_sync_s",
				 plan_visible_sync_s(p->plan), "elapsed_s", p->elapsed_s, "file",
				 path, "plan", json_loads(text, 0, NULL)));
	free(text);
	return rc;
}

/* ---- the run itself ---- */

static char *optimizer_json(const struct recipe *r)
{
	json_t *o =
		json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:i, s:f}", "kind", "adamw",
			  "lr", (double)r->adamw.lr, "beta1", (double)r->adamw.beta1, "beta2",
			  (double)r->adamw.beta2, "eps", (double)r->adamw.eps, "weight_decay",
			  (double)r->adamw.weight_decay, "clip", (double)r->clip, "warmup",
			  (int)r->warmup, "iterations", (int)r->iterations, "final_lr",
			  (double)r->final_lr);
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

	json_decref(o);
	return text;
}

/* For other tools; all of it stands in the store too. */
int record_folder(struct controller *c, struct error *err)
{
	const char *cluster = store_run_of(c->store)->cluster;
	char path[PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s/plans", c->options.run_dir);
	rc = file_make_folder(path, err);
	if (rc != 0)
		return rc;
	snprintf(path, sizeof(path), "%s/cluster.json", c->options.run_dir);
	return file_write(path, cluster, strlen(cluster), 0600, err);
}

int record_cluster(struct controller *c, struct error *err)
{
	char *text = link_table_json(c->links, c->cluster);
	int rc = text ? store_cluster(c->store, text, err) : error_set(err, -ENOMEM, "out of memory");

	free(text);
	return rc ? rc : record_folder(c, err);
}

/* All that verify and a successor need of a run before its first iteration. */
int record_begin(struct controller *c, struct error *err)
{
	char *cluster = cluster_format(c->cluster), *optimizer = optimizer_json(&c->recipe);
	char *options = resume_options(c);
	struct store_run run = {
		.name = c->options.name,
		.version = SKIPPIPE_VERSION,
		.model = c->model_json,
		.cluster = cluster,
		.optimizer = optimizer,
		.id = c->run,
		.seed = c->options.seed,
		.hash = HASH_NAME,
		.corpus_hash = 0,
		.started_wall_us = c->started_wall_us,
		.batch = c->recipe.batch,
		.sequence = c->recipe.sequence,
		.n_shards = c->n_shards,
		.per_shard = c->per_shard,
		.threads = c->options.threads,
		.bf16 = c->options.bf16,
		.n_corpus = c->options.n_corpus,
		.corpus = c->options.corpus,
		.options = options,
	};
	int rc = -ENOMEM;

	if (!cluster || !optimizer || !options)
		error_set(err, rc, "out of memory");
	else
		rc = store_create(&c->store, c->options.run_dir, &run, err);
	if (rc == 0)
		rc = record_folder(c, err);
	free(cluster);
	free(optimizer);
	free(options);
	return rc;
}

/* ---- commits ---- */

struct audit {
	struct store_route *routes;
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

static void audit_orders(const struct controller *c, struct audit *a)
{
	size_t at = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct counts *k = &c->routes.counts[i];

		if (!c->members[i].in_sum || k->n == 0)
			continue;
		a->orders[a->n_orders++] =
			(struct store_order){ (uint16_t)i, c->members[i].sum_stage, k->n, a->counted + at,
					      c->members[i].hello.device };
		for (uint32_t n = 0; n < k->n; n++)
			a->counted[at++] = (struct store_counted){
				k->list[n].microbatch, k->list[n].kind == TASK_LOSS ? 'L' : 'B'
			};
	}
}

static void audit_reductions(const struct controller *c, struct audit *a)
{
	size_t at = 0;

	for (int s = 0; s < c->cluster->n_stages; s++) {
		struct store_reduction *r = &a->reductions[a->n_reductions++];

		*r = (struct store_reduction){ (uint8_t)s, 0, a->nodes + at };
		for (uint32_t i = 0; i < c->n_members; i++)
			if (c->members[i].in_sum && c->members[i].sum_stage == s) {
				a->nodes[at++] = (uint16_t)i;
				r->n_nodes++;
			}
	}
}

static int audit_init(const struct controller *c, struct audit *a)
{
	size_t counted = 0;

	for (uint32_t i = 0; i < c->n_members; i++)
		counted += c->routes.counts[i].n;
	*a = (struct audit){
		.routes = calloc(c->routes.n, sizeof(*a->routes)),
		.orders = calloc(c->n_members, sizeof(*a->orders)),
		.counted = calloc(counted + 1, sizeof(*a->counted)),
		.reductions = calloc((size_t)c->cluster->n_stages, sizeof(*a->reductions)),
		.nodes = calloc(c->n_members, sizeof(*a->nodes)),
	};
	if (!a->routes || !a->orders || !a->counted || !a->reductions || !a->nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->routes.n; i++) {
		const struct msg_route *r = &c->routes.microbatches[i].route;

		a->routes[i] =
			(struct store_route){ r->microbatch, r->shard, r->wave,  r->attempt,
					      r->n_hops,     r->nodes, r->stages };
	}
	audit_orders(c, a);
	audit_reductions(c, a);
	return 0;
}

/* A task's start and end, joined; arrivals and waits come with the start. */
static void record_tasks(struct controller *c)
{
	const struct progress *p = &c->progress;
	struct store_task *tasks = calloc(p->n_events + 1, sizeof(*tasks));
	int64_t *open = malloc(c->n_members * sizeof(*open));
	struct error err = { "" };
	size_t n = 0;

	for (uint32_t i = 0; open && i < c->n_members; i++)
		open[i] = -1;
	for (uint32_t i = 0; tasks && open && i < p->n_events; i++) {
		const struct msg_task_event *e = &p->events[i];

		if (e->type == WORK_STARTS) {
			tasks[n] = (struct store_task){
				.iteration = c->iteration,
				.microbatch = e->microbatch,
				.attempt = e->attempt,
				.node = e->node,
				.kind = *task_kind_name((enum task_kind)e->kind),
				.waited_for =
					e->blocker == UINT32_MAX ? -1 : (int64_t)e->blocker,
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
	if (tasks && n > 0 && store_tasks(c->store, tasks, n, &err) != 0)
		log_line(&c->log, LOG_ERROR, "%s", err.text);
	free(tasks);
	free(open);
}

static void thin_tasks(struct controller *c)
{
	struct error err = { "" };

	if (c->iteration > c->options.keep_tasks &&
	    store_thin(c->store, c->iteration - c->options.keep_tasks, &err) != 0)
		log_line(&c->log, LOG_ERROR, "%s", err.text);
}

int record_commit(struct controller *c, const struct msg_commit *m, double sum_squares,
		  const struct msg_see_iteration *see, struct error *err)
{
	struct audit a;
	int rc = audit_init(c, &a);
	struct store_commit sc = {
		.iteration = m->iteration,
		.epoch = c->epoch,
		.attempt = m->attempt,
		.scale = m->scale,
		.lr = m->lr,
		.beta1 = m->beta1,
		.beta2 = m->beta2,
		.eps = m->eps,
		.weight_decay = m->weight_decay,
		.loss = see->loss,
		.gradient_norm = see->gradient_norm,
		.clip = c->recipe.clip,
		.iteration_s = see->iteration_s,
		.predicted_s = see->predicted_s,
		.sync_s = see->sync_s,
		.real_s = see->real_s,
		.collisions = see->collisions,
		.wait_s = see->wait_s,
		.alive = see->alive,
		.path_length = see->path_length,
		.rerun = see->rerun,
		.wall_us = clock_wall_us(),
		.n_routes = c->routes.n,
		.n_orders = a.n_orders,
		.n_reductions = a.n_reductions,
		.routes = a.routes,
		.orders = a.orders,
		.reductions = a.reductions,
	};
	struct store_moment moment = { .kind = "commit", .node = -1, .stage = -1, .value = (int64_t)(c->progress.busy_s * 1e6) };

	(void)sum_squares;
	if (rc != 0)
		error_set(err, rc, "out of memory");
	else
		rc = store_commit(c->store, &sc, err);
	audit_fini(&a);
	if (rc != 0)
		return rc;
	record_keep(c, see);
	c->last_commit = *m;
	record_tasks(c);
	record_moment(c, &moment); /* last: whoever reads it finds the tasks */
	thin_tasks(c);
	put_event(c, json_pack("{s:s, s:I, s:I, s:i, s:f, s:f}", "event", "commit", "n",
			 (json_int_t)m->iteration, "epoch", (json_int_t)c->epoch, "attempt",
			 (int)m->attempt, "scale", (double)m->scale, "lr", (double)m->lr));
	return 0;
}

void record_hash(struct controller *c, const struct member *m, uint8_t stage,
		 uint64_t iteration, uint64_t hash)
{
	struct store_hash h = { iteration, hash, m->id, stage };
	struct error err = { "" };

	if (store_hashes(c->store, &h, 1, &err) != 0)
		log_line(&c->log, LOG_ERROR, "%s", err.text);
}

struct sought {
	uint64_t hash;
	uint8_t stage;
	bool found;
};

static int seek_hash(void *context, const struct store_hash *h)
{
	struct sought *s = context;

	s->found = s->found || (h->stage == s->stage && h->hash == s->hash);
	return 0;
}

bool record_has_hash(const struct controller *c, uint8_t stage, uint64_t iteration, uint64_t hash)
{
	struct sought s = { .hash = hash, .stage = stage };
	struct error err = { "" };

	if (store_each_hash(c->store, iteration, seek_hash, &s, &err) != 0)
		return false;
	return s.found;
}

void record_forget_hash(struct controller *c, const struct member *m, uint8_t stage,
			uint64_t iteration, uint64_t hash)
{
	struct store_hash h = { iteration, hash, m->id, stage };
	struct error err = { "" };

	if (store_forget_hash(c->store, &h, &err) != 0)
		log_line(&c->log, LOG_ERROR, "%s", err.text);
}
