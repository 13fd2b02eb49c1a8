/* record.c - writes the record of the run: the store, RUN-DIR/plans, and JSON lines on stdout.
 *
 * A successor, replays and `skippipe verify` read this record. Functions that write what the run
 * depends on (commits, plans) return an error. All others only log a failure, because their rows
 * serve people and tools. A commit is one transaction: its routes, the order in which each node
 * accumulated its gradients, and the sums. The tasks follow, and the moment comes last. */
#include "controller/run/record.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/timestamp.h"
#include "controller/iteration/iteration.h"
#include "controller/members/member.h"
#include "controller/members/saved_state.h"
#include "controller/network/failed_links.h"
#include "controller/network/formats.h"
#include "controller/network/link_table.h"
#include "controller/run/gpu_record.h"
#include "controller/run/journal.h"
#include "model/hash.h"

/* Time between two records of GPUs' figures. They change every second, and serve people only. */
enum { GPUS_EVERY_US = 10000000 };

/* ---- JSON lines ---- */

static void put_event(struct run *run, json_t *o)
{
	char now[TIMESTAMP_SIZE];

	if (o && run->history.jsonl) {
		timestamp_text(clock_wall_us(), now);
		json_object_set_new(o, "time", json_string(now));
		json_object_set_new(o, "at_s",
				    json_real((double)(run->now_us - run->started.us) * 1e-6));
		json_dumpf(o, run->history.jsonl, JSON_COMPACT | JSON_REAL_PRECISION(9));
		fputc('\n', run->history.jsonl);
		fflush(run->history.jsonl);
	}
	json_decref(o);
}

/* A rehearsal has no loss. */
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
	put_event(it->run, o);
}

/* ---- curves for consoles ---- */

void record_keep(struct run *run, const struct msg_see_iteration *see)
{
	struct curves *v = &run->history.curves;

	v->n_history = (uint32_t)array_keep_newest(v->history, v->n_history, KEPT_CURVE,
						   sizeof(*v->history));
	array_reserve(&v->history, &v->room_history, v->n_history + 1, sizeof(*v->history));
	v->history[v->n_history++] = *see;
}

void record_keep_validation(struct run *run, const struct msg_see_validation *see)
{
	struct curves *v = &run->history.curves;

	v->n_validations = (uint32_t)array_keep_newest(v->validations, v->n_validations, KEPT_CURVE,
						       sizeof(*v->validations));
	array_reserve(&v->validations, &v->room_validations, v->n_validations + 1,
		      sizeof(*v->validations));
	v->validations[v->n_validations++] = *see;
}

void record_validation(struct run *run, const struct msg_see_validation *v)
{
	struct store_validation sv = { v->iteration, (double)v->loss, clock_wall_us() };
	struct error err = { "" };

	if (store_validation(run->history.store, &sv, &err) != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
	record_keep_validation(run, v);
	put_event(run, json_pack("{s:s, s:I, s:f}", "event", "validation", "n",
				 (json_int_t)v->iteration, "loss", (double)v->loss));
}

/* Texts that are NULL are written as empty. */
static void record_moment(struct run *run, struct store_moment *m)
{
	struct error err = { "" };

	m->word = m->word ? m->word : "";
	m->text = m->text ? m->text : "";
	m->device = m->device ? m->device : "";
	m->host = m->host ? m->host : "";
	m->iteration = run->iteration;
	m->at_us = run->now_us;
	m->wall_us = clock_wall_us();
	if (run->history.store && store_moment(run->history.store, m, &err) != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
}

void record_phase(struct run *run)
{
	struct store_moment m = {
		.kind = "phase", .node = -1, .stage = -1, .word = phase_name(run->phase)
	};

	record_moment(run, &m);
}

void record_compute(struct run *run, uint16_t node)
{
	const struct cluster_node *n = &run->cluster->nodes[node];
	struct store_moment m = { .kind = "compute",
				  .node = node,
				  .stage = -1,
				  .forward_s = n->forward_s,
				  .backward_s = n->backward_s,
				  .loss_s = n->loss_s };

	record_moment(run, &m);
}

void record_link(struct run *run, uint16_t from, uint16_t to)
{
	struct store_moment m = {
		.kind = "link",
		.node = from,
		.stage = -1,
		.value = to,
		.forward_s = run->cluster->delay_s[from * run->cluster->n_nodes + to]
	};

	record_moment(run, &m);
}

void record_cut(struct run *run, const struct link_failure *k)
{
	put_event(run, json_pack("{s:s, s:i, s:i, s:s, s:f, s:f, s:I}", "event", "link", "from",
				 (int)k->from, "to", (int)k->to, "state",
				 k->active ? "cut" : "back", "quiet_s", k->quiet_s, "expected_s",
				 k->expected_s, "iteration", (json_int_t)run->committed));
}

void record_disk(struct run *run)
{
	static const char *const states[] = { [DISK_READY] = "room",
					      [DISK_FULL] = "full",
					      [DISK_LOCKED] = "locked" };

	put_event(run, json_pack("{s:s, s:s, s:I}", "event", "disk", "state",
				 states[run->disk.state], "iteration",
				 (json_int_t)run->committed));
}

void record_node(struct run *run, const struct member *m)
{
	struct store_moment moment = {
		.kind = "node",
		.node = m->id,
		.stage = member_stage(run, m),
		.value = m->hello.pid,
		.word = node_state_name(member_shown(m)),
		.text = m->why,
		.forward_s = m->compute.forward_s,
		.backward_s = m->compute.backward_s,
		.loss_s = m->compute.loss_s,
		.device = m->hello.device,
		.host = m->hello.host,
	};

	record_moment(run, &moment);
	put_event(run, json_pack("{s:s, s:i, s:i, s:s, s:s, s:I}", "event", "node", "node",
				 (int)m->id, "stage", member_stage(run, m), "state",
				 node_state_name(member_shown(m)), "why", m->why, "iteration",
				 (json_int_t)run->committed));
}

/* Records the figures of all GPUs, if the last ones are old. */
static void record_gpus(struct members *members)
{
	struct run *run = members->run;

	if (run->now_us - run->history.gpus_us < GPUS_EVERY_US)
		return;
	run->history.gpus_us = run->now_us;
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];
		json_t *figures, *event;
		char *text;

		if (!m->beat.gpu.known || !member_alive(m))
			continue;
		figures = gpu_record_pack(&m->beat.gpu);
		text = json_dumps(figures, JSON_COMPACT);
		record_moment(run, &(struct store_moment){ .kind = "gpu",
							   .node = m->id,
							   .stage = -1,
							   .text = text });
		event = json_pack("{s:s, s:i, s:I}", "event", "gpu", "node", (int)m->id,
				  "iteration", (json_int_t)run->iteration);
		json_object_update(event, figures);
		put_event(run, event);
		json_decref(figures);
		free(text);
	}
}

void record_recovery(struct run *run, const char *step, int node, int64_t value, int64_t at_us)
{
	struct store_moment m = {
		.kind = "recovery", .node = node, .stage = -1, .value = value, .word = step
	};

	record_moment(run, &m);
	put_event(run, json_pack("{s:s, s:s, s:i, s:I, s:f}", "event", "recovery", "step", step,
				 "node", node, "value", (json_int_t)value, "step_at_s",
				 (double)(at_us - run->started.us) * 1e-6));
}

void record_fault(struct run *run, const struct fault *f)
{
	struct store_fault sf = { .id = f->id,
				  .iteration = run->iteration,
				  .kind = fault_name(f->kind),
				  .node = f->node,
				  .peer = f->peer,
				  .factor = (double)f->factor,
				  .ttl_ms = f->ttl_ms,
				  .started_wall_us = f->started_wall_us,
				  .ended_wall_us = f->active ? 0 : clock_wall_us() };
	struct error err = { "" };

	if (store_fault(run->history.store, &sf, &err) != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
	put_event(run, json_pack("{s:s, s:i, s:s, s:i, s:i, s:b}", "event", "fault", "fault",
				 (int)f->id, "kind", fault_name(f->kind), "node", f->node, "peer",
				 f->peer, "active", f->active));
}

void record_scripted(struct run *run, uint32_t number, int status, const char *text)
{
	put_event(run, json_pack("{s:s, s:i, s:I, s:b, s:s}", "event", "act", "act", (int)number,
				 "iteration", (json_int_t)run->committed + 1, "done", status == 0,
				 "text", text));
}

/* ---- plans ---- */

enum { PLAN_FILES = 100 };

static void plan_path(const struct run *run, uint64_t epoch, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/plans/%04llu.json", run->options.run_dir,
		 (unsigned long long)epoch);
}

/* Keeps files of the newest plans only, because they are for other tools: the store has all plans.
 * Therefore a failure is only a warning. */
void record_plan_file(struct run *run, uint64_t epoch, const char *text)
{
	char path[PATH_MAX];
	struct error err;

	if (epoch > PLAN_FILES) {
		plan_path(run, epoch - PLAN_FILES, path);
		unlink(path);
	}
	plan_path(run, epoch, path);
	if (access(path, F_OK) != 0 && file_write(path, text, strlen(text), FILE_RESULT, &err) != 0)
		note(run, NOTE_WARNING, -1, 0, "cannot write a plan's file: %.150s", err.text);
}

/* The event comes last: a tool that reads the event finds the plan's row and file. */
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
	rc = store_plan(run->history.store, &sp, err);
	record_plan_file(run, p->epoch, text);
	plan_path(run, p->epoch, path);
	record_moment(run, &moment);
	if (run->history.jsonl)
		put_event(run,
			  json_pack("{s:s, s:I, s:I, s:s, s:s?, s:i, s:f, s:f, s:f, s:s, s:o}",
				    "event", "plan", "epoch", (json_int_t)p->epoch, "iteration",
				    (json_int_t)p->iteration, "reason", p->reason, "algorithm",
				    p->plan->search.algorithm, "path_length", p->plan->path_length,
				    "predicted_s", p->plan->predicted.iteration_s,
				    "predicted_sync_s", plan_visible_sync_s(p->plan), "elapsed_s",
				    p->elapsed_s, "file", path, "plan", json_loads(text, 0, NULL)));
	free(text);
	return rc;
}

/* ---- the run itself ---- */

static char *optimizer_json(const struct recipe *r)
{
	json_t *o = json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:i, s:f, s:s, s:f}",
			      "kind", "adamw", "lr", (double)r->adamw.lr, "beta1",
			      (double)r->adamw.beta1, "beta2", (double)r->adamw.beta2, "eps",
			      (double)r->adamw.eps, "weight_decay", (double)r->adamw.weight_decay,
			      "clip", (double)r->clip, "warmup", (int)r->warmup, "iterations",
			      (int)r->iterations, "final_lr", (double)r->final_lr, "schedule",
			      recipe_schedule_name(r), "decay", (double)r->decay);
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

	json_decref(o);
	return text;
}

/* These files are for other tools. The store holds their contents too. */
int record_folder(struct run *run, struct error *err)
{
	const char *cluster = store_run_of(run->history.store)->cluster;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/plans", run->options.run_dir);
	file_make_folder(path, NULL); /* record_plan_file warns if there is no folder */
	snprintf(path, sizeof(path), "%s/cluster.json", run->options.run_dir);
	return file_write(path, cluster, strlen(cluster), FILE_RESULT, err);
}

/* The record has the bytes of the formats with which the run began. */
int record_cluster(struct members *members, struct error *err)
{
	struct link_table table = *members->links;
	char *text;
	int rc;

	formats_set_bytes(&table, &members->run->training, &members->run->options.training.formats);
	text = link_table_json(&table, members->run->cluster);
	rc = text ? store_cluster(members->run->history.store, text, err)
		  : error_set(err, -ENOMEM, "out of memory");

	free(text);
	return rc ? rc : record_folder(members->run, err);
}

static const char emulated_links[] = "emulated_links"; /* key in the record */

int record_emulated_links(struct members *members, struct error *err)
{
	char *text;
	int rc;

	if (!members->emulated)
		return 0;
	text = link_table_json(members->emulated, members->run->cluster);
	rc = text ? store_set(members->run->history.store, emulated_links, text, err)
		  : error_set(err, -ENOMEM, "out of memory");
	free(text);
	return rc;
}

struct link_table *record_emulated_links_again(const struct members *members)
{
	struct link_table *t;
	struct error ignored;
	char *text;

	if (store_get(members->run->history.store, emulated_links, &text, &ignored) != 0)
		return NULL;
	t = link_table_parse(text);
	free(text);
	if (!t || t->n == members->n)
		return t;
	link_table_free(t);
	return NULL;
}

/* Checks a folder for a new run before the record is created, because a record that is there makes
 * the next start fail. A cluster.json without a record is the operator's. */
static int check_folder(const struct run *run, struct error *err)
{
	const char *folder = run->options.run_dir;
	char path[PATH_MAX];

	if (!file_exists(folder, "run.db") && file_exists(folder, "cluster.json"))
		return error_set(err, -EEXIST,
				 "%s/cluster.json: exists, and the run would replace it: give "
				 "another --run-dir",
				 folder);
	snprintf(path, sizeof(path), "%s/plans", folder);
	return file_make_writable_folder(path, err);
}

/* Writes the run's row before the first iteration. `skippipe verify` and a successor need it. */
int record_begin(struct run *run, struct error *err)
{
	char *cluster = cluster_format(run->cluster),
	     *optimizer = optimizer_json(&run->training.recipe);
	char *options = resume_options(run);
	char *origin = run->training.origin.folder[0] ? origin_print(&run->training.origin) : NULL;
	struct store_run row = {
		.name = run->options.name,
		.version = SKIPPIPE_VERSION,
		.model = run->training.model_json,
		.cluster = cluster,
		.optimizer = optimizer,
		.id = run->id,
		.seed = run->options.seed,
		.hash = HASH_NAME,
		.corpus_hash = 0,
		.started_wall_us = run->started.wall_us,
		.batch = run->training.recipe.batch,
		.sequence = run->training.recipe.sequence,
		.n_shards = run->training.n_shards,
		.per_shard = run->training.per_shard,
		.threads = run->options.training.threads,
		.formats = run->options.training.formats,
		.n_corpus = run->options.training.n_corpus,
		.corpus = run->options.training.corpus,
		.origin = origin,
		.options = options,
	};
	int rc = -ENOMEM;

	if (!cluster || !optimizer || !options || (run->training.origin.folder[0] && !origin))
		error_set(err, rc, "out of memory");
	else
		rc = check_folder(run, err);
	if (rc == 0)
		rc = store_create(&run->history.store, run->options.run_dir, &row, err);
	if (rc == 0)
		rc = record_folder(run, err);
	free(cluster);
	free(optimizer);
	free(origin);
	free(options);
	return rc;
}

/* ---- commits ---- */

/* The rows of a commit with which `skippipe verify` repeats the sums in the same order. */
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

/* Writes one row for each task, from its two events. The start event carries the arrival and the
 * wait. */
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
	if (n > 0 && store_tasks(it->run->history.store, tasks, n, &err) != 0)
		log_line(&it->run->log, LOG_ERROR, "%s", err.text);
	free(tasks);
	free(open);
}

static void thin_tasks(struct run *run)
{
	struct error err = { "" };

	if (run->iteration > run->options.keep_tasks &&
	    store_thin(run->history.store, run->iteration - run->options.keep_tasks, &err) != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
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

	rc = store_commit(it->run->history.store, &sc, err);
	audit_fini(&a);
	if (rc != 0)
		return rc;
	record_keep(it->run, see);
	it->run->last_commit = *m;
	record_tasks(it);
	record_gpus(it->members);
	record_moment(it->run, &moment); /* last: a reader of this row finds the tasks */
	thin_tasks(it->run);
	put_event(it->run, json_pack("{s:s, s:I, s:I, s:i, s:f, s:f}", "event", "commit", "n",
				     (json_int_t)m->iteration, "epoch", (json_int_t)it->run->epoch,
				     "attempt", (int)m->attempt, "scale", (double)m->scale, "lr",
				     (double)m->lr));
	return 0;
}

void record_hash(struct run *run, const struct member *m, uint8_t stage, uint64_t iteration,
		 uint64_t hash)
{
	struct store_hash h = { iteration, hash, m->id, stage };
	struct error err = { "" };

	if (store_hashes(run->history.store, &h, 1, &err) != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
}

struct hash_search {
	uint64_t hash;
	uint8_t stage;
	bool found;
};

static int seek_hash(void *context, const struct store_hash *h)
{
	struct hash_search *s = context;

	s->found = s->found || (h->stage == s->stage && h->hash == s->hash);
	return 0;
}

bool record_has_hash(const struct run *run, uint8_t stage, uint64_t iteration, uint64_t hash)
{
	struct hash_search s = { .hash = hash, .stage = stage };
	struct error err = { "" };

	if (store_each_hash(run->history.store, iteration, seek_hash, &s, &err) != 0)
		return false;
	return s.found;
}

void record_forget_hash(struct run *run, const struct member *m, uint8_t stage, uint64_t iteration,
			uint64_t hash)
{
	struct store_hash h = { iteration, hash, m->id, stage };
	struct error err = { "" };

	if (store_forget_hash(run->history.store, &h, &err) != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
}
