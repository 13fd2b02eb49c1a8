/* Errors and formats of skippipe-plan's commands, and how they read a cluster and a model. */
#include "planner/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { MODEL_BYTES = 1 << 20 };

int program_refuse(const struct options_table *of, const char *why)
{
	const char *hint = strstr(why, "(see --help)") ? "" : " (see --help)";

	fprintf(stderr, "skippipe: %s%s\n%s", why, hint, of->intro);
	return USAGE;
}

int program_fail(const struct error *err, int status)
{
	fprintf(stderr, "skippipe: %s\n", err->text);
	return status;
}

int wires_take_activations(struct wires *w, const char *text, struct error *err)
{
	if (tensor_format_parse(text, &w->activations) == 0 &&
	    tensor_format_suits_activations(w->activations))
		return 0;
	return error_set(err, -EINVAL, "--wire: expected fp32, bf16, q8 or q6, got \"%s\"", text);
}

int wires_take_sums(struct wires *w, const char *text, struct error *err)
{
	if (tensor_format_parse(text, &w->sums) == 0 && tensor_format_suits_sums(w->sums))
		return 0;
	return error_set(err, -EINVAL, "--sum-wire: expected fp32, q8, q6 or q4, got \"%s\"", text);
}

int program_read_cluster(const char *path, const struct wires *w, struct cluster **c,
			 struct error *err)
{
	const struct cluster_share share = {
		.activations = tensor_format_activation_share(w->activations),
		.sums = tensor_format_sum_share(w->sums),
		.refuse_delays = true,
	};
	int rc = cluster_read_share(path, &share, c, err);

	if (rc == 0 && w->activations != FORMAT_FP32) /* for fp32, the file's own format stays */
		(*c)->formats.wire = w->activations;
	if (rc == 0)
		(*c)->formats.sum_wire = w->sums;
	return rc;
}

int program_read_model(const char *name, struct model_config *c, struct hyperparameters *r,
		       struct error *err)
{
	int rc = model_preset(name, c, r, err);
	char *text;
	size_t size;

	if (rc != -ENOENT || access(name, F_OK) != 0)
		return error_prefix(err, rc, "--model");
	rc = file_read_text(name, MODEL_BYTES, &text, &size, err);
	if (rc != 0)
		return rc;
	model_preset("tiny", NULL, r, NULL);
	rc = model_config_parse(c, r, text, size, name, err);
	free(text);
	return rc;
}
