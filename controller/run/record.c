/* record.c - writes the record of the run: the store, RUN-DIR/plans, and JSON lines on stdout.
 *
 * A restarted controller, replays and `skippipe verify` read this record. If the run depends on
 * what a function writes, the function returns an error. Other functions only log a failure,
 * because their rows are only for people and tools. Other folders write rows of their own: nodes
 * (members/member_record.c), links (network/link_record.c), plans and commits
 * (iteration/iteration_record.c). */
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
#include "controller/run/journal.h"
#include "controller/run/run.h"
#include "controller/run/settings.h"
#include "model/hash.h"

/* ---- JSON lines ---- */

void record_event(struct run *run, json_t *o)
{
	char now[TIMESTAMP_SIZE];

	if (o && run->record.jsonl) {
		timestamp_text(clock_wall_us(), now);
		json_object_set_new(o, "time", json_string(now));
		json_object_set_new(o, "at_s",
				    json_real((double)(run->now_us - run->started.us) * 1e-6));
		json_dumpf(o, run->record.jsonl, JSON_COMPACT | JSON_REAL_PRECISION(9));
		fputc('\n', run->record.jsonl);
		fflush(run->record.jsonl);
	}
	json_decref(o);
}

/* ---- curves for consoles ---- */

void record_keep(struct run *run, const struct msg_see_iteration *see)
{
	struct curves *v = &run->record.curves;

	v->n_iterations = (uint32_t)array_keep_newest(v->iterations, v->n_iterations, KEPT_CURVE,
						   sizeof(*v->iterations));
	array_reserve(&v->iterations, &v->room_iterations, v->n_iterations + 1,
		      sizeof(*v->iterations));
	v->iterations[v->n_iterations++] = *see;
}

void record_keep_validation(struct run *run, const struct msg_see_validation *see)
{
	struct curves *v = &run->record.curves;

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

	if (store_validation(run->record.store, &sv, &err) != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
	record_keep_validation(run, v);
	record_event(run, json_pack("{s:s, s:I, s:f}", "event", "validation", "n",
				    (json_int_t)v->iteration, "loss", (double)v->loss));
}

void record_moment(struct run *run, struct store_moment *m)
{
	struct error err = { "" };

	m->word = m->word ? m->word : "";
	m->text = m->text ? m->text : "";
	m->device = m->device ? m->device : "";
	m->host = m->host ? m->host : "";
	m->iteration = run->iteration;
	m->at_us = run->now_us;
	m->wall_us = clock_wall_us();
	if (run->record.store && store_moment(run->record.store, m, &err) != 0)
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

void record_disk(struct run *run)
{
	static const char *const states[] = { [DISK_READY] = "room",
					      [DISK_FULL] = "full",
					      [DISK_LOCKED] = "locked" };

	record_event(run,
		     json_pack("{s:s, s:s, s:I}", "event", "disk", "state", states[run->disk.state],
			       "iteration", (json_int_t)run->committed));
}

void record_newest_checkpoint(struct run *run, uint64_t iteration)
{
	struct store_moment m = { .kind = "checkpoint",
				  .node = -1,
				  .stage = -1,
				  .value = (int64_t)iteration,
				  .word = "newest",
				  .text = "" };

	record_moment(run, &m);
}

void record_checkpoint(struct run *run, uint64_t iteration,
		       const struct checkpoint_failure *failure)
{
	struct store_moment m = { .kind = "checkpoint",
				  .node = failure ? failure->node : -1,
				  .stage = -1,
				  .value = (int64_t)iteration,
				  .word = failure ? "failed" : "complete",
				  .text = failure ? failure->why : "" };

	record_moment(run, &m);
}

void record_recovery(struct run *run, const char *step, int node, int64_t value, int64_t at_us)
{
	struct store_moment m = {
		.kind = "recovery", .node = node, .stage = -1, .value = value, .word = step
	};

	record_moment(run, &m);
	record_event(run, json_pack("{s:s, s:s, s:i, s:I, s:f}", "event", "recovery", "step", step,
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

	if (store_fault(run->record.store, &sf, &err) != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
	record_event(run, json_pack("{s:s, s:i, s:s, s:i, s:i, s:b}", "event", "fault", "fault",
				    (int)f->id, "kind", fault_name(f->kind), "node", f->node,
				    "peer", f->peer, "active", f->active));
}

void record_scripted(struct run *run, uint32_t number, int status, const char *text)
{
	record_event(run, json_pack("{s:s, s:i, s:I, s:b, s:s}", "event", "act", "act", (int)number,
				    "iteration", (json_int_t)run->committed + 1, "done",
				    status == 0, "text", text));
}

/* ---- plans ---- */

enum { PLAN_FILES = 100 };

void record_plan_path(const struct run *run, uint64_t epoch, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/plans/%04llu.json", run->options.run_dir,
		 (unsigned long long)epoch);
}

/* Writes the plan to a file and removes the oldest files. A failure is only a warning, because the
 * files are only for other tools and the store has all plans. */
void record_plan_file(struct run *run, uint64_t epoch, const char *text)
{
	char path[PATH_MAX];
	struct error err;

	if (epoch > PLAN_FILES) {
		record_plan_path(run, epoch - PLAN_FILES, path);
		unlink(path);
	}
	record_plan_path(run, epoch, path);
	if (access(path, F_OK) != 0 && file_write(path, text, strlen(text), FILE_RESULT, &err) != 0)
		note(run, NOTE_WARNING, -1, 0, "cannot write a plan's file: %.150s", err.text);
}

/* ---- the run itself ---- */

static char *optimizer_json(const struct hyperparameters *r)
{
	json_t *o = json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:i, s:f, s:s, s:f}",
			      "kind", "adamw", "lr", (double)r->adamw.lr, "beta1",
			      (double)r->adamw.beta1, "beta2", (double)r->adamw.beta2, "eps",
			      (double)r->adamw.eps, "weight_decay", (double)r->adamw.weight_decay,
			      "clip", (double)r->clip, "warmup", (int)r->warmup, "iterations",
			      (int)r->iterations, "final_lr", (double)r->final_lr, "schedule",
			      hyper_schedule_name(r), "decay", (double)r->decay);
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

	json_decref(o);
	return text;
}

/* Writes files that are only for other tools, because the store holds their contents too. */
int record_folder(struct run *run, struct error *err)
{
	const char *cluster = store_run_of(run->record.store)->cluster;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/plans", run->options.run_dir);
	/* The result is ignored, because record_plan_file warns if there is no folder */
	file_make_folder(path, NULL);
	snprintf(path, sizeof(path), "%s/cluster.json", run->options.run_dir);
	return file_write(path, cluster, strlen(cluster), FILE_RESULT, err);
}

/* Checks the folder of a new run before the record is created. If the check came later and
 * failed, the new record would stay, and the next start would refuse the folder. A cluster.json
 * without a record belongs to the operator, so the run must not replace it. */
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

/* Writes the run's row before the first iteration. `skippipe verify` and a restarted controller
 * need this row. */
int record_begin(struct run *run, struct error *err)
{
	char *cluster = cluster_format(run->cluster),
	     *optimizer = optimizer_json(&run->training.hyper);
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
		.batch = run->training.hyper.batch,
		.sequence = run->training.hyper.sequence,
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
		rc = store_create(&run->record.store, run->options.run_dir, &row, err);
	if (rc == 0)
		rc = record_folder(run, err);
	free(cluster);
	free(optimizer);
	free(origin);
	free(options);
	return rc;
}

/* ---- hashes ---- */

void record_hash(struct run *run, uint16_t node, uint8_t stage, uint64_t iteration, uint64_t hash)
{
	struct store_hash h = { iteration, hash, node, stage };
	struct error err = { "" };

	if (store_hashes(run->record.store, &h, 1, &err) != 0)
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

	if (store_each_hash(run->record.store, iteration, seek_hash, &s, &err) != 0)
		return false;
	return s.found;
}

void record_forget_hash(struct run *run, uint16_t node, uint8_t stage, uint64_t iteration,
			uint64_t hash)
{
	struct store_hash h = { iteration, hash, node, stage };
	struct error err = { "" };

	if (store_forget_hash(run->record.store, &h, &err) != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
}
