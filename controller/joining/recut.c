/* recut.c - the steps from the operator's order to a run with other stages (recut.h). */
#include "controller/joining/recut.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "controller/joining/recut_files.h"
#include "controller/joining/recut_order.h"
#include "controller/joining/recut_record.h"
#include "controller/members/member_record.h"
#include "controller/run/journal.h"
#include "controller/run/outcome.h"
#include "controller/run/record.h"
#include "controller/run/run.h"
#include "controller/weights/backups.h"
#include "model/files/checkpoint.h"
#include "model/files/run_parts.h"

enum { PATH = 4096 };

/* ---- the saved commit ---- */

struct saved {
	const struct run *run;
	uint64_t iteration;
	/* one bit for each stage whose checkpoint file is on this machine and complete */
	uint64_t stages;
};

static int see_file(void *context, const struct store_shard *k)
{
	struct saved *x = context;
	struct error ignored;

	if (k->iteration == x->iteration && k->stage < 64 && !(x->stages >> k->stage & 1) &&
	    checkpoint_check_stage(x->run->options.run_dir, k->stage, k->iteration, k->hash,
				   &ignored) == 0)
		x->stages |= UINT64_C(1) << k->stage;
	return 0;
}

/* Returns true if this machine has a complete checkpoint of the last commit, with the former
 * stages. */
static bool is_saved(const struct run *run, const struct recut_record *r)
{
	struct saved x = { run, r->after, 0 };
	struct error ignored;
	char folder[PATH];
	uint64_t all = UINT64_MAX >> (64 - r->n_stages_before);

	recut_files_folder(folder, sizeof(folder), run->options.run_dir, r->after);
	return r->after > 0 && file_exists(folder, "manifest.json") &&
	       store_each_shard(run->record.store, see_file, &x, &ignored) == 0 && x.stages == all;
}

/* ---- cutting ---- */

static int record(const struct run *run, const struct recut_record *r,
		  const struct recut_files *cut, struct error *err)
{
	struct store_shard files[MSG_STAGES];
	char host[256] = "unknown";
	const struct store_value values[] = {
		{ "controller", r->state_text },
		{ "options", r->options_text },
		{ RUN_PARTS_KEY, r->parts_text },
		{ RECUT_ORDER_KEY, NULL },
		{ RECUT_FILES_KEY, NULL },
	};
	struct store_recut change = { .id = run->id,
				      .model = r->model_text,
				      .cluster = r->cluster_text,
				      .n_shards = r->n_shards,
				      .per_shard = r->per_shard,
				      .n_files = r->model.n_stages,
				      .files = files,
				      .n_values = sizeof(values) / sizeof(values[0]),
				      .values = values };

	gethostname(host, sizeof(host) - 1);
	for (uint32_t s = 0; s < r->model.n_stages; s++)
		files[s] = (struct store_shard){ .iteration = r->after,
						 .stage = (uint8_t)s,
						 .host = host,
						 .hash = cut->hashes[s],
						 .bytes = cut->bytes[s],
						 .wall_us = clock_wall_us() };
	return store_recut(run->record.store, &change, err);
}

/* Cuts the model, unless a thread has cut it already, and records the new stages. */
static int cut(struct run *run, const struct recut_record *r, struct error *err)
{
	struct recut_files files;
	int rc = 0;

	if (!recut_files_find(run, r, &files)) {
		if (!is_saved(run, r))
			return 0;
		log_line(&run->log, LOG_INFO, "cutting it%" PRIu64 " into %u stages", r->after,
			 r->model.n_stages);
		rc = recut_files_cut(run, r, &files, err);
	}
	if (rc == 0)
		rc = record(run, r, &files, err);
	if (rc == 0)
		run->wanted.recut.is_done = true;
	return rc ? rc : recut_files_settle(run, err);
}

/* ---- orders ---- */

static int set_order(struct run *run, const struct recut_order *o, struct error *err)
{
	char *text = o ? recut_order_print(o) : NULL;
	int rc = o && !text ? error_set(err, -ENOMEM, "out of memory")
			    : store_set(run->record.store, RECUT_ORDER_KEY, text, err);

	free(text);
	if (rc == 0)
		rc = recut_files_forget(run, err);
	if (rc == 0) {
		run->wanted.recut.is_ordered = o != NULL;
		run->wanted.recut.is_stale = run->wanted.recut.cutting != NULL;
	}
	return rc;
}

/* Returns 1 if the record has no order. */
static int read_order(const struct run *run, struct recut_order *out, struct error *err)
{
	char *text = NULL;
	int rc = store_get(run->record.store, RECUT_ORDER_KEY, &text, err);

	if (rc == 0)
		rc = recut_order_parse(out, text, err);
	else
		rc = rc == -ENOENT ? 1 : rc;
	free(text);
	return rc;
}

/* Takes the order from the command line. Returns 1 if the run already has the ordered stages. In
 * that case, an earlier order in the record is cancelled. */
static int take_options(struct run *run, const struct recut_order *o, struct error *err)
{
	struct recut_record r;
	int rc = recut_record_make(&r, run->record.store, o, "--cut", err), set;

	if (rc < 0)
		return rc;
	if (rc == 0)
		recut_record_free(&r);
	set = set_order(run, rc == 0 ? o : NULL, err);
	return set ? set : rc;
}

/* Drops an order that cannot be carried out. The run continues with its present stages. */
static void drop_order(struct run *run, const char *why)
{
	struct error err = { "" };

	snprintf(run->wanted.recut.failure, sizeof(run->wanted.recut.failure), "%s", why);
	if (set_order(run, NULL, &err) != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
}

static int carry_out(struct run *run, const struct recut_order *o, struct error *err)
{
	struct recut_record r = { .after = 0 };
	int rc = recut_record_make(&r, run->record.store, o, "--cut", err);

	run->wanted.recut.is_ordered = true;
	if (rc == 0 && r.after > 0)
		rc = cut(run, &r, err);
	if (rc == 1 || run->wanted.recut.is_done)
		run->wanted.recut.is_ordered = false;
	recut_record_free(&r);
	return rc == 1 ? set_order(run, NULL, err) : rc;
}

int recut_begin(struct run *run, struct error *err)
{
	struct recut_order *o = alloc_new(sizeof(*o));
	bool is_given = recut_order_of_options(o, &run->options);
	int rc = recut_files_settle(run, err);

	if (rc == 0 && is_given)
		rc = take_options(run, o, err);
	/* The order has been read from these options. From here on the record has the stages. */
	run->options.training.cut.n = 0;
	run->options.cluster.n_stages = 0;
	if (rc == 0 && !is_given)
		rc = read_order(run, o, err);
	if (rc == 0) {
		rc = carry_out(run, o, err);
		if (rc != 0 && !run->wanted.recut.is_done) {
			drop_order(run, err->text);
			rc = is_given ? rc : 0;
		}
	}
	free(o);
	return rc == 1 ? 0 : rc;
}

void recut_note(struct run *run)
{
	char layers[STAGE_LAYERS_TEXT];

	if (run->wanted.recut.failure[0])
		note(run, NOTE_ALERT, -1, 0, "the stages stay: %.150s", run->wanted.recut.failure);
	if (!run->wanted.recut.is_done)
		return;
	model_cut_format(&run->training.model, layers);
	note(run, NOTE_EVENT, -1, 'C', "the model is cut into %u stages of %.150s layers after "
	     "it%llu", run->training.model.n_stages, layers, (unsigned long long)run->committed);
	record_event(run, json_pack("{s:s, s:I, s:s}", "event", "cut", "n",
				    (json_int_t)run->committed, "layers", layers));
}

void recut_command(struct run *run, const struct recut_order *o, struct outcome *outcome)
{
	struct recut_record r;
	struct error err = { "" };
	bool was_ordered = run->wanted.recut.is_ordered;
	int rc = recut_record_make(&r, run->record.store, o, "cut", &err);

	if (rc == 0)
		recut_record_free(&r);
	if (rc >= 0 && set_order(run, rc == 0 ? o : NULL, &err) != 0)
		rc = -EIO;
	if (rc < 0)
		outcome_set(outcome, rc, "%.150s", err.text);
	else if (rc == 1)
		outcome_set(outcome, 0, was_ordered ? "the stages stay as they are"
						    : "the run has these stages already");
	else
		outcome_set(outcome, 0, "the stages change %s",
			    run->wanted.pause ? "when the run continues" : "after the next commit");
}

/* ---- saving and cutting ---- */

/* Reports that an order is dropped. */
static void stay(struct run *run, const char *why)
{
	drop_order(run, why);
	note(run, NOTE_ALERT, -1, 0, "the stages stay: %.150s", run->wanted.recut.failure);
	run->wanted.recut.failure[0] = '\0';
}

static void begin_cut(struct run *run)
{
	struct recut_order *o = alloc_new(sizeof(*o));
	struct recut_record r = { .after = 0 };
	struct error err = { "" };
	int rc = read_order(run, o, &err);

	if (rc == 0)
		rc = recut_record_make(&r, run->record.store, o, "--cut", &err);
	if (rc == 0)
		rc = recut_cutting_start(run, &r, &run->wanted.recut.cutting, &err);
	if (rc == 0)
		note(run, NOTE_EVENT, -1, 0, "it%llu is saved: the model is cut into other stages",
		     (unsigned long long)run->committed);
	else
		stay(run, rc == 1 ? "the run has these stages already" : err.text);
	recut_record_free(&r);
	free(o);
}

/* If the order has changed since the thread was started, removes the thread's files once the thread
 * has ended. */
static void drop_stale(struct recut *r)
{
	if (!r->cutting || !r->is_stale || !recut_cutting_is_done(r->cutting))
		return;
	recut_cutting_drop(r->cutting);
	r->cutting = NULL;
	r->is_stale = false;
}

/* Takes the files of the thread, and ends this controller so that the next controller uses the
 * files. Before this controller ends, it writes the event `device` of the last commit, because the
 * next controller does not have the times that agents reported for the event. */
static void end_cut(struct backups *backups)
{
	struct run *run = backups->run;
	struct error err = { "" };
	int rc = recut_cutting_take(run->wanted.recut.cutting, run, &err);

	run->wanted.recut.cutting = NULL;
	if (rc == -ESTALE) /* the next turn saves the present commit */
		return;
	if (rc != 0) {
		stay(run, err.text);
		return;
	}
	record_devices_event(backups->members);
	run->ending.restarts = true;
}

/* Saves and cuts nothing in a pause, because the operator may still change or cancel the order. */
bool recut_turn(struct backups *backups)
{
	struct run *run = backups->run;
	struct recut *r = &run->wanted.recut;

	drop_stale(r);
	if (!r->is_ordered || run->wanted.pause || run->committed == 0 || run->ending.stopping ||
	    run_is_done(run))
		return false;
	if (r->cutting) {
		if (!r->is_stale && recut_cutting_is_done(r->cutting))
			end_cut(backups);
		return r->is_ordered;
	}
	switch (checkpoint_now(backups)) {
	case CHECKPOINT_WAITS:
		return true;
	case CHECKPOINT_FAILED:
		stay(run, "the checkpoint before the change is incomplete");
		return false;
	default:
		break;
	}
	switch (offsite_bring(backups)) {
	case OFFSITE_COMING:
		return true;
	case OFFSITE_MISSING:
		stay(run, "the checkpoint before the change could not be collected");
		return false;
	default:
		begin_cut(run);
		return r->is_ordered;
	}
}
