/* first_weights.c - loads the weights with which a run began. The record has the hashes of these
 * weights, so a file from any folder can be checked. */
#include "verify/first_weights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "model/files/checkpoint.h"
#include "model/files/origin.h"

static bool is_whole(const struct origin *o, const char *run)
{
	struct error ignored = { "" };

	for (uint32_t i = 0; i < o->n_stages; i++)
		if (checkpoint_check_stage(run, i, 0, o->hashes[i], &ignored) < 0)
			return false;
	return true;
}

static int load_stages(const struct origin *o, const char *run, struct stage *const *stages,
		       struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < o->n_stages && rc == 0; i++)
		rc = checkpoint_load_stage(run, stages[i], 0, o->hashes[i], err);
	return rc;
}

/* Divides the model into stage files again, in a temporary folder, because the run's folder may be
 * read-only. */
static int cut_again(const struct origin *o, struct stage *const *stages, struct error *err)
{
	const char *tmp = getenv("TMPDIR");
	char folder[4096];
	int rc;

	snprintf(folder, sizeof(folder), "%s/skippipe-verify-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return error_set(err, -EIO, "%s: cannot make a folder: %s", folder,
				 strerror(errno));
	rc = origin_cut_again(o, stage_config(stages[0]), folder, err);
	if (rc == 0)
		rc = load_stages(o, folder, stages, err);
	file_remove_folder(folder);
	return rc;
}

int first_weights_load(struct first_weights *out, struct store *s, const char *run,
		       const char *weights, struct stage *const *stages, struct error *err)
{
	struct origin o;
	char *text = NULL;
	int rc = store_get(s, "origin", &text, err);

	*out = (struct first_weights){ .steps = 0 };
	if (rc == -ENOENT) {
		out->is_known = true;
		err->text[0] = '\0';
		return 0;
	}
	if (rc == 0)
		rc = origin_parse(&o, text, err);
	free(text);
	if (rc == 0)
		*out = (struct first_weights){ .steps = o.steps, .position = o.position };
	if (rc == 0 && o.n_stages != stage_config(stages[0])->n_stages)
		rc = error_set(err, -EINVAL, "the record of the first weights has %u stages",
			       o.n_stages);
	if (rc != 0)
		return rc;
	out->is_known = true;
	if (weights)
		snprintf(o.folder, sizeof(o.folder), "%s", weights);
	rc = !weights && is_whole(&o, run) ? load_stages(&o, run, stages, err)
					   : cut_again(&o, stages, err);
	return rc ? error_prefix(err, rc, "the weights with which the run began") : 0;
}
