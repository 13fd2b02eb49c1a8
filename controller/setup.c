/* setup.c - builds a controller from its command line, and frees it.
 *
 * For a recorded run, the cluster and the model come from the record. For a new run, they come from
 * the command line. Setup then makes a member for each node, opens sockets, records or resumes the
 * run and starts the planners. */
#include "controller/setup.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/skip_schedule.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/process/installed.h"
#include "base/rng.h"
#include "controller/iteration/iteration.h"
#include "controller/joining/first_stages.h"
#include "controller/joining/recut.h"
#include "controller/joining/recut_files.h"
#include "controller/joining/resume.h"
#include "controller/network/formats.h"
#include "controller/network/link_record.h"
#include "controller/network/link_table.h"
#include "controller/network/measuring.h"
#include "controller/network/network.h"
#include "controller/operator/command.h"
#include "controller/operator/console_messages.h"
#include "controller/operator/consoles.h"
#include "controller/planning/contingency.h"
#include "controller/planning/replan.h"
#include "controller/planning/skip_phases.h"
#include "controller/planning/stage_choice.h"
#include "controller/planning/stages.h"
#include "controller/run/drill.h"
#include "controller/run/phase.h"
#include "controller/run/rates.h"
#include "controller/run/record.h"
#include "controller/run/settings.h"
#include "controller/weights/first_weights.h"
#include "controller/weights/restore.h"
#include "model/files/remote.h"
#include "model/rehearsal/rehearsal.h"
#include "model/tensor.h"
#include "model/text/corpus.h"
#include "schedule/format/regions.h"
#include "wire/sessions/link.h"

/* Values for a cluster without a file: microbatches of a data node in an iteration, and
 * microbatches that a node holds at once. The second value is replaced once agents have reported
 * their memory. */
enum { bare_microbatches = 6, bare_memory = 3 };

/* ---- the model ---- */

/* Reads --model: a preset or a file. */
static int read_model(const char *name, struct model_config *c, struct hyperparameters *r,
		      struct error *err)
{
	int rc = model_preset(name, c, r, err);
	char *text;
	size_t size;

	if (rc != -ENOENT || access(name, F_OK) != 0)
		return rc;
	rc = file_read_text(name, 1 << 20, &text, &size, err);
	if (rc != 0)
		return rc;
	model_preset("tiny", NULL, r, NULL);
	rc = model_config_parse(c, r, text, size, name, err);
	free(text);
	return rc;
}

/* Chooses the model of a new run: the model in --from, or else the model of --model. If both are
 * given, --model gives only the hyperparameters. Sets *trained to the hyperparameters with which
 * the model in --from was trained. */
static int choose_model(struct run *run, struct hyperparameters *trained, struct error *err)
{
	const struct options_training *o = &run->options.training;
	struct model_config *c = &run->training.model;
	struct hyperparameters *r = &run->training.hyper;
	struct hyperparameters given;
	int rc = read_model(o->model ? o->model : "tiny", c, r, err);

	if (rc == 0 && c->rehearsal)
		rc = error_set(err, -EINVAL,
			       "--model %s: it has the sizes of a rehearsal: choose the real "
			       "model, and --rehearse",
			       o->model);
	if (rc != 0 || !o->from)
		return rc;
	given = *r;
	rc = first_weights_model(run, c, r, err);
	*trained = *r;
	if (o->model)
		*r = given;
	if (r->sequence > c->context)
		r->sequence = c->context;
	return rc;
}

/* Takes the model of a resumed run, and the settings that belong to the model, from the record. */
static int take_recorded_model(struct run *run, const struct store_run *recorded,
			       struct error *err)
{
	struct options *o = &run->options;
	int rc;

	o->seed = recorded->seed;
	o->training.threads = recorded->threads;
	o->training.formats = recorded->formats;
	o->name = recorded->name;
	o->training.batch = recorded->batch;
	o->training.sequence = recorded->sequence;
	o->training.n_corpus =
		recorded->n_corpus <= OPTIONS_MOST_CORPUS ? (uint32_t)recorded->n_corpus : 0;
	for (uint32_t i = 0; i < o->training.n_corpus; i++)
		o->training.corpus[i] = recorded->corpus[i];
	rc = model_preset("tiny", &run->training.model, &run->training.hyper, err);
	if (rc == 0)
		rc = model_config_parse(&run->training.model, &run->training.hyper, recorded->model,
					strlen(recorded->model), o->run_dir, err);
	if (rc == 0 && run_is_rehearsal(run) && o->eval_every > 0)
		rc = error_set(err, -EINVAL, "--eval-every %u: a rehearsal has no loss",
			       o->eval_every);
	return rc ? rc : first_weights_resume(run, err);
}

/* Divides the model into the stages of the cluster, and sets the amount of work of each stage. */
static int cut_model(struct run *run, struct error *err)
{
	const struct stage_layers *cut = &run->options.training.cut;
	struct model_config *c = &run->training.model;
	struct cluster *cluster = run->cluster;
	/* Until the stages are chosen, stage 1 has one layer, with which agents measure their
	 * compute (joining/first_stages.c). */
	struct stage_layers provisional = { 2, { (uint16_t)(c->n_layers - 1), 1 } };
	int rc = 0;

	if (cut->n > 0 && cut->n != (uint32_t)cluster->n_stages)
		return error_set(
			err, -EINVAL,
			"--cut gives %u stages, and the cluster has %d (--stages, --cluster)",
			cut->n, cluster->n_stages);
	if (run->options.cluster.chooses_stages)
		rc = model_cut(c, &provisional, "--model", err);
	else if (cut->n > 0)
		rc = model_cut(c, cut, "--cut", err);
	else
		model_cut_equally(c, (uint32_t)cluster->n_stages);
	for (int s = 0; rc == 0 && s < cluster->n_stages; s++) {
		if (c->stage_layers.n == 0 && cluster->work[s] != 1)
			rc = error_set(err, -EINVAL,
				       "%s: the stages have unequal work (stage_work): give the "
				       "layers of each stage with --cut",
				       run->options.cluster.file ? run->options.cluster.file
								 : run->options.run_dir);
		cluster->work[s] = model_stage_work(c, (uint32_t)s);
	}
	return rc;
}

static int load_model(struct run *run, struct error *err)
{
	struct options *o = &run->options;
	const struct store_run *recorded =
		run->record.store ? store_run_of(run->record.store) : NULL;
	struct hyperparameters trained;
	int rc = recorded ? take_recorded_model(run, recorded, err)
			  : choose_model(run, &trained, err);

	if (rc == 0 && !recorded)
		rc = rates_begin(run, o->training.from && !o->training.model, err);
	if (rc != 0)
		return rc;
	run->cluster->formats = run->wanted.formats = o->training.formats;
	rc = cut_model(run, err);
	if (rc != 0)
		return rc;
	if (o->training.batch)
		run->training.hyper.batch = o->training.batch;
	if (o->training.sequence)
		run->training.hyper.sequence = o->training.sequence;
	if (run->training.hyper.sequence > run->training.model.context && !o->training.from)
		run->training.model.context = run->training.hyper.sequence;
	if (run->training.model.n_stages > run->training.model.n_layers + 1)
		return error_set(err, -EINVAL,
				 "the model has %u layers: it can be cut into at most %u stages, "
				 "not %u (--stages)",
				 run->training.model.n_layers, run->training.model.n_layers + 1,
				 run->training.model.n_stages);
	rc = model_config_check(&run->training.model, err);
	if (rc == 0 && !recorded && (o->stack || o->recipe))
		rc = model_cut_check_stack(&run->training.model, err);
	if (rc == 0)
		rc = hyper_check(&run->training.hyper, &run->training.model, err);
	if (rc != 0)
		return rc;
	if (!recorded && o->training.from)
		run->training.origin.position = hyper_position(&trained, &run->training.hyper,
							       run->training.origin.position);
	if (o->training.rehearse)
		rehearsal_shrink(&run->training.model, &run->training.hyper,
				 o->training.scale_bytes);
	return stages_print_model(run, err);
}

/* ---- the cluster ---- */

static int read_regions(const struct options *o, struct regions **out, struct error *err)
{
	char path[PATH_MAX];

	installed_path("regions.json", "deploy/regions.json", path, sizeof(path));
	return regions_read(o->cluster.regions ? o->cluster.regions : path, out, err);
}

/* Sets the bytes of an activation and of the largest stage for the model that the run rehearses. */
static int rehearsed_bytes(const struct options *o, struct regions_request *q, struct error *err)
{
	struct model_config c;
	struct hyperparameters r;
	struct tensor_table table;
	int rc = read_model(o->training.model ? o->training.model : "tiny", &c, &r, err);

	if (rc != 0)
		return rc;
	model_cut_equally(&c, (uint32_t)q->n_stages);
	rc = model_cut(&c, &o->training.cut, "--cut", err);
	if (rc != 0)
		return rc;
	rc = tensor_table_new(&table, &c, err);
	if (rc != 0)
		return rc;
	q->activation_bytes = (double)sizeof(float) *
			      (o->training.batch ? o->training.batch : r.batch) *
			      (o->training.sequence ? o->training.sequence : r.sequence) * c.dim;
	q->weights_bytes_per_stage = 0;
	for (uint32_t s = 0; s < c.n_stages; s++)
		q->weights_bytes_per_stage =
			fmax(q->weights_bytes_per_stage,
			     (double)sizeof(float) * (double)tensor_table_parameters(&table, s));
	tensor_table_free(&table);
	return 0;
}

/* Builds the published cluster: compute, memory and stage sizes of the 20 nodes of arXiv
 * 2502.19913. For a rehearsal, the bytes are those of the rehearsed model. */
static int regions_default(struct run *run, struct error *err)
{
	const struct options *o = &run->options;
	struct regions_request q;
	struct regions *r;
	double share;
	int rc = read_regions(o, &r, err);

	if (rc != 0)
		return rc;
	regions_request_init(&q, 4, 2);
	q.name = o->name;
	q.n_stages = o->cluster.n_stages;
	if (o->training.rehearse)
		rc = rehearsed_bytes(o, &q, err);
	share = tensor_format_activation_share(o->training.formats.wire);
	q.activation_bytes *= share;
	q.weights_bytes_per_stage *= tensor_format_sum_share(o->training.formats.sum_wire);
	q.n_nodes = (int)o->cluster.agents;
	q.stages = o->cluster.stages;
	q.path_length = o->cluster.n_stages - (int)o->skip;
	if (rc == 0)
		rc = regions_cluster(r, &q, &run->cluster, err);
	regions_free(r);
	for (int i = 0; rc == 0 && i < q.n_nodes * q.n_nodes; i++)
		run->cluster->bytes_s[i] /= share;
	return rc;
}

/* Describes an embedded cluster without emulation, whose processes run on one machine. Sets
 * delays that are typical of messages within one machine. The agents measure their compute before
 * the first iteration. */
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

/* Builds the cluster of a run without a cluster file. Nothing is known about the nodes of such a
 * run yet. */
static int bare_cluster(struct run *run)
{
	const struct options *o = &run->options;
	struct cluster *b = cluster_alloc((int)o->cluster.agents, o->cluster.n_stages, true);

	for (int s = 0; s < o->cluster.n_stages; s++)
		b->stages[s] = o->cluster.stages[s];
	b->microbatches_per_data_node = bare_microbatches;
	near_cluster(b);
	for (int i = 0; i < b->n_nodes; i++)
		b->nodes[i].memory = bare_memory;
	run->cluster = b;
	return 0;
}

/* Prepares the table of measured links, and sets the bytes of an activation and of a stage's
 * gradient for the present formats. */
static void begin_links(struct members *members)
{
	const struct store_run *run = members->run->options.mode.resume
					      ? store_run_of(members->run->record.store)
					      : NULL;

	if (!measuring_wanted(members->run))
		return;
	members->links = run ? link_table_parse(run->cluster) : NULL;
	if (!members->links)
		members->links = link_table_new(members->n);
	members->links->replicas =
		link_table_replicas(members->n, (size_t)members->run->cluster->n_stages);
	formats_set_bytes(members->links, &members->run->training, &members->run->cluster->formats);
	if (!members->run->cluster->bytes_s)
		members->run->cluster->bytes_s =
			alloc_array((size_t)members->n * members->n, sizeof(double));
	if (members->run->cluster->sync_pair_s)
		return;
	members->run->cluster->sync_pair_s =
		alloc_array((size_t)members->n * members->n, sizeof(double));
	for (size_t i = 0; i < (size_t)members->n * members->n; i++)
		members->run->cluster->sync_pair_s[i] = -1;
}

/* Returns the published links between the locations of the nodes. NULL: no links are published for
 * some location. */
static struct link_table *links_of_regions(const struct run *run)
{
	struct link_table *t = link_table_new((uint32_t)run->cluster->n_nodes);
	const struct cluster_node *nodes = run->cluster->nodes;
	struct regions *r = NULL;
	struct error ignored;
	int rc = read_regions(&run->options, &r, &ignored);

	for (uint32_t i = 0; rc == 0 && i < t->n * t->n; i++) {
		double latency_s = 0;

		rc = regions_link(r, nodes[i / t->n].location, nodes[i % t->n].location,
				  &latency_s, &t->links[i].bandwidth, &ignored);
		t->links[i].latency_s = (float)latency_s;
		t->links[i].known = true;
	}
	regions_free(r);
	if (rc == 0)
		return t;
	link_table_free(t);
	return NULL;
}

/* Returns the links in a cluster file, which has been read and checked before. NULL: the file has
 * delays instead of links, or is a pipe, which cannot be read twice. */
static struct link_table *links_of_file(const char *path, uint32_t n_nodes)
{
	struct link_table *t = NULL;
	struct error ignored;
	struct stat st;
	char *text;
	size_t size;

	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
	    file_read_text(path, (size_t)st.st_size, &text, &size, &ignored) != 0)
		return NULL;
	t = link_table_parse(text);
	free(text);
	if (!t || t->n == n_nodes)
		return t;
	link_table_free(t);
	return NULL;
}

/* Prepares the table of emulated links. Consoles show these links instead of the connections
 * between this machine's processes. A resumed run takes the table from its record. */
static void begin_emulated_links(struct members *members)
{
	const struct options *o = &members->run->options;

	if (o->cluster.time_scale == 0)
		return;
	members->emulated = o->mode.resume    ? record_emulated_links_again(members)
			    : o->cluster.file ? links_of_file(o->cluster.file, members->n)
					      : links_of_regions(members->run);
}

/* Sets the options that --recipe stands for. */
static int take_recipe(struct run *run, struct error *err)
{
	char text[SKIP_SCHEDULE_RECIPE];

	run->cluster->always |= 1 | (stage_set)1 << (run->cluster->n_stages - 1);
	if (skip_schedule_of_recipe(text, run->options.recipe,
				    (uint32_t)cluster_most_skipped(run->cluster), err) != 0)
		return -EINVAL;
	run->wanted.schedule_text = alloc_string(text);
	run->options.stack = true;
	run->options.planning.no_swaps = true;
	run->options.training.by_visits = true;
	return 0;
}

/* Loads the cluster from the record, from a file, from measurements or from the published regions,
 * and checks it against the limits of messages. */
static int load_cluster(struct run *run, struct error *err)
{
	struct options *o = &run->options;
	const struct store_run *recorded =
		run->record.store ? store_run_of(run->record.store) : NULL;
	const struct cluster_share share = {
		.activations = tensor_format_activation_share(o->training.formats.wire),
		.sums = tensor_format_sum_share(o->training.formats.sum_wire),
	};
	stage_set always = 1;
	int rc = recorded          ? cluster_parse(recorded->cluster, strlen(recorded->cluster),
						   &run->cluster, err)
		 : o->cluster.file ? cluster_read_share(o->cluster.file, &share, &run->cluster, err)
		 : measuring_wanted(run) ? bare_cluster(run)
					 : regions_default(run, err);

	if (rc != 0)
		return rc;
	if (run->cluster->n_nodes > MSG_NODES || run->cluster->n_stages > MSG_STAGES)
		return error_set(err, -E2BIG, "a run takes at most %d nodes and %d stages",
				 MSG_NODES, MSG_STAGES);
	if (o->training.microbatches)
		run->cluster->microbatches_per_data_node = (int)o->training.microbatches;
	for (int i = 0; i < run->cluster->n_nodes; i++)
		if (run->cluster->nodes[i].memory > 255)
			run->cluster->nodes[i].memory = 255;
	run->training.per_shard = (uint32_t)run->cluster->microbatches_per_data_node;
	run->training.n_shards = (uint32_t)run->cluster->stages[0];
	if ((uint64_t)run->training.per_shard * run->training.n_shards > MSG_MICROBATCHES)
		return error_set(err, -E2BIG,
				 "a run takes at most %d microbatches an iteration, not %u for "
				 "each of %u data nodes",
				 MSG_MICROBATCHES, run->training.per_shard, run->training.n_shards);
	if (o->always && !stage_set_parse(o->always, run->cluster->n_stages, &always))
		return error_set(err, -EINVAL, "--always %s: expected stages below %d, as 0,%d",
				 o->always, run->cluster->n_stages, run->cluster->n_stages - 1);
	run->cluster->always |= always;
	if (o->recipe && !recorded && take_recipe(run, err) != 0)
		return -EINVAL;
	if ((int)o->skip > cluster_most_skipped(run->cluster))
		return error_set(err, -EINVAL, "--skip %u: of %d stages only %d may be skipped",
				 o->skip, run->cluster->n_stages,
				 cluster_most_skipped(run->cluster));
	run->wanted.path_length = (uint32_t)run->cluster->n_stages - o->skip;
	run->wanted.skip_share = o->skip_share;
	if (o->cluster.time_scale == 0 && !o->cluster.file && !recorded && o->mode.embedded)
		near_cluster(run->cluster);
	return 0;
}

/* ---- the other parts ---- */

static void ask_first_plans(struct planning *planning, bool run)
{
	if (run)
		replan_first(planning);
	replan_baseline(planning);
}

static int make_members(struct iteration *it, struct error *err)
{
	int rc;

	it->members->n = (uint32_t)it->run->cluster->n_nodes;
	it->members->list = alloc_array(it->members->n, sizeof(*it->members->list));
	it->run->training.shard_of =
		alloc_array(it->members->n, sizeof(*it->run->training.shard_of));
	it->run->cluster_as_given = cluster_copy(it->run->cluster);
	rc = stages_count(it->run, err);
	if (rc != 0)
		return rc;
	routes_init(&it->routes, it->run->training.n_shards * it->run->training.per_shard,
		    it->members->n);
	for (uint32_t i = 0; i < it->members->n; i++) {
		it->members->list[i].id = (uint16_t)i;
		it->members->list[i].since_us = it->run->now_us;
		it->members->list[i].links.ratio = it->members->list[i].compute.pace = 1;
		it->members->list[i].weights.hash_agrees = true;
		it->members->list[i].copy.stage = it->members->list[i].move.home = -1;
		it->members->list[i].shown.is_stale = true;
	}
	return 0;
}

struct controller *controller_new(void)
{
	struct controller *c = alloc_array(1, sizeof(*c));

	controller_join_parts(c);
	return c;
}

/* Reads the corpus once, so that the controller refuses an unusable file before the agents join.
 * Agents fetch corpus files that they lack from this machine. The default corpus may exist on the
 * agents' machines only. */
static int check_corpus(struct run *run, struct error *err)
{
	const struct options_training *o = &run->options.training;
	struct corpus *corpus = NULL;
	int rc;

	if (o->n_corpus == 0 || o->rehearse)
		return 0;
	rc = corpus_new(&corpus, (char *const *)o->corpus, o->n_corpus,
			run->training.hyper.sequence, run->options.seed, err);
	if (rc == -ENOMEM) {
		log_line(&run->log, LOG_WARN, "the corpus is not checked here: %s", err->text);
		/* the corpus is too large for this machine's memory, but the agents' machines may
		 * have enough */
		return 0;
	}
	if (rc == 0)
		rc = corpus_check(corpus, run->training.model.vocab, run->training.has_tokenizer,
				  err);
	if (rc == 0) {
		run->training.corpus_hash = corpus_hash(corpus);
		rc = first_weights_corpus(run, err) ? 0 : -EINVAL;
		/* later, agreement.c sets the run's hash to the hash that most agents report */
		run->training.corpus_hash = 0;
	}
	corpus_free(corpus);
	return rc == 0 ? 0 : error_prefix(err, rc, "--corpus");
}

/* Returns an error if --checkpoint-to cannot work. The command itself cannot be tried before there
 * is a file to copy. */
static int check_store(const struct options *o, struct error *err)
{
	int rc = o->checkpoint_to ? remote_check(o->checkpoint_to, err) : 0;

	return rc == 0 ? 0 : error_prefix(err, rc, "--checkpoint-to");
}

/* Each step needs the steps before it. controller_fini undoes the steps that succeeded. */
/* Sets the times and the number of a run that begins now. */
static void begin_run(struct run *run)
{
	struct rng rng;

	run->now_us = clock_monotonic_us();
	run->started.us = run->committed_us = run->now_us;
	run->started.wall_us = clock_wall_us();
	run->supervisor = run->options.supervisor;
	run->phase = PHASE_GATHERING;
	run->iteration = 1;
	rng_init_stream(&rng, (uint64_t)run->started.wall_us, (uint64_t)getpid());
	run->id = rng_next(&rng);
}

/* Reads the options and stages of a run that is resumed. */
static int read_record(struct run *run, struct error *err)
{
	int rc = store_resume(&run->record.store, run->options.run_dir, err);

	if (rc == 0)
		rc = recut_begin(run, err);
	if (rc == 0) {
		run->id = store_run_of(run->record.store)->id;
		rc = resume_options_again(run, err);
	}
	return rc == 0 ? first_stages_check_resumed(run, err) : rc;
}

/* Prepares what only a new run has. */
static int prepare_new(struct run *run, struct error *err)
{
	int rc;

	if (run->options.skip_schedule)
		run->wanted.schedule_text = alloc_string(run->options.skip_schedule);
	rc = skip_phases_begin(run, err);
	if (rc == 0)
		rc = first_weights_cut(run, err);
	return rc == 0 ? check_corpus(run, err) : rc;
}

/* Makes the members and their links, and opens the network for them and for consoles. */
static int open_network(struct controller *c, struct error *err)
{
	int rc = make_members(&c->iteration, err);

	if (rc == 0)
		rc = link_check_files(c->members.n, err);
	if (rc == 0) {
		begin_links(&c->members);
		begin_emulated_links(&c->members);
		rc = network_open(
			&c->run.options,
			KEYS_ROLE_BIT(KEYS_AGENT) | KEYS_ROLE_BIT(KEYS_CONSOLE) |
				KEYS_ROLE_BIT(KEYS_WATCHER) | KEYS_ROLE_BIT(KEYS_INVITATION),
			&c->run.log, &c->run.keys.own, &c->run.keys.admitted, &c->run.post,
			c->run.started.listening, err);
	}
	return rc == 0 ? monitor_start(&c->monitor, &c->operators, err) : rc;
}

/* Begins the record of a new run, or continues the record of a resumed run. */
static int begin_record(struct controller *c, struct error *err)
{
	const bool resume = c->run.options.mode.resume;
	int rc = resume ? resume_begin(&c->backups, err) : record_begin(&c->run, err);

	if (rc == 0 && !resume)
		rc = first_stages_record(&c->run, err);
	if (rc == 0)
		recut_note(&c->run);
	/* This controller's commands get higher numbers than the commands of all earlier
	 * controllers of the run. */
	c->operators.commands = c->members.assignments;
	if (rc == 0)
		rc = resume ? skip_phases_begin(&c->run, err)
			    : record_emulated_links(&c->members, err);
	return rc;
}

/* Starts the threads that plan. */
static int start_planning(struct planning *planning, struct error *err)
{
	int rc = planner_start(&planning->planner, err);

	if (rc == 0)
		rc = contingency_start(planning, err);
	return rc == 0 ? phase_targets_start(planning, err) : rc;
}

int controller_init(struct controller *c, struct error *err)
{
	struct run *run = &c->run;
	const bool resume = run->options.mode.resume;
	int rc;

	c->backups.offsite = offsite_new();
	begin_run(run);
	rc = check_store(&run->options, err);
	if (rc == 0 && resume)
		rc = read_record(run, err);
	if (rc == 0)
		rc = load_cluster(run, err);
	if (rc == 0)
		rc = command_check_script(run, err);
	if (rc == 0)
		rc = load_model(run, err);
	if (rc == 0 && !resume)
		rc = prepare_new(run, err);
	if (rc == 0)
		rc = open_network(c, err);
	if (rc == 0)
		rc = begin_record(c, err);
	if (rc == 0)
		rc = start_planning(&c->planning, err);
	if (rc != 0)
		return rc;
	record_phase(run);
	run->training.parameters = count_parameters(&run->training.model);
	run->unit_s = run->options.cluster.time_scale > 0 ? run->options.cluster.time_scale : 1;
	if (!measuring_wanted(run) || run->resumed)
		ask_first_plans(&c->planning, !run->resumed);
	return 0;
}

/* Stops the controller's threads first, because they use all other parts. */
void controller_fini(struct controller *c)
{
	monitor_stop(c->monitor);
	c->monitor = NULL;
	planner_stop(c->planning.planner);
	contingency_stop(&c->planning);
	phase_targets_stop(&c->planning);
	stage_choice_free(c->planning.stage_choice);
	recut_cutting_free(c->run.wanted.recut.cutting);
	post_close(c->run.post);
	store_close(c->run.record.store);
	controller_closed(&c->run);
	keys_list_free(c->run.keys.admitted);
	keys_free(c->run.keys.own);
	planned_free(c->run.plan);
	planned_free(c->planning.pending);
	iteration_fini(&c->iteration);
	restore_fini(&c->backups);
	offsite_free(c->backups.offsite);
	consoles_fini(&c->run);
	command_fini(&c->operators);
	drill_fini(&c->run);
	cluster_free(c->run.cluster);
	cluster_free(c->run.cluster_as_given);
	for (uint32_t i = 0; c->members.list && i < c->members.n; i++) {
		free(c->members.list[i].links.list);
		free(c->members.list[i].sum.reported.slices);
		free(c->members.list[i].copy.sum.slices);
	}
	free(c->members.list);
	free(c->members.failed_links.of);
	free(c->run.training.shard_of);
	free(c->run.training.model_json);
	free(c->run.wanted.schedule_text);
	link_table_free(c->members.links);
	link_table_free(c->members.emulated);
	measuring_free(&c->members);
}
