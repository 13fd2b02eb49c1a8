/* skippipe export and import: models in the formats of other tools. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "model/files/checkpoint.h"
#include "model/files/gguf.h"
#include "model/files/huggingface.h"
#include "model/files/origin.h"
#include "model/program/commands.h"
#include "model/program/load.h"

static const char export_help[] = "usage: skippipe export MODEL --out FOLDER [--format hf]\n"
				  "Writes config.json and model.safetensors as the "
				  "transformers library's LlamaForCausalLM\n"
				  "reads them.\n";

static const char import_help[] = "usage: skippipe import FOLDER --out CHECKPOINT [--force] [--set "
				  "n_stages=N] [--set FIELD=VALUE]\n"
				  "Makes a checkpoint of a LLaMA model as the transformers "
				  "library keeps it (F32, F16 or\n"
				  "BF16), to evaluate or to train on. --set changes the "
				  "recipe, and the cut into stages.\n"
				  "--force replaces a checkpoint that is there.\n";

static int export_model(struct options *o, struct error *err)
{
	struct trainer *t;
	int rc;
	bool gguf = o->format && strcmp(o->format, "gguf") == 0;

	if (o->format && !gguf && strcmp(o->format, "hf") != 0)
		return error_set(err, -1, "--format %s: expected hf or gguf", o->format);
	o->recipe.batch = 1;
	o->recipe.sequence = 1;
	o->set.recipe = true;
	rc = load_model_folder(&t, o->files[0], o, 0, err);
	if (rc)
		return rc;
	rc = gguf ? gguf_export(o->out, trainer_stages(t), err)
		  : huggingface_export(o->out, trainer_stages(t), err);
	trainer_free(t);
	if (!rc && !gguf)
		rc = origin_copy_tokenizer(o->files[0], o->out, err);
	if (!rc && gguf)
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

	/* A tiny microbatch: only the weights are wanted. */
	o->recipe.batch = 1;
	o->recipe.sequence = 1;
	rc = load_check_out(o, err);
	if (!rc && o->set.shape)
		rc = error_set(err, -1,
			       "--set: the model is that of %s/config.json: only n_stages and "
			       "fields of the recipe can be set",
			       o->files[0]);
	if (!rc && n_stages == 0)
		rc = error_set(err, -1, "--set n_stages=0: expected 1 or more");
	if (!rc)
		rc = load_model_folder(&t, o->files[0], o, n_stages, err);
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
		rc = origin_copy_tokenizer(o->files[0], o->out, err);
	if (!rc)
		rc = huggingface_keep_tokens(o->files[0], o->out, err);
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

	if (!rc && (o.n_files != 1 || !o.out)) {
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
