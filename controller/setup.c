/* setup.c - a controller from its options, and its end.
 *
 * What the run is comes from the record where there is one, else from the command line: the cluster, the model, a
 * member for each node. Then sockets are opened, the run is recorded or taken over, and planners start.
 */
#include "controller/setup.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "controller/history/finish.h"
#include "controller/history/record.h"
#include "controller/history/resume.h"
#include "controller/history/run_state.h"
#include "controller/iteration/iteration.h"
#include "controller/network/measuring.h"
#include "controller/network/network.h"
#include "controller/operator/command.h"
#include "controller/operator/consoles.h"
#include "controller/operator/drill.h"
#include "controller/operator/console_messages.h"
#include "controller/planning/contingency.h"
#include "controller/planning/replan.h"
#include "controller/weights/restore.h"
#include "model/tensor.h"
#include "schedule/format/regions.h"

/* Of a cluster without a file; memory is settled once agents have come. */
enum { bare_microbatches = 6, bare_memory = 3 };

/* ---- the model ---- */

static int load_model(struct controller *c, struct error *err)
{
	struct options *o = &c->options;
	char *text;
	size_t size;
	const struct store_run *run = c->store ? store_run_of(c->store) : NULL;
	int rc;

	if (run) { /* taken over: as it was */
		o->seed = run->seed;
		o->threads = run->threads;
		o->bf16 = run->bf16;
		o->name = run->name;
		o->batch = run->batch;
		o->sequence = run->sequence;
		o->n_corpus = run->n_corpus <= OPTIONS_MOST_CORPUS ? (uint32_t)run->n_corpus : 0;
		for (uint32_t i = 0; i < o->n_corpus; i++)
			o->corpus[i] = run->corpus[i];
		rc = model_preset("tiny", &c->model, &c->recipe, err);
		if (rc == 0)
			rc = model_config_parse(&c->model, &c->recipe, run->model,
						strlen(run->model), o->run_dir, err);
	} else {
		rc = model_preset(o->model, &c->model, &c->recipe, err);
	}
	if (!run && rc == -ENOENT && access(o->model, F_OK) == 0) {
		rc = file_read(o->model, 1 << 20, &text, &size, err);
		if (rc != 0)
			return rc;
		model_preset("tiny", NULL, &c->recipe, NULL);
		rc = model_config_parse(&c->model, &c->recipe, text, size, o->model, err);
		free(text);
	}
	if (rc != 0)
		return rc;
	c->model.n_stages = (uint32_t)c->cluster->n_stages;
	if (o->batch)
		c->recipe.batch = o->batch;
	if (o->sequence)
		c->recipe.sequence = o->sequence;
	if (c->recipe.sequence > c->model.context)
		c->model.context = c->recipe.sequence;
	rc = model_config_check(&c->model, err);
	if (rc == 0)
		rc = recipe_check(&c->recipe, &c->model, err);
	if (rc != 0)
		return rc;
	c->model_json = model_config_print(&c->model, &c->recipe);
	if (!c->model_json)
		return error_set(err, -ENOMEM, "out of memory");
	if (strlen(c->model_json) >= sizeof(((struct msg_welcome *)0)->model))
		return error_set(err, -EINVAL, "%s: the model's description is too long",
				 o->model);
	return 0;
}

/* ---- the cluster ---- */

static void shipped_file(const char *name, char *out, size_t room)
{
	char exe[PATH_MAX / 2];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	snprintf(out, room, "%s/share/skippipe/%s", SKIPPIPE_PREFIX, name);
	if (n <= 0)
		return;
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		*slash = '\0';
	snprintf(out, room, "%s/../share/skippipe/%s", exe, name); /* installed anywhere */
	if (access(out, R_OK) != 0)
		snprintf(out, room, "%s/../../deploy/%s", exe, name); /* in its source tree */
	if (access(out, R_OK) != 0)
		snprintf(out, room, "%s/share/skippipe/%s", SKIPPIPE_PREFIX, name);
}

/* Of the bytes that an activation of floats has. */
static double activation_share(const struct options *o)
{
	return o->bf16 ? 0.5 : 1;
}

/* The published cluster: compute, memory and sizes of arXiv 2502.19913's 20 nodes. */
static int regions_default(struct controller *c, struct error *err)
{
	const struct options *o = &c->options;
	struct regions_request q;
	struct regions *r;
	char path[PATH_MAX];
	int rc;

	shipped_file("regions.json", path, sizeof(path));
	rc = regions_read(o->regions ? o->regions : path, &r, err);
	if (rc != 0)
		return rc;
	regions_request_init(&q, 4, 2);
	q.name = o->name;
	q.activation_bytes *= activation_share(o);
	q.n_nodes = (int)o->agents;
	q.n_stages = o->n_stages;
	q.stages = o->stages;
	q.path_length = o->n_stages - (int)o->skip;
	rc = regions_cluster(r, &q, &c->cluster, err);
	regions_free(r);
	return rc;
}

/* Without emulation the embedded cluster is what it is: processes side by side. Compute is
 * measured by the agents before the first iteration; a message takes about this long. */
static void near_cluster(struct cluster *c)
{
	static const double message_s = 0.0005, gradient_s = 0.002;

	for (int i = 0; i < c->n_nodes * c->n_nodes; i++) {
		c->delay_s[i] = message_s;
		if (c->sync_pair_s)
			c->sync_pair_s[i] = gradient_s;
	}
	for (int i = 0; i < c->n_nodes; i++) {
		c->nodes[i].forward_s = 0.002;
		c->nodes[i].backward_s = 0.005;
		c->nodes[i].loss_s = 0.002;
	}
	c->dispatch_overhead_s = 0;
}

/* Without a file, and with nothing emulated: so many nodes of which nothing is known yet. */
static int bare_cluster(struct controller *c, struct error *err)
{
	const struct options *o = &c->options;
	struct cluster *b = cluster_alloc((int)o->agents, o->n_stages, true);

	if (!b)
		return error_set(err, -ENOMEM, "out of memory");
	for (int s = 0; s < o->n_stages; s++)
		b->stages[s] = o->stages[s];
	b->microbatches_per_data_node = bare_microbatches;
	near_cluster(b);
	for (int i = 0; i < b->n_nodes; i++)
		b->nodes[i].memory = bare_memory;
	c->cluster = b;
	return 0;
}

/* What travels, and what is summed, for the links that are measured. */
static int begin_links(struct controller *c, struct error *err)
{
	const struct store_run *run = c->options.resume ? store_run_of(c->store) : NULL;

	if (!measuring_wanted(c))
		return 0;
	c->links = run ? link_table_parse(run->cluster) : NULL;
	if (!c->links)
		c->links = link_table_new(c->n_members);
	if (!c->links)
		return error_set(err, -ENOMEM, "out of memory");
	c->links->replicas = link_table_replicas(c->n_members, (size_t)c->cluster->n_stages);
	c->links->activation_bytes =
		activation_share(&c->options) * sizeof(float) * (double)c->recipe.batch *
		c->recipe.sequence * c->model.dim;
	c->links->weights_bytes = 0;
	for (uint32_t s = 0; s < c->model.n_stages; s++)
		c->links->weights_bytes =
			fmax(c->links->weights_bytes, sizeof(float) * (double)c->stage_parameters[s]);
	if (c->cluster->sync_pair_s)
		return 0;
	c->cluster->sync_pair_s = malloc((size_t)c->n_members * c->n_members * sizeof(double));
	if (!c->cluster->sync_pair_s)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < (size_t)c->n_members * c->n_members; i++)
		c->cluster->sync_pair_s[i] = -1;
	return 0;
}

/* From the record, a file, what is there, or the regions of the embedded cluster; then the limits of messages. */
static int load_cluster(struct controller *c, struct error *err)
{
	struct options *o = &c->options;
	const struct store_run *run = c->store ? store_run_of(c->store) : NULL;
	int rc = run ? cluster_parse(run->cluster, strlen(run->cluster), &c->cluster, err)
		 : o->cluster ? cluster_read_share(o->cluster, activation_share(o), &c->cluster, err)
		 : measuring_wanted(c) ? bare_cluster(c, err)
				       : regions_default(c, err);

	if (rc != 0)
		return rc;
	if (c->cluster->n_nodes > MSG_NODES || c->cluster->n_stages > MSG_STAGES)
		return error_set(err, -E2BIG, "a run takes at most %d nodes and %d stages",
				 MSG_NODES, MSG_STAGES);
	if (o->microbatches)
		c->cluster->microbatches_per_data_node = (int)o->microbatches;
	for (int i = 0; i < c->cluster->n_nodes; i++)
		if (c->cluster->nodes[i].memory > 255)
			c->cluster->nodes[i].memory = 255;
	c->per_shard = (uint32_t)c->cluster->microbatches_per_data_node;
	c->n_shards = (uint32_t)c->cluster->stages[0];
	if ((uint64_t)c->per_shard * c->n_shards > MSG_MICROBATCHES)
		return error_set(err, -E2BIG,
				 "a run takes at most %d microbatches an iteration",
				 MSG_MICROBATCHES);
	if ((int)o->skip >= c->cluster->n_stages)
		return error_set(err, -EINVAL,
				 "--skip %u: there are only %d stages, and stage 0 stays",
				 o->skip, c->cluster->n_stages);
	c->path_length = (uint32_t)c->cluster->n_stages - o->skip;
	if (o->time_scale == 0 && !o->cluster && !run && o->embedded)
		near_cluster(c->cluster);
	return 0;
}

/* ---- the rest ---- */

static void ask_first_plans(struct controller *c, bool run)
{
	if (run)
		replan_first(c);
	replan_baseline(c);
}

static int make_members(struct controller *c, struct error *err)
{
	struct tensor_table table;
	int rc;

	c->n_members = (uint32_t)c->cluster->n_nodes;
	c->members = calloc(c->n_members, sizeof(*c->members));
	c->shard_of = calloc(c->n_members, sizeof(*c->shard_of));
	c->planned = cluster_copy(c->cluster);
	rc = tensor_table_new(&table, &c->model, err);
	if (rc != 0)
		return rc;
	for (uint32_t s = 0; s < c->model.n_stages; s++)
		c->stage_parameters[s] = tensor_table_parameters(&table, s);
	tensor_table_free(&table);
	if (!c->members || !c->shard_of || !c->planned ||
	    routes_init(&c->routes, c->n_shards * c->per_shard, c->n_members) != 0)
		return error_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < c->n_members; i++) {
		c->members[i].id = (uint16_t)i;
		c->members[i].since_us = c->now_us;
		c->members[i].links_ratio = c->members[i].pace = 1;
		c->members[i].hash_agrees = true;
		c->members[i].keeps = c->members[i].home = -1;
		c->members[i].changed = true;
	}
	return 0;
}

/* In the order in which each needs the one before: what the run is, who may come, the record, planners.
 * controller_fini undoes as much as was done. */
int controller_init(struct controller *c, struct error *err)
{
	struct rng rng;
	int rc;

	c->now_us = clock_monotonic_us();
	c->started_us = c->committed_us = c->now_us;
	c->started_wall_us = clock_wall_us();
	c->supervisor = c->options.supervisor;
	c->jsonl = c->options.jsonl ? stdout : NULL;
	c->phase = PHASE_GATHERING;
	c->iteration = 1;
	rng_init_stream(&rng, (uint64_t)c->started_wall_us, (uint64_t)getpid());
	c->run = rng_next(&rng);
	rc = c->options.resume ? store_resume(&c->store, c->options.run_dir, err) : 0;
	if (rc == 0 && c->options.resume) {
		c->run = store_run_of(c->store)->id;
		rc = resume_options_again(c, err);
	}
	if (rc == 0)
		rc = load_cluster(c, err);
	if (rc == 0)
		rc = load_model(c, err);
	if (rc == 0)
		rc = make_members(c, err);
	if (rc == 0)
		rc = begin_links(c, err);
	if (rc == 0)
		rc = network_open(&c->options,
				  KEYS_ROLE_BIT(KEYS_AGENT) | KEYS_ROLE_BIT(KEYS_CONSOLE) |
					  KEYS_ROLE_BIT(KEYS_WATCHER),
				  &c->log, &c->identity, &c->admitted, &c->post, err);
	if (rc == 0)
		rc = c->options.resume ? resume_begin(c, err) : record_begin(c, err);
	if (rc == 0)
		rc = planner_start(&c->planner, err);
	if (rc == 0)
		rc = contingency_start(c, err);
	if (rc != 0)
		return rc;
	record_phase(c);
	c->parameters = count_parameters(&c->model);
	c->unit_s = c->options.time_scale > 0 ? c->options.time_scale : 1;
	if (!measuring_wanted(c) || c->resumed)
		ask_first_plans(c, !c->resumed);
	return 0;
}

/* Threads first; then what they used. */
void controller_fini(struct controller *c)
{
	planner_stop(c->planner);
	contingency_stop(c);
	post_close(c->post);
	store_close(c->store);
	controller_closed(c);
	keys_list_free(c->admitted);
	keys_free(c->identity);
	planned_free(c->current);
	planned_free(c->pending);
	iteration_fini(c);
	restore_fini(c);
	consoles_fini(c);
	command_fini(c);
	drill_fini(c);
	cluster_free(c->cluster);
	cluster_free(c->planned);
	for (uint32_t i = 0; c->members && i < c->n_members; i++) {
		free(c->members[i].links);
		free(c->members[i].sum.slices);
		free(c->members[i].copy_sum.slices);
	}
	free(c->members);
	free(c->failed_links.of);
	free(c->shard_of);
	free(c->model_json);
	link_table_free(c->links);
	measuring_free(c);
}
