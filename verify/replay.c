/* What is computed in an iteration is a heap of tasks that depend on one another by the
 * orders nodes counted in and by each microbatch's chain. Workers of a task_pool take any
 * that is possible; since every addition goes into its node's sum in that node's order, the
 * result does not depend on who computed what when. */
#include "verify/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/average.h"
#include "model/text/corpus.h"
#include "model/hash.h"
#include "model/stage.h"
#include "verify/chain.h"
#include "verify/task_pool.h"
#include "verify/kinds.h"

struct replay {
	struct store *store;
	const struct store_run *run;
	struct model_config config;
	struct corpus *corpus;
	struct kinds kinds;
	struct stage *const *stages; /* of the first kind: its weights and moments are the run's */
	unsigned workers;
	struct chain_means means; /* room for each worker */
};

/* One node's sum of one stage. */
struct sum {
	const struct store_order *order;
	uint32_t done;   /* of order->counted */
	uint32_t number; /* the executor's */
	struct executor *executor;
};

/* One piece of work: a hop's forward, or (sum) what a node counted next. */
struct piece {
	struct chain *chain;
	struct sum *sum; /* NULL: a forward */
	uint8_t stage;
	char kind;       /* of what was counted */
};

struct iteration {
	const struct store_commit *c;
	struct chain *chains; /* (n_routes) in order of microbatch */
	struct sum *sums;     /* (n_orders) */
	struct replay *replay;
	bool *busy;           /* (n_stages) a worker is at it */
	struct piece pieces[TASK_POOL_MOST]; /* what each worker does */
};

void replay_free(struct replay *r)
{
	if (!r)
		return;
	kinds_free(&r->kinds);
	corpus_free(r->corpus);
	for (unsigned w = 0; w < r->workers; w++)
		free(r->means.spare[w]);
	free(r);
}

static int no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "out of memory");
}

/* Without it nothing could be compared, neither the corpus nor any weights. */
static int check_hash(const struct store_run *run, struct error *err)
{
	if (run->hash && strcmp(run->hash, HASH_NAME) == 0)
		return 0;
	return error_set(err, -EPROTONOSUPPORT,
			 "the run's hashes are %s, this program's " HASH_NAME
			 ": verify it with the build that began it (version %s)",
			 run->hash ? run->hash : "an earlier build's", run->version);
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
				 "the run's corpus has changed since: %zu bytes with hash %016" PRIx64
				 ", the run read %016" PRIx64,
				 corpus_bytes(r->corpus), corpus_hash(r->corpus), run->corpus_hash);
	return 0;
}

static int make_kinds(struct replay *r, struct store *s, const char *device, struct error *err)
{
	struct executor_setup setup = { .config = r->config,
					.batch = r->run->batch,
					.sequence = r->run->sequence,
					.threads = r->run->threads,
					.seed = r->run->seed };
	int rc = kinds_new(&r->kinds, s, &setup, device, err);

	if (rc != 0)
		return rc;
	r->stages = executor_stages(r->kinds.list[0].executor);
	r->means.activation = stage_activation(r->stages[0]);
	r->means.bf16 = r->run->bf16;
	return 0;
}

/* A processor each; a GPU is kept busy by one. */
static int make_room(struct replay *r, unsigned workers, struct error *err)
{
	long n = strncmp(executor_text(r->kinds.list[0].executor), "cpu", 3) == 0
			 ? sysconf(_SC_NPROCESSORS_ONLN)
			 : 1;

	if (workers == 0)
		workers = n < 1 ? 1 : (unsigned)n;
	r->workers = workers > TASK_POOL_MOST ? TASK_POOL_MOST : workers;
	for (unsigned w = 0; w < r->workers; w++) {
		r->means.spare[w] = malloc(r->means.activation * sizeof(float));
		if (!r->means.spare[w])
			return no_memory(err);
	}
	return 0;
}

int replay_new(struct replay **out, struct store *s, const char *device, unsigned workers,
	       struct error *err)
{
	const struct store_run *run = store_run_of(s);
	struct replay *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return no_memory(err);
	r->store = s;
	r->run = run;
	rc = model_config_parse(&r->config, NULL, run->model, strlen(run->model),
				"the run's model", err);
	if (rc == 0)
		rc = check_hash(run, err);
	if (rc == 0)
		rc = open_corpus(r, err);
	if (rc == 0)
		rc = make_kinds(r, s, device, err);
	if (rc == 0)
		rc = make_room(r, workers, err);
	if (rc != 0) {
		replay_free(r);
		return rc;
	}
	*out = r;
	return 0;
}

const struct kinds *replay_kinds(const struct replay *r)
{
	return &r->kinds;
}

const struct model_config *replay_config(const struct replay *r)
{
	return &r->config;
}

static void average_of(struct stage *to, struct stage *from, float weight, bool first)
{
	size_t n = stage_parameters(to);

	average_add(stage_weights(to), stage_weights(from), n, weight, first);
	average_add(stage_moment1(to), stage_moment1(from), n, weight, first);
	average_add(stage_moment2(to), stage_moment2(from), n, weight, first);
	stage_changed(to);
}

/* The other kinds compute with them too. */
static int give_weights(struct replay *r, uint32_t stage, struct error *err)
{
	int rc = 0;

	for (uint32_t i = 1; rc == 0 && i < r->kinds.n; i++)
		if (r->kinds.list[i].executor != r->kinds.list[0].executor)
			rc = executor_set_weights(r->kinds.list[i].executor, stage,
						  stage_weights(r->stages[stage]));
	return rc == 0 ? 0 : error_set(err, rc, "the weights of stage %u: %s", stage, strerror(-rc));
}

int replay_average(struct replay *r, const struct store_restore *how, struct error *err)
{
	for (uint32_t i = 0; i < how->n_from; i++)
		if (how->from[i] == how->stage ||
		    !average_fits(&r->config, how->stage, how->from[i]))
			return error_set(err, -EPROTO,
					 "iteration %" PRIu64
					 ": stage %u cannot be made of stage %u",
					 how->iteration, how->stage, how->from[i]);
	for (uint32_t i = 0; i < how->n_from; i++)
		average_of(r->stages[how->stage], r->stages[how->from[i]], how->weight[i],
			   i == 0);
	return give_weights(r, how->stage, err);
}

uint64_t replay_hash(const struct replay *r, uint32_t stage)
{
	return stage_hash(r->stages[stage]);
}

static int make_chain(const struct replay *r, struct chain *m, const struct store_route *route,
		      uint64_t iteration, struct error *err)
{
	size_t tokens = (size_t)r->run->batch * r->run->sequence;

	if (chain_make(m, route, tokens, r->means.activation) != 0)
		return no_memory(err);
	corpus_batch(r->corpus, route->shard, r->run->n_shards,
		     (iteration - 1) * r->run->per_shard + route->wave, r->run->batch, m->tokens,
		     m->targets);
	return 0;
}

/* ---- what was counted ---- */

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

/* A microbatch that ran again was counted by some nodes in its first attempt and by others in a later
 * one: seen together their orders may contradict one chain of computation. Its gradients are the same
 * in every attempt, so they are worked out here once, uncounted; then any hop may count at any time.
 * Nobody is at work: every forward is done, and no list can go on. */
static int unwind_blocked(void *context, struct error *err)
{
	struct iteration *it = context;

	for (size_t i = 0; i < it->c->n_orders; i++) {
		const struct sum *s = &it->sums[i];
		struct chain *m;
		int rc;

		if (s->done == s->order->n_counted)
			continue;
		m = find_chain(it, s->order->counted[s->done].microbatch);
		if (m->entering)
			continue;
		rc = chain_unwind(m, &it->replay->means);
		if (rc != 0)
			return error_set(err, rc, "microbatch %u fails: %s", m->route->microbatch,
					 strerror(-rc));
		return 0;
	}
	return error_set(err, -EPROTO, "the nodes' recorded orders contradict one another");
}

/* ---- what the pool asks ---- */

static int run_piece(void *context, unsigned worker, struct error *err)
{
	struct iteration *it = context;
	struct replay *r = it->replay;
	const struct piece *p = &it->pieces[worker];
	const char *what = !p->sum ? "forward" : p->kind == 'L' ? "loss" : "backward";
	int rc;

	if (!p->sum)
		rc = chain_forward(p->chain, &r->means);
	else if (p->kind == 'L')
		rc = chain_loss(p->chain, &r->means, p->sum->executor, p->sum->number, worker);
	else
		rc = chain_backward(p->chain, &r->means, p->sum->executor, p->sum->number,
				    p->stage, worker);
	if (rc != 0)
		return error_set(err, rc, "microbatch %u: its %s in stage %u fails: %s",
				 p->chain->route->microbatch, what, p->stage, strerror(-rc));
	return 0;
}

static void finish_piece(void *context, unsigned worker)
{
	struct iteration *it = context;
	struct piece *p = &it->pieces[worker];

	it->busy[p->stage] = false;
	if (p->sum)
		p->sum->done++;
	if (!p->sum)
		chain_forwarded(p->chain);
	else if (p->kind == 'L')
		chain_lost(p->chain);
	else
		chain_went_back(p->chain, &it->replay->means, worker);
}

static enum task_pool_finding find_counted(struct iteration *it, struct piece *p)
{
	bool all = true;

	for (size_t i = 0; i < it->c->n_orders; i++) {
		struct sum *s = &it->sums[i];
		const struct store_counted *what = &s->order->counted[s->done];
		struct chain *m;

		if (s->done == s->order->n_counted)
			continue;
		all = false;
		if (it->busy[s->order->stage])
			continue;
		m = find_chain(it, what->microbatch);
		if (!chain_ready(m, what->kind, s->order->stage))
			continue;
		*p = (struct piece){ m, s, s->order->stage, what->kind };
		return TASK_POOL_FOUND;
	}
	return all ? TASK_POOL_ALL_DONE : TASK_POOL_NOTHING_NOW;
}

static enum task_pool_finding find_forward(struct iteration *it, struct piece *p)
{
	for (size_t i = 0; i < it->c->n_routes; i++) {
		struct chain *m = &it->chains[i];
		uint8_t stage;

		if (m->forwarded == m->route->n_hops)
			continue;
		stage = m->route->stages[m->forwarded];
		if (it->busy[stage])
			continue;
		*p = (struct piece){ m, NULL, stage, 'F' };
		return TASK_POOL_FOUND;
	}
	return TASK_POOL_NOTHING_NOW;
}

/* A stage is one worker's at a time. All is done when all was counted: every visit is (audit.h). */
static enum task_pool_finding find_piece(void *context, unsigned worker)
{
	struct iteration *it = context;
	struct piece *p = &it->pieces[worker];
	enum task_pool_finding found = find_counted(it, p);

	if (found == TASK_POOL_NOTHING_NOW)
		found = find_forward(it, p);
	if (found == TASK_POOL_FOUND)
		it->busy[p->stage] = true;
	return found;
}

/* ---- the step ---- */

static const struct sum *find_sum(const struct iteration *it, uint16_t node, uint8_t stage)
{
	for (size_t i = 0; i < it->c->n_orders; i++)
		if (it->sums[i].order->node == node && it->sums[i].order->stage == stage)
			return &it->sums[i];
	return NULL;
}

/* The first node's sum, plus the others' in order. A node that counted nothing adds zeros, as it
 * did then: that turns a -0 into a 0. part: room for one. */
static int add_up(const struct iteration *it, const struct store_reduction *red, size_t n,
		  float *to, float *part)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < red->n_nodes; i++) {
		const struct sum *s = find_sum(it, red->nodes[i], red->stage);

		if (s)
			rc = executor_sum(s->executor, red->stage, s->number, i ? part : to);
		else
			memset(i ? part : to, 0, n * sizeof(*to));
		if (i > 0)
			stage_add(to, part, n);
	}
	return rc;
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
	int rc;

	if (!sum)
		return no_memory(err);
	rc = add_up(it, red, n, sum, sum + n);
	if (rc == 0) {
		*squares += stage_sum_squares(sum, n);
		rc = stage_step(stage, sum, c->scale, &h, c->iteration);
	}
	free(sum);
	if (rc != 0)
		return error_set(err, rc, "the step of stage %u fails: %s", red->stage, strerror(-rc));
	return give_weights(r, red->stage, err);
}

/* ---- one iteration ---- */

static float mean_loss(const struct iteration *it)
{
	double sum = 0;

	for (size_t i = 0; i < it->c->n_routes; i++)
		sum += (double)it->chains[i].loss;
	return it->c->n_routes ? (float)(sum / (double)it->c->n_routes) : 0.0f;
}

static int begin_iteration(struct replay *r, struct iteration *it)
{
	const struct store_commit *c = it->c;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < r->kinds.n; i++)
		rc = executor_begin(r->kinds.list[i].executor, (uint32_t)c->n_orders);
	for (size_t i = 0; i < c->n_orders; i++)
		it->sums[i] = (struct sum){ .order = &c->orders[i],
					    .number = (uint32_t)i,
					    .executor = kinds_find(&r->kinds, c->orders[i].device)
								->executor };
	return rc;
}

/* The executor of a node of a stage in this iteration; one that counted nothing: the first. */
static struct executor *executor_of(const struct replay *r, const struct iteration *it,
				    uint16_t node, uint8_t stage)
{
	const struct sum *s = find_sum(it, node, stage);

	return s ? s->executor : r->kinds.list[0].executor;
}

/* A task of a microbatch by a node of another kind than the one that is on its way in the end. */
static int see_task(void *context, const struct store_task *t)
{
	const struct iteration *it = context;
	const struct chain *m = find_chain(it, t->microbatch);
	const struct sum *s = NULL;

	for (size_t i = 0; !s && i < it->c->n_orders; i++)
		if (it->sums[i].order->node == t->node)
			s = &it->sums[i];
	if (!s || m->route->microbatch != t->microbatch)
		return !s; /* no sum of this node is left to compare with */
	for (uint32_t h = 0; h < m->route->n_hops; h++)
		if (m->route->stages[h] == s->order->stage && m->with[h] != s->executor)
			return 1;
	return 0;
}

/* 1: whose output some nodes used is not known, and unlike nodes made it; 0; an error. */
static int is_uncertain(struct replay *r, struct iteration *it, struct error *err)
{
	if (r->kinds.n == 1 || it->c->n_routes == 0)
		return 0;
	return it->c->rerun > 0 ? 1 : store_each_task(r->store, it->c->iteration, see_task, it, err);
}

static int compute_iteration(struct replay *r, struct iteration *it, double *squares,
			     struct error *err)
{
	static const struct task_pool_work work = { find_piece, run_piece, finish_piece, unwind_blocked };
	const struct store_commit *c = it->c;
	int rc = begin_iteration(r, it);

	if (rc != 0)
		return error_set(err, rc, "sums: %s", strerror(-rc));
	for (size_t i = 0; rc == 0 && i < c->n_routes; i++) {
		struct chain *m = &it->chains[i];

		rc = make_chain(r, m, &c->routes[i], c->iteration, err);
		for (uint32_t h = 0; rc == 0 && h < m->route->n_hops; h++)
			m->with[h] = executor_of(r, it, m->route->nodes[h], m->route->stages[h]);
	}
	if (rc == 0)
		rc = task_pool_run(&work, it, r->workers, err);
	for (size_t i = 0; rc == 0 && i < c->n_reductions; i++)
		rc = replay_step(r, it, &c->reductions[i], squares, err);
	return rc;
}

int replay_commit(struct replay *r, const struct store_commit *c, struct replayed *out,
		  struct error *err)
{
	struct iteration it = { .c = c, .replay = r };
	double squares = 0;
	int rc;

	it.chains = calloc(c->n_routes + 1, sizeof(*it.chains));
	it.sums = calloc(c->n_orders + 1, sizeof(*it.sums));
	it.busy = calloc(r->config.n_stages, sizeof(*it.busy));
	if (it.chains && it.sums && it.busy)
		rc = compute_iteration(r, &it, &squares, err);
	else
		rc = no_memory(err);
	if (rc == 0)
		rc = is_uncertain(r, &it, err);
	if (rc >= 0)
		*out = (struct replayed){ .loss = mean_loss(&it),
					  .norm = sqrt(squares) / (double)c->n_routes,
					  .uncertain = rc == 1 };
	for (size_t i = 0; it.chains && i < c->n_routes; i++)
		chain_clear(&it.chains[i]);
	free(it.busy);
	free(it.sums);
	free(it.chains);
	return rc >= 0 ? 0 : error_prefix(err, rc, "iteration %" PRIu64, c->iteration);
}
