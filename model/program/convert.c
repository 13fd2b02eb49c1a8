/* skippipe export and import: models in the formats of other tools. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "model/files/byte_tokenizer.h"
#include "model/files/checkpoint.h"
#include "model/files/generation.h"
#include "model/files/huggingface.h"
#include "model/files/tokenizer_files.h"
#include "model/program/commands.h"
#include "model/program/load.h"
#include "model/program/out.h"
#include "model/program/run_folder.h"
#include "model/text/tokenizer.h"

enum {
	PATH = 4096,
	BYTES = 256 /* size of the vocabulary of a model whose tokens are bytes */
};

static const char export_intro[] =
	"usage: skippipe export MODEL --out FOLDER [--force]\n"
	"       skippipe export RUN-DIR [AGENT-RUN-DIR...] --out FOLDER [--checkpoint-from STORE]\n"
	"\n"
	"Writes config.json, model.safetensors and generation_config.json as the transformers\n"
	"library's LlamaForCausalLM reads them, and copies the model's tokenizer.\n"
	"If a run is named, its newest checkpoint is exported. Stages that RUN-DIR lacks come\n"
	"from the agents' run folders named after RUN-DIR, from the store, or through the run's\n"
	"controller if it is running.\n"
	"\n";

static const char import_intro[] =
	"usage: skippipe import FOLDER --out CHECKPOINT [options]\n"
	"\n"
	"Makes a checkpoint of a LLaMA model in the transformers library's format (F32, F16 or\n"
	"BF16), to evaluate it or to continue its training.\n"
	"\n";

/* Writes the tokenizer and the settings of generation. These are the imported model's files, or
 * simple files if that model had none. The files in the output folder are not consulted, because an
 * export that was killed may have left only a part of them there. */
static int write_small_files(const char *from, const char *to, uint32_t vocab, struct error *err)
{
	static const char generation[] = "{\"_from_model_config\": true}\n";
	bool has_tokenizer = tokenizer_is_in(from);
	char path[PATH + 64];
	int rc = tokenizer_files_copy(from, to, err);

	snprintf(path, sizeof(path), "%s/generation_config.json", to);
	if (!rc && !file_exists(from, "generation_config.json"))
		rc = file_write(path, generation, sizeof(generation) - 1, FILE_RESULT, err);
	if (!rc && vocab == BYTES && !has_tokenizer)
		rc = byte_tokenizer_write(to, err);
	return rc;
}

/* Moves the files of a complete export to their places, and removes their folder. config.json is
 * removed first and moved last: without it the files are no model, so old and new files are never
 * taken for one model. replaces: `to` has the files of an older model. */
static int move_files(const char *from, const char *to, bool replaces, struct error *err)
{
	char source[PATH + 256], target[PATH + 256];
	struct dirent **names;
	int n = scandir(from, &names, NULL, alphasort), rc = 0;

	if (n < 0)
		return error_set(err, -errno, "%s: %s", from, strerror(errno));
	file_sync_folder(from); /* new files must be on disk before old files go */
	snprintf(target, sizeof(target), "%s/config.json", to);
	unlink(target);
	if (replaces)
		rc = tokenizer_files_remove(to, from, NULL, err);
	for (int i = 0; i <= n; i++) {
		const char *name = i < n ? names[i]->d_name : "config.json";

		snprintf(source, sizeof(source), "%s/%s", from, name);
		snprintf(target, sizeof(target), "%s/%s", to, name);
		if (!rc && name[0] != '.' && (i == n || strcmp(name, "config.json") != 0))
			rc = file_move(source, target, err);
	}
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	if (!rc)
		rmdir(from);
	return rc;
}

/* Writes the model to a folder inside o->out first, so that an older model in o->out stays until
 * the new model is complete. */
static int write_folder(const struct options *o, struct trainer *t, struct error *err)
{
	char aside[PATH];
	struct out_place place;
	int rc = out_claim(&place, o, MODEL_HUGGINGFACE, err);
	int n = snprintf(aside, sizeof(aside), "%s/.skippipe-export", o->out);
	json_t *tokens = NULL;

	if (!rc && n >= (int)sizeof(aside))
		rc = error_set(err, -ENAMETOOLONG, "%s: the path is too long", o->out);
	if (!rc)
		rc = generation_tokens(&tokens, o->files.at[0], err);
	if (!rc) {
		file_remove_folder(aside); /* left by an export that was killed */
		rc = huggingface_export(aside, trainer_stages(t), tokens, err);
		if (!rc)
			rc = write_small_files(o->files.at[0], aside, o->config.vocab, err);
		if (rc)
			file_remove_folder(aside);
		else
			rc = move_files(aside, o->out, place.replaces, err);
	}
	out_release(&place);
	json_decref(tokens);
	return rc;
}

static int export_model(struct options *o, struct error *err)
{
	const char *folder = o->files.at[0];
	char checkpoint[PATH];
	bool temporary = false;
	struct trainer *t;
	int rc = 0;

	o->hyper.batch = 1;
	o->hyper.sequence = 1;
	o->set.hyper = true;
	if (run_folder_is_run(folder)) {
		rc = run_folder_checkpoint(folder, o->files.at + 1, o->files.n - 1,
					   o->checkpoint_from, checkpoint, sizeof(checkpoint),
					   &temporary, err);
		folder = checkpoint;
	} else if (o->files.n > 1) {
		rc = error_set(err, -EINVAL, "%s is a single model: omit the argument %s", folder,
			       o->files.at[1]);
	}
	if (!rc)
		rc = load_model_folder(&t, folder, o, 0, err);
	if (temporary)
		file_remove_folder(checkpoint);
	if (rc)
		return rc;
	rc = write_folder(o, t, err);
	trainer_free(t);
	if (!rc)
		printf("%s/config.json and %s/model.safetensors written\n", o->out, o->out);
	return rc;
}

static int import_model(struct options *o, struct error *err)
{
	struct checkpoint c = { .seed = o->seed };
	struct hyperparameters hyper = o->hyper;
	uint32_t n_stages = o->config.n_stages;
	struct trainer *t;
	struct out_place place = OUT_PLACE_NONE;
	int rc = 0;

	/* Sets the smallest microbatch, because only the weights are used. */
	o->hyper.batch = 1;
	o->hyper.sequence = 1;
	if (o->set.shape)
		rc = error_set(err, -1,
			       "--set: the model is that of %s/config.json: only n_stages and "
			       "fields of the hyperparameters can be set",
			       o->files.at[0]);
	if (!rc && n_stages == 0)
		rc = error_set(err, -1, "--set n_stages=0: expected 1 or more");
	if (!rc)
		rc = load_model_folder(&t, o->files.at[0], o, n_stages, err);
	if (rc)
		return rc;
	if (!o->set.hyper && hyper.sequence > o->config.context)
		hyper.sequence = o->config.context;
	c.config = o->config;
	c.hyper = hyper;
	rc = hyper_check(&hyper, &c.config, err);
	/* Checks the tokenizer's files before the checkpoint is written, because the checkpoint
	 * would count as complete without them. */
	if (!rc)
		rc = tokenizer_files_check(o->files.at[0], err);
	if (!rc)
		rc = out_claim(&place, o, MODEL_CHECKPOINT, err);
	if (!rc)
		rc = checkpoint_write(o->out, &c, trainer_stages(t), err);
	if (!rc)
		rc = tokenizer_files_copy(o->files.at[0], o->out, err);
	if (!rc && place.replaces)
		rc = tokenizer_files_remove(o->out, o->files.at[0], NULL, err);
	if (!rc)
		rc = generation_keep(o->files.at[0], o->out, err);
	if (!rc)
		printf("checkpoint of %zu parameters in %u stages in %s\n", trainer_parameters(t),
		       c.config.n_stages, o->out);
	out_release(&place);
	trainer_free(t);
	return rc;
}

static int run_conversion(int argc, char **argv, const char *intro,
			  int (*run)(struct options *, struct error *))
{
	struct options o;
	struct error err = { "" };
	int rc = options_parse(&o, argc, argv, intro);

	if (!rc && (o.files.n == 0 || (o.files.n > 1 && run != export_model) || !o.out))
		rc = options_refuse_words(argv[0], intro);
	if (!rc && run(&o, &err))
		rc = options_fail(argv[0], &err);
	options_fini(&o);
	return rc < 0 ? 0 : rc;
}

int command_export(int argc, char **argv)
{
	return run_conversion(argc, argv, export_intro, export_model);
}

int command_import(int argc, char **argv)
{
	return run_conversion(argc, argv, import_intro, import_model);
}
