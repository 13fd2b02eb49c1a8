/* skippipe export and import: models in the formats of other tools. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "model/files/byte_tokenizer.h"
#include "model/files/checkpoint.h"
#include "model/files/gguf.h"
#include "model/files/huggingface.h"
#include "model/files/origin.h"
#include "model/program/commands.h"
#include "model/program/load.h"
#include "model/text/tokenizer.h"
#include "model/program/run_folder.h"

enum { BYTES = 256 }; /* size of the vocabulary of a model whose tokens are bytes */

static const char export_help[] =
	"usage: skippipe export MODEL --out FOLDER [--format hf|gguf]\n"
	"       skippipe export RUN-DIR [AGENT-RUN-DIR...] --out FOLDER [--checkpoint-from STORE]\n"
	"Writes config.json, model.safetensors and generation_config.json as the transformers\n"
	"library's LlamaForCausalLM reads them, and copies the model's tokenizer.\n"
	"Of a run the newest checkpoint is exported. Stages that RUN-DIR lacks come from the\n"
	"agents' run folders named after it, from the store (as in skippipe controller\n"
	"--checkpoint-to), or from the agents through the run's controller, if it is running.\n";

static const char import_help[] =
	"usage: skippipe import FOLDER --out CHECKPOINT [--force] [--set n_stages=N]\n"
	"                       [--set FIELD=VALUE] [--seed N]\n"
	"Makes a checkpoint of a LLaMA model in the transformers library's format (F32, F16 or\n"
	"BF16), to evaluate it or to continue its training. --set changes the recipe, and the\n"
	"division into stages. --seed gives the order in which training will read its corpus.\n"
	"--force replaces an existing checkpoint.\n";

/* Writes the tokenizer and the settings of generation: those of the imported model, or simple ones
 * if it had none. The model decides, and not what the folder holds: an export that was killed may
 * have left a part of these files. */
static int write_small_files(const char *from, const char *to, uint32_t vocab, struct error *err)
{
	static const char generation[] = "{\"_from_model_config\": true}\n";
	bool has_tokenizer = tokenizer_is_in(from);
	char path[4096];
	int rc = origin_copy_tokenizer(from, to, err);

	snprintf(path, sizeof(path), "%s/generation_config.json", to);
	if (!rc && !file_exists(from, "generation_config.json"))
		rc = file_write(path, generation, sizeof(generation) - 1, 0644, err);
	if (!rc && vocab == BYTES && !has_tokenizer)
		rc = byte_tokenizer_write(to, err);
	return rc;
}

static int export_model(struct options *o, struct error *err)
{
	const char *folder = o->files.at[0];
	char checkpoint[4096];
	/* True: the folder `checkpoint` is temporary and is removed at the end. */
	bool is_copy = false;
	struct trainer *t;
	int rc = 0;

	o->recipe.batch = 1;
	o->recipe.sequence = 1;
	o->set.recipe = true;
	if (run_folder_is_run(folder)) {
		rc = run_folder_checkpoint(folder, o->files.at + 1, o->files.n - 1,
					   o->checkpoint_from, checkpoint, sizeof(checkpoint), err);
		is_copy = rc == 0;
		folder = checkpoint;
	} else if (o->files.n > 1) {
		rc = error_set(err, -EINVAL, "%s is one model: %s has no meaning here", folder,
			       o->files.at[1]);
	}
	if (!rc)
		rc = load_model_folder(&t, folder, o, 0, err);
	if (is_copy)
		file_remove_folder(checkpoint);
	if (rc)
		return rc;
	rc = o->gguf ? gguf_export(o->out, trainer_stages(t), err)
		     : huggingface_export(o->out, trainer_stages(t), err);
	trainer_free(t);
	if (!rc && !o->gguf)
		rc = write_small_files(o->files.at[0], o->out, o->config.vocab, err);
	if (!rc && o->gguf)
		printf("%s written\n", o->out);
	else if (!rc)
		printf("%s/config.json and %s/model.safetensors written\n", o->out, o->out);
	return rc;
}

static int import_model(struct options *o, struct error *err)
{
	struct checkpoint c = { .seed = o->seed };
	struct recipe recipe = o->recipe;
	uint32_t n_stages = o->config.n_stages;
	struct trainer *t;
	int rc;

	/* The smallest microbatch, because only the weights are used. */
	o->recipe.batch = 1;
	o->recipe.sequence = 1;
	rc = load_check_out(o, err);
	if (!rc && o->set.shape)
		rc = error_set(err, -1,
			       "--set: the model is that of %s/config.json: only n_stages and "
			       "fields of the recipe can be set",
			       o->files.at[0]);
	if (!rc && n_stages == 0)
		rc = error_set(err, -1, "--set n_stages=0: expected 1 or more");
	if (!rc)
		rc = load_model_folder(&t, o->files.at[0], o, n_stages, err);
	if (rc)
		return rc;
	if (!o->set.recipe && recipe.sequence > o->config.context)
		recipe.sequence = o->config.context;
	c.config = o->config;
	c.recipe = recipe;
	rc = recipe_check(&recipe, &c.config, err);
	if (!rc)
		rc = checkpoint_write(o->out, &c, trainer_stages(t), err);
	if (!rc)
		rc = origin_copy_tokenizer(o->files.at[0], o->out, err);
	if (!rc)
		rc = huggingface_keep_tokens(o->files.at[0], o->out, err);
	if (!rc)
		printf("checkpoint of %zu parameters in %u stages in %s\n",
		       trainer_parameters(t), c.config.n_stages, o->out);
	trainer_free(t);
	return rc;
}

static int run_conversion(int argc, char **argv, const char *help,
			  int (*run)(struct options *, struct error *))
{
	struct options o;
	struct error err = { "" };
	int rc = options_parse(&o, argc, argv, help);

	if (!rc && (o.files.n == 0 || (o.files.n > 1 && run != export_model) || !o.out)) {
		fputs(help, stderr);
		rc = EXIT_USAGE;
	}
	if (!rc && run(&o, &err))
		rc = options_fail(argv[0], &err);
	options_fini(&o);
	return rc < 0 ? 0 : rc;
}

int command_export(int argc, char **argv)
{
	return run_conversion(argc, argv, export_help, export_model);
}

int command_import(int argc, char **argv)
{
	return run_conversion(argc, argv, import_help, import_model);
}
