/* recut_files.c - writes the files of a run's new stages (recut_files.h).
 *
 * The files are written to RUN/recut/PART/checkpoints/N, where PART is the number of the run's
 * part and N is the iteration of the saved commit. After the transaction that records the new
 * stages, this folder replaces the folder RUN/checkpoints/N. */
#include "controller/joining/recut_files.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/file.h"
#include "controller/joining/recut_record.h"
#include "controller/run/run.h"
#include "model/cut.h"
#include "model/files/checkpoint.h"
#include "model/files/origin.h"
#include "model/files/run_parts.h"
#include "store/store.h"

enum { PATH = 4096 };

static void name_aside(char path[PATH], const char *run_dir, size_t part)
{
	snprintf(path, PATH, "%.4000s/recut/%zu", run_dir, part);
}

void recut_files_folder(char *path, size_t room, const char *run_dir, uint64_t iteration)
{
	snprintf(path, room, "%.3900s/checkpoints/%08" PRIu64, run_dir, iteration);
}

/* ---- cutting ---- */

static int save_manifest(const char *aside, const char *folder, const struct recut_record *r,
			 const uint64_t *hashes, struct error *err)
{
	struct checkpoint k;
	int rc = checkpoint_read(folder, &k, err);

	if (rc != 0)
		return rc;
	k.before = k.iteration - r->after;
	k.iteration = r->after;
	k.config = r->model;
	return checkpoint_save_manifest(aside, &k, hashes, err);
}

static int cut(const char *run_dir, const struct recut_record *r, struct recut_files *out,
	       struct error *err)
{
	char aside[PATH], folder[PATH];
	const struct origin_cut_to to = { aside, r->after, out->hashes, out->bytes };
	int rc;

	name_aside(aside, run_dir, r->n_parts - 1);
	recut_files_folder(folder, sizeof(folder), run_dir, r->after);
	rc = origin_cut_folder(folder, &r->model, &to, err);
	return rc ? rc : save_manifest(aside, folder, r, out->hashes, err);
}

int recut_files_cut(const struct run *run, const struct recut_record *r, struct recut_files *out,
		    struct error *err)
{
	return cut(run->options.run_dir, r, out, err);
}

/* ---- the thread ---- */

struct recut_cutting {
	pthread_t thread;
	char *run_dir;
	struct recut_record record;
	uint32_t n_rewinds; /* run->record.n_rewinds when the thread was started */
	struct recut_files files;
	struct error err;
	int result;
	atomic_bool is_done;
};

static void *run_cut(void *argument)
{
	struct recut_cutting *c = argument;

	c->result = cut(c->run_dir, &c->record, &c->files, &c->err);
	atomic_store(&c->is_done, true);
	return NULL;
}

static void free_cutting(struct recut_cutting *c)
{
	recut_record_free(&c->record);
	free(c->run_dir);
	free(c);
}

int recut_cutting_start(const struct run *run, struct recut_record *r, struct recut_cutting **out,
			struct error *err)
{
	struct recut_cutting *c = alloc_new(sizeof(*c));
	sigset_t all, was;
	int rc;

	c->run_dir = alloc_string(run->options.run_dir);
	c->record = *r;
	c->n_rewinds = run->record.n_rewinds;
	*r = (struct recut_record){ .after = 0 };
	sigfillset(&all); /* only the loop handles signals */
	pthread_sigmask(SIG_SETMASK, &all, &was);
	rc = -pthread_create(&c->thread, NULL, run_cut, c);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (rc != 0) {
		free_cutting(c);
		return error_set(err, rc, "no thread to cut the model: %s", strerror(-rc));
	}
	*out = c;
	return 0;
}

bool recut_cutting_is_done(const struct recut_cutting *c)
{
	return atomic_load(&c->is_done);
}

/* If the thread is still cutting, does not free c, because the process is about to end. The
 * thread's files are removed when the run is resumed. */
void recut_cutting_free(struct recut_cutting *c)
{
	if (!c)
		return;
	if (!recut_cutting_is_done(c)) {
		pthread_detach(c->thread);
		return;
	}
	pthread_join(c->thread, NULL);
	free_cutting(c);
}

/* ---- in the record ---- */

static int record_files(const struct recut_cutting *c, const struct run *run, struct error *err)
{
	json_t *hashes = json_array(), *bytes = json_array(), *root;
	char layers[STAGE_LAYERS_TEXT], hash[24], *text;
	int rc;

	model_cut_format(&c->record.model, layers);
	for (uint32_t s = 0; s < c->record.model.n_stages; s++) {
		snprintf(hash, sizeof(hash), "%016" PRIx64, c->files.hashes[s]);
		json_array_append_new(hashes, json_string(hash));
		json_array_append_new(bytes, json_integer((json_int_t)c->files.bytes[s]));
	}
	root = json_pack("{s:I, s:i, s:s, s:o, s:o}", "after", (json_int_t)c->record.after, "part",
			 (int)c->record.n_parts, "layers", layers, "hashes", hashes, "bytes",
			 bytes);
	text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	rc = text ? store_set(run->record.store, RECUT_FILES_KEY, text, err)
		  : error_set(err, -ENOMEM, "out of memory");
	free(text);
	return rc;
}

int recut_cutting_take(struct recut_cutting *c, const struct run *run, struct error *err)
{
	int rc = c->result;

	if (c->record.after != run->committed || c->n_rewinds != run->record.n_rewinds)
		rc = error_set(err, -ESTALE, "the run has gone on without the change");
	else if (rc != 0)
		*err = c->err;
	else
		rc = record_files(c, run, err);
	if (rc == 0)
		recut_cutting_free(c);
	else
		recut_cutting_drop(c);
	return rc;
}

void recut_cutting_drop(struct recut_cutting *c)
{
	char aside[PATH];

	name_aside(aside, c->run_dir, c->record.n_parts - 1);
	recut_cutting_free(c); /* the thread has ended before its files are removed */
	file_remove_folder(aside);
}

/* Returns the record's entry about files that a thread has cut. The caller frees the entry. NULL:
 * there is no entry, or it is damaged. */
static json_t *read_entry(const struct run *run)
{
	struct error ignored;
	char *text;
	json_t *root;

	if (store_get(run->record.store, RECUT_FILES_KEY, &text, &ignored) != 0)
		return NULL;
	root = json_loads(text, 0, NULL);
	free(text);
	return root;
}

static bool read_files(const json_t *root, const struct recut_record *r, struct recut_files *out)
{
	const json_t *hashes = json_object_get(root, "hashes");
	const json_t *bytes = json_object_get(root, "bytes");
	const char *cut = json_string_value(json_object_get(root, "layers"));
	char layers[STAGE_LAYERS_TEXT];

	model_cut_format(&r->model, layers);
	if (json_integer_value(json_object_get(root, "after")) != (json_int_t)r->after ||
	    json_integer_value(json_object_get(root, "part")) != (json_int_t)r->n_parts || !cut ||
	    strcmp(cut, layers) != 0 || json_array_size(hashes) != r->model.n_stages ||
	    json_array_size(bytes) != r->model.n_stages)
		return false;
	for (uint32_t s = 0; s < r->model.n_stages; s++) {
		const char *hash = json_string_value(json_array_get(hashes, s));

		if (!hash || sscanf(hash, "%16" SCNx64, &out->hashes[s]) != 1)
			return false;
		out->bytes[s] = (uint64_t)json_integer_value(json_array_get(bytes, s));
	}
	return true;
}

bool recut_files_find(const struct run *run, const struct recut_record *r, struct recut_files *out)
{
	char aside[PATH], folder[PATH];
	json_t *root = read_entry(run);
	bool found = root && read_files(root, r, out);

	json_decref(root);
	name_aside(aside, run->options.run_dir, r->n_parts - 1);
	recut_files_folder(folder, sizeof(folder), aside, r->after);
	return found && file_exists(folder, "manifest.json");
}

int recut_files_forget(const struct run *run, struct error *err)
{
	return store_set(run->record.store, RECUT_FILES_KEY, NULL, err);
}

/* ---- the newest part ---- */

static int move_files(const struct run *run, const struct run_parts *parts, struct error *err)
{
	const struct run_part *last = &parts->list[parts->n - 1];
	char aside[PATH], from[PATH], to[PATH], former[PATH];

	name_aside(aside, run->options.run_dir, parts->n - 1);
	recut_files_folder(from, sizeof(from), aside, last->after);
	recut_files_folder(to, sizeof(to), run->options.run_dir, last->after);
	snprintf(former, sizeof(former), "%.4000s/former", aside);
	if (access(from, F_OK) != 0)
		return 0;
	if (rename(to, former) == 0)
		file_sync_folder(to);
	return file_move(from, to, err);
}

int recut_files_settle(const struct run *run, struct error *err)
{
	struct run_parts parts = { NULL, 0 };
	struct error ignored;
	char folder[PATH], *text;
	json_t *cut = read_entry(run);
	int rc = 0;

	if (store_get(run->record.store, RUN_PARTS_KEY, &text, &ignored) == 0) {
		rc = run_parts_parse(&parts, text, err);
		free(text);
	}
	if (rc == 0 && parts.n > 0)
		rc = move_files(run, &parts, err);
	run_parts_free(&parts);
	snprintf(folder, sizeof(folder), "%.4000s/recut", run->options.run_dir);
	if (rc == 0 && !cut && access(folder, F_OK) == 0)
		file_remove_folder(folder);
	json_decref(cut);
	return rc;
}
