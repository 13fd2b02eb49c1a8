/* first_weights.c - the weights with which a run begins, if --from names them.
 *
 * The controller divides the model into its stages, and writes them to the run folder as a
 * checkpoint of iteration 0. The rest of the program can then handle these weights like any other
 * checkpoint. The controller orders an agent that builds its stage to load the file. If the agent's
 * disk lacks the file, the agent fetches it from the controller. */
#include "controller/weights/first_weights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "controller/run/run.h"
#include "model/files/checkpoint.h"
#include "model/files/generation.h"
#include "model/files/run_parts.h"
#include "model/files/tokenizer_files.h"

enum { PATH = 4096 };

/* If another tool made the model, the model has no hyperparameters. *r then stays as the caller set
 * it. */
int first_weights_model(struct run *run, struct model_config *c, struct hyperparameters *r,
			struct error *err)
{
	struct origin *o = &run->training.origin;
	struct hyperparameters read;
	bool trained;
	int rc = origin_read(o, run->options.training.from, c, &read, &trained, err);

	if (rc != 0)
		return rc;
	if (trained)
		*r = read;
	if (trained && !run->options.seed_is_given && !run->options.training.new_corpus)
		run->options.seed = o->seed;
	return 0;
}

static int save_manifest(const struct run *run, struct error *err)
{
	const struct origin *o = &run->training.origin;
	struct checkpoint k = { .config = run->training.model,
				.hyper = run->training.hyper,
				.before = o->steps,
				.seed = o->seed,
				.position = o->position,
				.corpus = o->corpus };

	return checkpoint_save_manifest(run->options.run_dir, &k, o->hashes, err);
}

int first_weights_cut(struct run *run, struct error *err)
{
	struct origin *o = &run->training.origin;
	char path[PATH];
	int rc;

	if (!o->folder[0])
		return 0;
	snprintf(path, sizeof(path), "%s/run.db", run->options.run_dir);
	if (access(path, F_OK) == 0)
		return error_set(err, -EEXIST, "%s: this folder already contains a run", path);
	log_line(&run->log, LOG_INFO, "cutting %s into %u stages", o->folder,
		 run->training.model.n_stages);
	rc = origin_cut(o, &run->training.model, run->options.run_dir, err);
	if (rc == 0)
		rc = save_manifest(run, err);
	if (rc == 0)
		rc = tokenizer_files_copy(o->folder, run->options.run_dir, err);
	if (rc == 0)
		rc = generation_keep(o->folder, run->options.run_dir, err);
	if (run->options.training.new_corpus)
		o->position = 0;
	run->training.has_tokenizer = tokenizer_files_beyond_bytes(run->options.run_dir);
	return rc;
}

/* Reads from the record the commit after which the run got its present stages. */
static int read_part(struct run *run, struct error *err)
{
	struct run_parts parts;
	struct error ignored;
	char *text = NULL;
	int rc;

	if (store_get(run->record.store, RUN_PARTS_KEY, &text, &ignored) != 0)
		return 0;
	rc = run_parts_parse(&parts, text, err);
	free(text);
	if (rc != 0)
		return rc;
	run->training.part = parts.list[parts.n - 1];
	run->training.part.model = NULL;
	run_parts_free(&parts);
	return 0;
}

int first_weights_resume(struct run *run, struct error *err)
{
	char *text = NULL;
	int rc = read_part(run, err);

	if (rc == 0)
		rc = store_get(run->record.store, "origin", &text, err);

	if (rc != 0) {
		err->text[0] = '\0';
		return rc == -ENOENT ? 0 : rc;
	}
	rc = origin_parse(&run->training.origin, text, err);
	free(text);
	run->training.has_tokenizer = tokenizer_files_beyond_bytes(run->options.run_dir);
	return rc;
}

bool first_weights_order(const struct run *run, const struct msg_assign *a, struct msg *out)
{
	const struct origin *o = &run->training.origin;

	if (!o->folder[0])
		return false;
	*out = (struct msg){ .type = MSG_RESTORE };
	out->u.restore = (struct msg_restore){ .assignment = a->assignment,
					       .stage = a->stage,
					       .kind = RESTORE_FILE,
					       .hash = o->hashes[a->stage],
					       .on_controller = 1 };
	return true;
}

uint64_t first_weights_position(const struct run *run)
{
	const struct training *t = &run->training;
	struct run_part part = t->part;

	part.n_shards = t->n_shards;
	part.per_shard = t->per_shard;
	if (part.after == 0)
		part.position = t->origin.position;
	return run_part_position(&part, run->committed, t->skipped);
}

bool first_weights_corpus(const struct run *run, struct error *err)
{
	const struct origin *o = &run->training.origin;

	if (o->corpus == 0 || run->options.training.new_corpus ||
	    o->corpus == run->training.corpus_hash)
		return true;
	error_set(err, -EINVAL,
		  "%s was trained on another corpus: give that corpus with --corpus, or continue "
		  "on this corpus with --new-corpus",
		  o->folder);
	return false;
}
