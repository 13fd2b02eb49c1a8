/* later_weights.c - finds and loads a checkpoint in the folder of a run (later_weights.h). */
#include "verify/later_weights.h"

#include <string.h>

#include "model/config.h"
#include "model/files/checkpoint.h"

struct search {
	const char *run;
	uint32_t n_stages;
	struct later_weights at; /* the checkpoint whose rows are being read */
	/* bit mask of the stages of which an unchanged file was found */
	uint64_t found;
	struct later_weights *out; /* the oldest complete checkpoint so far */
};

/* The newest checkpoint comes first, so the complete checkpoint that is found last is the
 * oldest. */
static int see_file(void *context, const struct store_shard *k)
{
	struct search *x = context;
	struct error ignored = { "" };

	if (k->iteration != x->at.iteration) {
		x->at.iteration = k->iteration;
		x->found = 0;
	}
	if (k->iteration == 0 || k->stage >= x->n_stages || (x->found >> k->stage & 1) ||
	    checkpoint_check_stage(x->run, k->stage, k->iteration, k->hash, &ignored) != 0)
		return 0;
	x->at.hashes[k->stage] = k->hash;
	x->found |= UINT64_C(1) << k->stage;
	if (x->found == UINT64_MAX >> (64 - x->n_stages))
		*x->out = x->at;
	return 0;
}

int later_weights_find(struct later_weights *out, struct store *s, const char *run,
		       struct error *err)
{
	const char *model = store_run_of(s)->model;
	struct model_config config;
	struct search x = { .run = run, .out = out };
	int rc = model_config_parse(&config, NULL, model, strlen(model), "the run's model", err);

	*out = (struct later_weights){ .iteration = 0 };
	x.n_stages = config.n_stages;
	return rc ? rc : store_each_shard(s, see_file, &x, err);
}

int later_weights_load(const struct later_weights *w, const char *run, struct stage *const *stages,
		       uint32_t n_stages, struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < n_stages; i++)
		rc = checkpoint_load_stage(run, stages[i], w->iteration, w->hashes[i], err);
	return rc;
}
