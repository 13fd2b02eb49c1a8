/* stages.c - sets the numbers of a run that follow from the stages of its model (stages.h). */
#include "controller/run/stages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "controller/run/run.h"
#include "model/tensor.h"

int stages_count(struct run *run, struct error *err)
{
	struct tensor_table table;
	int rc = tensor_table_new(&table, &run->training.model, err);

	if (rc != 0)
		return rc;
	for (uint32_t s = 0; s < run->training.model.n_stages; s++)
		run->training.stage_parameters[s] = tensor_table_parameters(&table, s);
	tensor_table_free(&table);
	return 0;
}

int stages_print_model(struct run *run, struct error *err)
{
	free(run->training.model_json);
	run->training.model_json = model_config_print(&run->training.model, &run->training.hyper);
	if (!run->training.model_json)
		return error_set(err, -ENOMEM, "out of memory");
	if (strlen(run->training.model_json) >= sizeof(((struct msg_welcome *)0)->model))
		return error_set(err, -EINVAL, "the model's description is too long");
	return 0;
}

static void shape_cluster(struct cluster *c, const struct run *run, const struct stages_chosen *s)
{
	c->n_stages = (int)run->training.model.n_stages;
	free(c->stages);
	c->stages = alloc_array((size_t)c->n_stages, sizeof(*c->stages));
	for (int i = 0; i < c->n_nodes; i++) {
		c->nodes[i].stage = s->stage_of[i];
		c->nodes[i].memory = s->slots[i];
		c->stages[s->stage_of[i]]++;
	}
	for (int i = 0; i < c->n_stages; i++)
		c->work[i] = model_stage_work(&run->training.model, (uint32_t)i);
	c->microbatches_per_data_node = s->n_microbatches / c->stages[0];
}

int stages_take(struct run *run, const struct stages_chosen *s, struct error *err)
{
	int rc = model_cut(&run->training.model, s->layers, "the chosen stages", err);

	if (rc == 0)
		rc = stages_count(run, err);
	if (rc == 0)
		rc = stages_print_model(run, err);
	if (rc != 0)
		return rc;
	shape_cluster(run->cluster, run, s);
	shape_cluster(run->cluster_as_given, run, s);
	run->wanted.path_length = run->training.model.n_stages;
	run->training.n_shards = (uint32_t)run->cluster->stages[0];
	run->training.per_shard = (uint32_t)run->cluster->microbatches_per_data_node;
	return 0;
}
