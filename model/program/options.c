/* Reads the command lines of skippipe-model's verbs. The source of the model is known only when all
 * options are read. --set and the stages of --skip are therefore stored first, and applied to the
 * model afterwards. */
#include "model/program/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/config_fields.h"
#include "model/files/checkpoint.h"
#include "model/files/model_folder.h"
#include "model/program/option_rows.h"

enum { MODEL_FILE_MOST = 1 << 20 };

static bool is_of_model(const char *name)
{
	for (size_t i = 0; i < model_fields.n; i++)
		if (strcmp(field_name(&model_fields.of[i]), name) == 0)
			return true;
	return false;
}

/* Sets a field of the model according to --set FIELD=VALUE. */
static int set_field(struct options *o, const char *text, struct error *err)
{
	char name[64];
	const char *equals = strchr(text, '=');
	int rc;

	if ((size_t)(equals - text) >= sizeof(name))
		return error_set(err, -EINVAL, "--set: expected FIELD=VALUE, got \"%s\"", text);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
	if (strcmp(name, "n_stages") == 0)
		o->config.stage_layers.n = 0;
	rc = model_config_set(&o->config, &o->hyper, name, equals + 1, err);
	if (rc)
		return error_prefix(err, rc, "--set");
	if (strcmp(name, "n_stages") == 0) {
		o->set.stages = true;
		o->set.n_stages = o->config.n_stages;
	} else if (is_of_model(name)) {
		o->set.shape = true;
	} else {
		o->set.hyper = true;
	}
	if (strcmp(name, "iterations") == 0)
		o->set.length = true;
	return 0;
}

/* Makes the changes of the model in the order of the command line. A checkpoint keeps its number of
 * stages, so the STAGES of --skip K/STAGES do not cut it. */
static int change_model(struct options *o, struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < o->changes.n; i++) {
		const struct model_change *c = &o->changes.list[i];

		if (c->set) {
			rc = set_field(o, c->set, err);
		} else if (!o->from) {
			model_cut_equally(&o->config, c->n_stages);
			o->set.n_stages = c->n_stages;
		}
	}
	return rc;
}

static int load_file(const char *path, struct options *o, struct error *err)
{
	char *text;
	size_t size;
	int rc = file_read_text(path, MODEL_FILE_MOST, &text, &size, err);

	if (rc)
		return rc;
	rc = model_config_parse(&o->config, &o->hyper, text, size, path, err);
	free(text);
	return rc;
}

static int load_model(struct options *o, struct error *err)
{
	enum model_kind kind;
	struct checkpoint c;
	int rc;

	if ((o->preset != NULL) + (o->model_file != NULL) + (o->from != NULL) > 1)
		return error_set(err, -EINVAL,
				 "--preset, --model, --from: each gives a model, choose one");
	rc = model_preset(o->preset ? o->preset : "tiny", &o->config, &o->hyper, err);
	if (!rc && o->model_file)
		rc = load_file(o->model_file, o, err);
	if (!rc && o->from) {
		rc = model_folder_find(&kind, o->from, err);
		if (!rc && kind == MODEL_HUGGINGFACE)
			rc = error_set(err, -EINVAL,
				       "--from %s: a Hugging Face folder: skippipe import makes a "
				       "checkpoint of it",
				       o->from);
		if (!rc)
			rc = checkpoint_read(o->from, &c, err);
		if (!rc) {
			o->config = c.config;
			o->hyper = c.hyper;
		}
	}
	return rc;
}

int options_cut(struct options *o, struct error *err)
{
	if (o->set.cut.n > 0 && o->set.n_stages > 0 && o->set.n_stages != o->set.cut.n)
		return error_set(err, -EINVAL,
				 "--cut has %" PRIu32 " stages, --set n_stages or --skip %" PRIu32,
				 o->set.cut.n, o->set.n_stages);
	return model_cut(&o->config, &o->set.cut, "--cut", err);
}

int options_parse(struct options *o, int argc, char **argv, const char *intro)
{
	struct options_table table = option_rows_of(argv[0], intro);
	struct error err = { "" };
	int rc;

	*o = (struct options){ .threads = 1, .seed = 1, .device = "cpu", .batches = 16 };
	o->corpus = alloc_array((size_t)argc, sizeof(*o->corpus));
	o->changes.list = alloc_array((size_t)argc, sizeof(*o->changes.list));
	rc = options_read(&table, o, argc, argv, o->given, &err);
	if (rc > 0) {
		options_help(&table, stdout);
		return -1;
	}
	if (rc == 0 && load_model(o, &err))
		return options_fail(argv[0], &err);
	if (rc == 0)
		rc = change_model(o, &err);
	/* If the command line names a model's folder, the model is read, cut and checked later. */
	if (rc == 0 && o->files.n == 0 &&
	    (options_cut(o, &err) || model_config_check(&o->config, &err) ||
	     hyper_check(&o->hyper, &o->config, &err)))
		rc = -EINVAL;
	if (rc == 0)
		return 0;
	options_fail(argv[0], &err);
	return EXIT_USAGE;
}

bool options_given(const struct options *o, const char *name)
{
	const struct options_table table = option_rows_of("", "");

	for (size_t i = 0; i < table.n; i++)
		if (o->given[i] && table.rows[i].name && strcmp(table.rows[i].name, name) == 0)
			return true;
	return false;
}

void options_fini(struct options *o)
{
	free(o->corpus);
	free(o->changes.list);
}

int options_refuse_words(const char *verb, const char *intro)
{
	struct options_table table = option_rows_of(verb, intro);

	options_help(&table, stderr);
	return EXIT_USAGE;
}

int options_fail(const char *verb, const struct error *err)
{
	fprintf(stderr, "skippipe %s: %s\n", verb, err->text);
	return 1;
}
