/* Recomputes committed iterations. A step of a chain (chain.h) must wait for earlier steps of its
 * microbatch's path and for earlier steps in the recorded order of its node. The workers of a
 * task_pool take any step that is possible. Each node's gradients are added in the node's
 * recorded order, so the result does not depend on the worker that computes a step, or on the
 * time of the step. */
#include "verify/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/cgroup.h"
#include "base/stage_set.h"
#include "model/average.h"
#include "model/files/run_parts.h"
#include "model/hash.h"
#include "model/squares.h"
#include "model/stage.h"
#include "model/text/corpus.h"
#include "verify/chain.h"
#include "verify/executor.h"
#include "verify/first_weights.h"
#include "verify/later_weights.h"
#include "verify/task_pool.h"

struct replay {
	const struct store_run *run;
	const char *device;
	struct run_parts parts;
	size_t part; /* index of the part of the run that is recomputed (struct run_part) */
	struct model_config config;
	struct corpus *corpus;
	struct stage *const *stages; /* the executor's stages */
	unsigned workers;
	struct first_weights first;
	/* For each of the n_stages stages, the codec of the sums that its nodes sent. */
	struct sum_codec *sum_codecs;
	struct chain_setup setup; /* the executor, and a spare gradient for each worker; owned */
};

/* The sum of the gradients that one node counted. */
struct sum {
	const struct store_order *order;
	uint32_t done;   /* number of gradients of order->counted that were added so far */
	uint32_t number; /* number under which the executor keeps the sum */
};

/* A worker's next step: the forward pass of a hop, or a step whose gradient is added to a sum. */
struct piece {
	struct chain *chain;
	struct sum *sum; /* the sum to which the step adds; NULL: the step is a forward pass */
	uint8_t stage;
	char kind;       /* kind of the step: 'F' forward, 'L' loss, 'B' backward */
};

struct iteration {
	const struct store_commit *c;
	struct replay *replay;
	struct chain *chains; /* the n_routes chains in ascending order of microbatch */
	/* n_orders sums, one for each node whose counted gradients are recorded. */
	struct sum *sums;
	/* For each of the n_stages stages, true while a worker computes with it. */
	bool *stage_busy;
	struct piece pieces[TASK_POOL_MAX]; /* the step that each worker computes */
};

void replay_free(struct replay *r)
{
	if (!r)
		return;
	executor_free(r->setup.executor);
	corpus_free(r->corpus);
	sum_codecs_free(r->sum_codecs);
	run_parts_free(&r->parts);
	for (unsigned w = 0; w < r->workers; w++)
		free(r->setup.spare[w]);
	free(r);
}

static int no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "out of memory");
}

/* Checks that the run used the same hash function as this program. Otherwise the hashes of corpus
 * and weights could not be compared. */
static int check_hash(const struct store_run *run, struct error *err)
{
	if (strcmp(run->hash, HASH_NAME) == 0)
		return 0;
	return error_set(err, -EPROTONOSUPPORT,
			 "the run's hashes are %s, this program's " HASH_NAME
			 ": verify it with the build that began it (version %s)",
			 run->hash, run->version);
}

static int open_corpus(struct replay *r, struct error *err)
{
	const struct store_run *run = r->run;
	int rc = corpus_new(&r->corpus, (char *const *)run->corpus, run->n_corpus, run->sequence,
			    run->seed, err);

	if (rc != 0)
		return error_prefix(err, rc, "the run's corpus");
	if (run->corpus_hash && corpus_hash(r->corpus) != run->corpus_hash)
		return error_set(err, -ESTALE,
				 "the run's corpus has changed: %zu bytes with hash %016" PRIx64
				 ", the run read %016" PRIx64,
				 corpus_bytes(r->corpus), corpus_hash(r->corpus), run->corpus_hash);
	return 0;
}

/* Reads the parts of the run. A part has its own stages and data shards, and begins after a certain
 * commit. A run whose stages never changed has a single part. */
static int read_parts(struct replay *r, struct store *s, struct error *err)
{
	char *text;
	int rc = store_get(s, RUN_PARTS_KEY, &text, err);

	if (rc == 0) {
		rc = run_parts_parse(&r->parts, text, err);
		free(text);
		return rc;
	}
	if (rc != -ENOENT)
		return rc;
	run_parts_add(&r->parts, &(struct run_part){ .n_shards = r->run->n_shards,
						     .per_shard = r->run->per_shard,
						     .model = (char *)r->run->model });
	return 0;
}

static int read_config(struct replay *r, struct error *err)
{
	const char *model = replay_part(r)->model;

	return model_config_parse(&r->config, NULL, model, strlen(model), "the run's model", err);
}

static int load_model(struct replay *r, struct error *err)
{
	struct executor_setup setup = { .config = r->config,
					.batch = r->run->batch,
					.sequence = r->run->sequence,
					.threads = r->run->threads,
					.seed = r->run->seed,
					.device = r->device };
	int rc = executor_new(&r->setup.executor, &setup, err);

	if (rc != 0)
		return rc;
	r->stages = executor_stages(r->setup.executor);
	r->setup.activation = stage_activation(r->stages[0]);
	return sum_codecs_new(&r->sum_codecs, &r->config, FORMAT_FP32, err);
}

/* Chooses the number of workers and allocates a spare gradient for each. The default for a GPU is
 * a single worker, because a single worker keeps the GPU busy. */
static int make_workers(struct replay *r, const char *device, unsigned workers, struct error *err)
{
	if (workers == 0)
		workers = strncmp(device, "cpu", 3) == 0 ? cores_usable() : 1;
	r->workers = workers > TASK_POOL_MAX ? TASK_POOL_MAX : workers;
	for (unsigned w = 0; w < r->workers; w++) {
		r->setup.spare[w] = malloc(r->setup.activation * sizeof(float));
		if (!r->setup.spare[w])
			return no_memory(err);
	}
	return 0;
}

int replay_new(struct replay **out, struct store *s, const char *device, unsigned workers,
	       struct error *err)
{
	const struct store_run *run = store_run_of(s);
	struct replay *r = alloc_new(sizeof(*r));
	int rc;

	r->run = run;
	r->device = device;
	rc = read_parts(r, s, err);
	if (rc == 0)
		rc = read_config(r, err);
	if (rc == 0)
		rc = check_hash(run, err);
	if (rc == 0)
		rc = open_corpus(r, err);
	if (rc == 0)
		rc = load_model(r, err);
	if (rc == 0)
		rc = make_workers(r, device, workers, err);
	if (rc != 0) {
		replay_free(r);
		return rc;
	}
	*out = r;
	return 0;
}

int replay_begin(struct replay *r, struct store *s, const char *run, const char *weights,
		 struct error *err)
{
	int rc = first_weights_load(&r->first, s, run, weights, r->stages, err);

	r->parts.list[0].position = r->first.position;
	return rc;
}

bool replay_knows_origin(const struct replay *r)
{
	return r->first.is_known;
}

int replay_load(struct replay *r, const struct later_weights *w, const char *run,
		struct error *err)
{
	return later_weights_load(w, run, r->stages, r->config.n_stages, err);
}

const struct model_config *replay_config(const struct replay *r)
{
	return &r->config;
}

const struct run_part *replay_part(const struct replay *r)
{
	return &r->parts.list[r->part];
}

const struct run_part *replay_next_part(const struct replay *r)
{
	return r->part + 1 < r->parts.n ? &r->parts.list[r->part + 1] : NULL;
}

/* ---- changing the stages ---- */

/* Copies the tensors that both stages have, with their moments. Returns the number of copied
 * tensors. */
static size_t copy_tensors(struct stage *to, struct stage *from)
{
	float *const into[] = { stage_weights(to), stage_moment1(to), stage_moment2(to) };
	float *const out_of[] = { stage_weights(from), stage_moment1(from), stage_moment2(from) };
	size_t n_to, n_from, n = 0;
	const struct tensor *t = stage_tensors(to, &n_to), *f = stage_tensors(from, &n_from);

	for (size_t i = 0; i < n_to; i++)
		for (size_t k = 0; k < n_from; k++) {
			if (strcmp(t[i].name, f[k].name) != 0)
				continue;
			for (int a = 0; a < 3; a++)
				memcpy(into[a] + t[i].offset, out_of[a] + f[k].offset,
				       t[i].count * sizeof(float));
			n++;
		}
	stage_changed(to);
	return n;
}

static int copy_model(const struct replay *r, struct stage *const *from, uint32_t n_from,
		      struct error *err)
{
	for (uint32_t s = 0; s < r->config.n_stages; s++) {
		size_t n = 0, all;

		stage_tensors(r->stages[s], &all);
		for (uint32_t k = 0; k < n_from; k++)
			n += copy_tensors(r->stages[s], from[k]);
		if (n != all)
			return error_set(err, -EPROTO, "stage %u of the later part has other "
						       "tensors than the model before", s);
	}
	return 0;
}

int replay_recut(struct replay *r, uint64_t iteration, struct error *err)
{
	const struct run_part *next = replay_next_part(r);
	struct executor *former = r->setup.executor;
	struct stage *const *from = r->stages;
	uint32_t n_from = r->config.n_stages;
	int rc;

	if (!next || next->after != iteration)
		return 0;
	r->part++;
	sum_codecs_free(r->sum_codecs);
	r->sum_codecs = NULL;
	r->setup.executor = NULL;
	rc = read_config(r, err);
	if (rc == 0)
		rc = load_model(r, err);
	if (rc == 0)
		rc = copy_model(r, from, n_from, err);
	executor_free(former);
	return rc ? rc : 1;
}

static void add_average(struct stage *to, struct stage *from, float weight, bool first)
{
	size_t n = stage_parameters(to);

	average_add(stage_weights(to), stage_weights(from), n, weight, first);
	average_add(stage_moment1(to), stage_moment1(from), n, weight, first);
	average_add(stage_moment2(to), stage_moment2(from), n, weight, first);
	stage_changed(to);
}

int replay_average(struct replay *r, const struct store_restore *how, struct error *err)
{
	for (uint32_t i = 0; i < how->n_from; i++)
		if (how->from[i] == how->stage ||
		    !average_fits(&r->config, how->stage, how->from[i]))
			return error_set(err, -EPROTO, "iteration %" PRIu64
					 ": stage %u cannot be made from stage %u",
					 how->iteration, how->stage, how->from[i]);
	for (uint32_t i = 0; i < how->n_from; i++)
		add_average(r->stages[how->stage], r->stages[how->from[i]], how->weight[i],
			   i == 0);
	return 0;
}

uint64_t replay_hash(const struct replay *r, uint32_t stage)
{
	return stage_hash(r->stages[stage]);
}

static int start_chain(const struct replay *r, struct chain *m, const struct route *route,
		      const struct store_commit *c, struct error *err)
{
	size_t tokens = (size_t)r->run->batch * r->run->sequence;
	const struct run_part *part = replay_part(r);

	if (chain_init(m, route, tokens, r->setup.activation) != 0)
		return no_memory(err);
	corpus_batch(r->corpus, route->shard, part->n_shards,
		     route->wave +
			     run_part_position(part, c->iteration - 1, c->repeats.skipped),
		     r->run->batch, m->tokens, m->targets);
	return 0;
}

/* ---- the steps of the chains ---- */

static struct chain *find_chain(const struct iteration *it, uint32_t microbatch)
{
	size_t low = 0, high = it->c->n_routes;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (it->chains[middle].route->microbatch <= microbatch)
			low = middle;
		else
			high = middle;
	}
	return &it->chains[low];
}

/* Precomputes the gradients of one microbatch. The pool calls this function when all forward
 * passes are finished, no worker is busy, and no step is possible. The workers get stuck in this
 * way when a microbatch ran in several attempts: some nodes counted its gradient in one attempt,
 * and other nodes counted it in a later attempt. It may then be impossible to follow the recorded
 * orders of all nodes in a single attempt. */
static int unblock_chain(void *context, struct error *err)
{
	struct iteration *it = context;

	for (size_t i = 0; i < it->c->n_orders; i++) {
		const struct sum *s = &it->sums[i];
		struct chain *m;
		int rc;

		if (s->done == s->order->n_counted)
			continue;
		m = find_chain(it, s->order->counted[s->done].microbatch);
		if (m->output_gradients)
			continue;
		rc = chain_precompute(m, &it->replay->setup);
		if (rc != 0)
			return error_set(err, rc, "microbatch %u fails: %s", m->route->microbatch,
					 strerror(-rc));
		return 0;
	}
	return error_set(err, -EPROTO, "the nodes' recorded orders contradict one another");
}

static int run_piece(void *context, unsigned worker, struct error *err)
{
	struct iteration *it = context;
	struct replay *r = it->replay;
	const struct piece *p = &it->pieces[worker];
	const char *step = !p->sum ? "forward pass" : p->kind == 'L' ? "loss" : "backward pass";
	int rc;

	if (!p->sum)
		rc = chain_forward(p->chain, &r->setup);
	else if (p->kind == 'L')
		rc = chain_loss(p->chain, &r->setup, p->sum->number, worker);
	else
		rc = chain_backward(p->chain, &r->setup, p->sum->number, p->stage, worker);
	if (rc != 0)
		return error_set(err, rc, "microbatch %u: the %s in stage %u fails: %s",
				 p->chain->route->microbatch, step, p->stage, strerror(-rc));
	return 0;
}

static void finish_piece(void *context, unsigned worker)
{
	struct iteration *it = context;
	struct piece *p = &it->pieces[worker];

	it->stage_busy[p->stage] = false;
	if (p->sum)
		p->sum->done++;
	if (!p->sum)
		chain_end_forward(p->chain);
	else if (p->kind == 'L')
		chain_end_loss(p->chain);
	else
		chain_end_backward(p->chain, &it->replay->setup, worker);
}

/* Finds a sum whose next gradient can be computed now. */
static enum task_pool_answer find_contribution(struct iteration *it, struct piece *p)
{
	bool all_done = true;

	for (size_t i = 0; i < it->c->n_orders; i++) {
		struct sum *s = &it->sums[i];
		const struct store_counted *next = &s->order->counted[s->done];
		struct chain *m;

		if (s->done == s->order->n_counted)
			continue;
		all_done = false;
		if (it->stage_busy[s->order->stage])
			continue;
		m = find_chain(it, next->microbatch);
		if (!chain_ready(m, next->kind, s->order->stage))
			continue;
		*p = (struct piece){ m, s, s->order->stage, next->kind };
		return TASK_POOL_FOUND;
	}
	return all_done ? TASK_POOL_ALL_DONE : TASK_POOL_NOTHING_NOW;
}

static enum task_pool_answer find_forward(struct iteration *it, struct piece *p)
{
	for (size_t i = 0; i < it->c->n_routes; i++) {
		struct chain *m = &it->chains[i];
		uint8_t stage;

		if (m->forward_done == m->route->n_hops)
			continue;
		stage = m->route->stages[m->forward_done];
		if (it->stage_busy[stage])
			continue;
		*p = (struct piece){ m, NULL, stage, 'F' };
		return TASK_POOL_FOUND;
	}
	return TASK_POOL_NOTHING_NOW;
}

/* Finds a worker's next step. Steps that add to a sum come before forward passes. When every
 * recorded gradient is added, all work is done, because the audit has checked that every visit
 * was counted. */
static enum task_pool_answer find_piece(void *context, unsigned worker)
{
	struct iteration *it = context;
	struct piece *p = &it->pieces[worker];
	enum task_pool_answer found = find_contribution(it, p);

	if (found == TASK_POOL_NOTHING_NOW)
		found = find_forward(it, p);
	if (found == TASK_POOL_FOUND)
		it->stage_busy[p->stage] = true;
	return found;
}

/* ---- the optimizer's step ---- */

static const struct sum *find_sum(const struct iteration *it, uint16_t node, uint8_t stage)
{
	for (size_t i = 0; i < it->c->n_orders; i++)
		if (it->sums[i].order->node == node && it->sums[i].order->stage == stage)
			return &it->sums[i];
	return NULL;
}

/* Adds the nodes' sums to `to`, which has n floats. Each sum is rounded in the same way as its
 * transfer rounded it. A node that counted nothing adds zeros, as in the run. These zeros matter,
 * because adding 0 to -0 gives 0. `part` is scratch memory for n floats. Returns 0 or -ENOMEM. */
static int add_up(const struct iteration *it, const struct store_reduction *red, size_t n,
		   float *to, float *part)
{
	const struct sum_codec *codec = &it->replay->sum_codecs[red->stage];
	struct executor *e = it->replay->setup.executor;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < red->n_nodes; i++) {
		const struct sum *s = find_sum(it, red->nodes[i], red->stage);

		if (s)
			executor_sum(e, red->stage, s->number, i ? part : to);
		else
			memset(i ? part : to, 0, n * sizeof(*to));
		rc = sum_codec_round(codec, i ? part : to, n, red->n_nodes);
		if (i > 0)
			stage_add(to, part, n);
	}
	return rc ? rc : sum_codec_round(codec, to, n, red->n_nodes);
}

static int replay_step(struct replay *r, const struct iteration *it,
		       const struct store_reduction *red, double *squares, struct error *err)
{
	const struct store_commit *c = it->c;
	struct adamw h = { .lr = c->lr, .beta1 = c->beta1, .beta2 = c->beta2, .eps = c->eps,
			   .weight_decay = c->weight_decay };
	struct stage *stage = r->stages[red->stage];
	size_t n = stage_parameters(stage);
	float *sum = calloc(2 * n, sizeof(*sum));
	uint32_t visits = red->stage < c->visits.n ? c->visits.of[red->stage] : 0;
	double divisor = visits ? visits : 1;
	int rc;

	if (!sum)
		return no_memory(err);
	rc = add_up(it, red, n, sum, sum + n);
	*squares += squares_sum(sum, n) / (divisor * divisor);
	if (rc == 0)
		rc = stage_step(stage, sum, hyper_stage_scale(c->scale, &c->visits, red->stage), &h,
				r->first.steps + c->iteration);
	free(sum);
	if (rc != 0)
		return error_set(err, rc, "the step of stage %u fails: %s", red->stage,
				 strerror(-rc));
	return 0;
}

/* Gives each stage outside the set the weights and moments of its source stage in the set. The run
 * did the same after this iteration. */
static int stack_stages(struct replay *r, stage_set from, struct error *err)
{
	if (!stage_set_fits(from, (int)r->config.n_stages))
		return error_set(err, -EPROTO, "the stages to take layers from do not exist");
	for (uint32_t s = 0; s < r->config.n_stages; s++)
		if (!stage_set_has(from, (int)s))
			stage_stack(r->stages[s], r->stages[stage_set_source(from, (int)s)]);
	return 0;
}

/* ---- one iteration ---- */

static float mean_loss(const struct iteration *it)
{
	double sum = 0;

	for (size_t i = 0; i < it->c->n_routes; i++)
		sum += (double)it->chains[i].loss;
	return it->c->n_routes ? (float)(sum / (double)it->c->n_routes) : 0.0f;
}

static int compute_iteration(struct replay *r, struct iteration *it, double *squares,
			     struct error *err)
{
	static const struct task_pool_work work = { find_piece, run_piece, finish_piece,
						    unblock_chain };
	const struct store_commit *c = it->c;
	int rc = 0;

	executor_begin(r->setup.executor, (uint32_t)c->n_orders);
	for (size_t i = 0; i < c->n_orders; i++)
		it->sums[i] = (struct sum){ .order = &c->orders[i], .number = (uint32_t)i };
	for (size_t i = 0; rc == 0 && i < c->n_routes; i++)
		rc = start_chain(r, &it->chains[i], &c->routes[i], c, err);
	if (rc == 0)
		rc = task_pool_run(&work, it, r->workers, err);
	for (size_t i = 0; rc == 0 && i < c->n_reductions; i++)
		rc = replay_step(r, it, &c->reductions[i], squares, err);
	return rc == 0 && c->stack_from ? stack_stages(r, c->stack_from, err) : rc;
}

/* Sets the formats in which nodes sent the tensors of the iteration. */
static void set_codecs(struct replay *r, const struct tensor_formats *formats)
{
	r->setup.activation_codec = codec_of_activation(formats->wire, r->config.dim);
	r->setup.gradient_codec = codec_of_gradient(formats->wire);
	for (uint32_t s = 0; s < r->config.n_stages; s++)
		r->sum_codecs[s].format = formats->sum_wire;
}

int replay_commit(struct replay *r, const struct store_commit *c, struct replayed *out,
		  struct error *err)
{
	struct iteration it = { .c = c, .replay = r };
	double squares = 0;
	int rc;

	it.chains = alloc_array(c->n_routes, sizeof(*it.chains));
	it.sums = alloc_array(c->n_orders, sizeof(*it.sums));
	it.stage_busy = alloc_array(r->config.n_stages, sizeof(*it.stage_busy));
	set_codecs(r, &c->formats);
	rc = compute_iteration(r, &it, &squares, err);
	if (rc == 0)
		*out = (struct replayed){ .loss = mean_loss(&it),
					  .norm = sqrt(squares) /
						  (c->visits.n ? 1 : (double)c->n_routes) };
	for (size_t i = 0; i < c->n_routes; i++)
		chain_fini(&it.chains[i]);
	free(it.stage_busy);
	free(it.sums);
	free(it.chains);
	return rc == 0 ? 0 : error_prefix(err, rc, "iteration %" PRIu64, c->iteration);
}
