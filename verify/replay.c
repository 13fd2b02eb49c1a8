#include "verify/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/average.h"
#include "model/corpus.h"
#include "model/stage.h"
#include "verify/chain.h"
#include "verify/crew.h"

struct replay {
	const struct store_run *run;
	struct model_config config;
	struct corpus *corpus;
	unsigned workers;
	struct chain_means means; /* the model, and room for each worker */
};

/* One node's sum of one stage. */
struct sum {
	const struct store_order *order;
	uint32_t done;   /* of order->counted */
	float *gradient; /* (P) when it is not in the stage itself */
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
	struct sum **held;    /* (n_stages) whose sum is in the stage now; NULL nobody's */
	struct replay *replay;
	bool *busy;           /* (n_stages) a worker is at it */
	struct piece pieces[CREW_MOST]; /* what each worker does */
};

void replay_free(struct replay *r)
{
	if (!r)
		return;
	for (uint32_t s = 0; r->means.stages && s < r->config.n_stages; s++)
		stage_free(r->means.stages[s]);
	free(r->means.stages);
	corpus_free(r->corpus);
	for (unsigned w = 0; w < r->workers; w++) {
		free(r->means.scratch[w]);
		free(r->means.spare[w]);
	}
	free(r);
}

static int no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "out of memory");
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

static int make_stages(struct replay *r, const char *device, struct error *err)
{
	struct stage_options o = { .slots = 1, .batch = r->run->batch,
				   .sequence = r->run->sequence, .threads = r->run->threads,
				   .seed = r->run->seed, .device = device };
	int rc = 0;

	r->means.stages = calloc(r->config.n_stages, sizeof(*r->means.stages));
	if (!r->means.stages)
		return no_memory(err);
	for (uint32_t s = 0; rc == 0 && s < r->config.n_stages; s++)
		rc = stage_new(&r->means.stages[s], &r->config, s, &o, err);
	if (rc != 0)
		return rc;
	r->means.activation = stage_activation(r->means.stages[0]);
	for (unsigned w = 0; w < r->workers; w++) {
		r->means.scratch[w] = malloc(r->means.activation * sizeof(float));
		r->means.spare[w] = malloc(r->means.activation * sizeof(float));
		if (!r->means.scratch[w] || !r->means.spare[w])
			return no_memory(err);
	}
	return 0;
}

int replay_new(struct replay **out, const struct store_run *run, const char *device,
	       unsigned workers, struct error *err)
{
	struct replay *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return no_memory(err);
	r->run = run;
	r->workers = workers < 1 ? 1 : workers > CREW_MOST ? CREW_MOST : workers;
	rc = model_config_parse(&r->config, NULL, run->model, strlen(run->model),
				"the run's model", err);
	if (rc == 0)
		rc = open_corpus(r, err);
	if (rc == 0)
		rc = make_stages(r, device, err);
	if (rc != 0) {
		replay_free(r);
		return rc;
	}
	*out = r;
	return 0;
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
		average_of(r->means.stages[how->stage], r->means.stages[how->from[i]],
			   how->weight[i], i == 0);
	return 0;
}

uint64_t replay_hash(const struct replay *r, uint32_t stage)
{
	return stage_hash(r->means.stages[stage]);
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

/* Puts a node's sum in the stage's own gradient, where the stage adds to it. */
static int hold(struct replay *r, struct iteration *it, struct sum *s, struct error *err)
{
	struct stage *stage = r->means.stages[s->order->stage];
	struct sum **held = &it->held[s->order->stage];
	size_t bytes = stage_parameters(stage) * sizeof(float);

	if (*held == s)
		return 0;
	if (*held) {
		if (!(*held)->gradient)
			(*held)->gradient = malloc(bytes);
		if (!(*held)->gradient)
			return no_memory(err);
		memcpy((*held)->gradient, stage_gradient(stage), bytes);
	}
	if (s->gradient) {
		memcpy(stage_gradient(stage), s->gradient, bytes);
		stage_changed(stage);
	} else {
		stage_zero_gradient(stage);
	}
	*held = s;
	return 0;
}

static struct chain *find_chain(struct iteration *it, uint32_t microbatch)
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

/* ---- the crew's part ---- */

static int run_piece(void *context, unsigned worker, struct error *err)
{
	struct iteration *it = context;
	struct replay *r = it->replay;
	const struct piece *p = &it->pieces[worker];
	const char *what = !p->sum ? "forward" : p->kind == 'L' ? "loss" : "backward";
	int rc = p->sum ? hold(r, it, p->sum, err) : 0;

	if (rc != 0)
		return rc;
	if (!p->sum)
		rc = chain_forward(p->chain, &r->means);
	else if (p->kind == 'L')
		rc = chain_loss(p->chain, &r->means, worker);
	else
		rc = chain_backward(p->chain, &r->means, p->stage, worker);
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

static enum crew_finding find_counted(struct iteration *it, struct piece *p)
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
		return CREW_FOUND;
	}
	return all ? CREW_ALL_DONE : CREW_NOTHING_NOW;
}

static enum crew_finding find_forward(struct iteration *it, struct piece *p)
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
		return CREW_FOUND;
	}
	return CREW_NOTHING_NOW;
}

/* A stage is one worker's at a time. All is done when all was counted: every visit is (audit.h). */
static enum crew_finding find_piece(void *context, unsigned worker)
{
	struct iteration *it = context;
	struct piece *p = &it->pieces[worker];
	enum crew_finding found = find_counted(it, p);

	if (found == CREW_NOTHING_NOW)
		found = find_forward(it, p);
	if (found == CREW_FOUND)
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
 * did then: that turns a -0 into a 0. */
static int add_up(struct replay *r, const struct iteration *it, const struct store_reduction *red,
		  float *to, struct error *err)
{
	struct stage *stage = r->means.stages[red->stage];
	size_t n = stage_parameters(stage);
	float *zeros = calloc(n, sizeof(*zeros));

	if (!zeros)
		return no_memory(err);
	for (uint32_t i = 0; i < red->n_nodes; i++) {
		const struct sum *s = find_sum(it, red->nodes[i], red->stage);
		const float *part = s && s->gradient ? s->gradient : zeros;

		if (s && it->held[red->stage] == s)
			part = stage_gradient(stage);
		if (i == 0)
			memcpy(to, part, n * sizeof(*to));
		else
			stage_add(to, part, n);
	}
	free(zeros);
	return 0;
}

static int step(struct replay *r, const struct iteration *it, const struct store_reduction *red,
		struct error *err)
{
	const struct store_commit *c = it->c;
	struct adamw h = { .lr = c->lr, .beta1 = c->beta1, .beta2 = c->beta2, .eps = c->eps,
			   .weight_decay = c->weight_decay };
	struct stage *stage = r->means.stages[red->stage];
	float *sum = malloc(stage_parameters(stage) * sizeof(*sum));
	int rc;

	if (!sum)
		return no_memory(err);
	rc = add_up(r, it, red, sum, err);
	if (rc == 0) {
		rc = stage_step(stage, sum, c->scale, &h, c->iteration);
		if (rc != 0)
			error_set(err, rc, "the step of stage %u fails: %s", red->stage, strerror(-rc));
	}
	free(sum);
	return rc;
}

/* ---- one iteration ---- */

static float mean_loss(const struct iteration *it)
{
	double sum = 0;

	for (size_t i = 0; i < it->c->n_routes; i++)
		sum += (double)it->chains[i].loss;
	return it->c->n_routes ? (float)(sum / (double)it->c->n_routes) : 0.0f;
}

static int compute(struct replay *r, struct iteration *it, struct error *err)
{
	static const struct crew_work work = { find_piece, run_piece, finish_piece, unwind_blocked };
	const struct store_commit *c = it->c;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->n_routes; i++)
		rc = make_chain(r, &it->chains[i], &c->routes[i], c->iteration, err);
	for (size_t i = 0; i < c->n_orders; i++)
		it->sums[i].order = &c->orders[i];
	if (rc == 0)
		rc = crew_run(&work, it, r->workers, err);
	for (size_t i = 0; rc == 0 && i < c->n_reductions; i++)
		rc = step(r, it, &c->reductions[i], err);
	return rc;
}

int replay_commit(struct replay *r, const struct store_commit *c, float *loss, struct error *err)
{
	struct iteration it = { .c = c, .replay = r };
	int rc;

	it.chains = calloc(c->n_routes + 1, sizeof(*it.chains));
	it.sums = calloc(c->n_orders + 1, sizeof(*it.sums));
	it.held = calloc(r->config.n_stages, sizeof(*it.held));
	it.busy = calloc(r->config.n_stages, sizeof(*it.busy));
	if (it.chains && it.sums && it.held && it.busy)
		rc = compute(r, &it, err);
	else
		rc = no_memory(err);
	if (rc == 0)
		*loss = mean_loss(&it);
	for (size_t i = 0; it.chains && i < c->n_routes; i++)
		chain_clear(&it.chains[i]);
	for (size_t i = 0; it.sums && i < c->n_orders; i++)
		free(it.sums[i].gradient);
	free(it.busy);
	free(it.held);
	free(it.sums);
	free(it.chains);
	return rc == 0 ? 0 : error_prefix(err, rc, "iteration %" PRIu64, c->iteration);
}
