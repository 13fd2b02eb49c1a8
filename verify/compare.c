/* Iteration by iteration: restores that happened before it, the audit of its record, its
 * computation, then losses, norms and the weights' hashes beside what was recorded. A
 * damaged record ends it; a difference is counted and it goes on. */
#include "verify/compare.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "verify/audit.h"
#include "verify/replay.h"

bool compare_equal(const struct compare_result *r)
{
	return !r->broken.text[0] && r->differing == 0 && r->losses_off == 0 && r->norms_off == 0;
}

struct hashes {
	const struct replay *replay;
	struct compare_result *result;
	bool *told;      /* (n_stages) */
	uint64_t *first; /* (n_stages) what the first node told */
	bool uncertain;  /* whether a difference may be no one's fault */
};

static void count_hash(const struct store_hash *h, uint64_t here, struct compare_result *out)
{
	out->announced++;
	if (h->hash == here)
		return;
	if (out->differing++ == 0) {
		out->first = *h;
		out->first_here = here;
	}
}

static void begin_unlike(struct compare_result *out, uint64_t iteration, const char *why)
{
	if (out->unlike_from)
		return;
	out->unlike_from = iteration;
	out->unlike_why = why;
}

/* With the replay's weights; where these have drifted, with what the stage's first node told. */
static int see_hash(void *context, const struct store_hash *h)
{
	struct hashes *x = context;
	uint64_t here;

	if (h->stage >= replay_config(x->replay)->n_stages)
		return 0;
	here = replay_hash(x->replay, h->stage);
	if (h->hash != here && x->uncertain)
		begin_unlike(x->result, h->iteration,
			     "there nodes of unlike kinds stood in for one another");
	if (!x->told[h->stage])
		x->first[h->stage] = h->hash;
	x->told[h->stage] = true;
	count_hash(h, x->result->unlike_from ? x->first[h->stage] : here, x->result);
	return 0;
}

static int compare_hashes(struct store *s, const struct replay *replay, uint64_t iteration,
			  bool uncertain, struct compare_result *out, struct error *err)
{
	uint32_t n_stages = replay_config(replay)->n_stages;
	struct hashes x = { .replay = replay, .result = out, .uncertain = uncertain,
			    .told = calloc(n_stages, sizeof(*x.told)),
			    .first = calloc(n_stages, sizeof(*x.first)) };
	int rc = -ENOMEM;

	if (x.told && x.first)
		rc = store_each_hash(s, iteration, see_hash, &x, err);
	else
		error_set(err, rc, "out of memory");
	for (uint32_t i = 0; rc == 0 && i < n_stages; i++)
		out->unannounced += !x.told[i];
	free(x.told);
	free(x.first);
	return rc;
}

static double limit_of(const struct compare_result *r)
{
	return r->unlike_from ? r->unlike_limit : COMPARE_LOSS_LIMIT;
}

/* The part of it that two numbers differ by. */
static double relative_distance(double recorded, double here)
{
	return fabs(recorded - here) / fmax(fabs(recorded), 1e-30);
}

static void compare_loss(uint64_t iteration, float recorded, float here,
			 struct compare_result *out)
{
	double off = relative_distance((double)recorded, (double)here);

	out->losses++;
	out->losses_equal += memcmp(&recorded, &here, sizeof(here)) == 0;
	if (isnan(off) || off > out->worst_loss)
		out->worst_loss = off;
	if (off <= limit_of(out))
		return;
	if (out->losses_off++ == 0) {
		out->first_loss_iteration = iteration;
		out->first_loss_recorded = (double)recorded;
		out->first_loss_here = (double)here;
	}
}

/* Only where hashes say nothing: they say more. */
static void compare_norm(uint64_t iteration, double recorded, double here,
			 struct compare_result *out)
{
	double off = relative_distance(recorded, here);

	if (!out->unlike_from || recorded == 0)
		return;
	if (isnan(off) || off > out->worst_norm)
		out->worst_norm = off;
	if (!(off <= COMPARE_NORM_TIMES * out->unlike_limit) && out->norms_off++ == 0)
		out->first_norm_iteration = iteration;
}

struct comparison {
	struct store *store;
	struct replay *replay;
	const struct compare_options *options;
	struct compare_result *result;
	bool uncertain; /* an iteration so far was: its weights may be others */
	bool counted[UINT16_MAX + 1];   /* nodes that have */
	struct store_restore *restores; /* (n_restores) as they happened */
	size_t n_restores, room_restores;
};

static void see_nodes(struct comparison *x, const struct store_commit *c)
{
	for (size_t i = 0; i < c->n_orders; i++) {
		bool *counted = &x->counted[c->orders[i].node];

		if (c->orders[i].n_counted == 0 || *counted)
			continue;
		*counted = true;
		x->result->nodes++;
	}
}

/* ---- stages that were put back ---- */

static int see_restore(void *context, const struct store_restore *r)
{
	struct comparison *x = context;

	if (r->stage >= replay_config(x->replay)->n_stages)
		return 0;
	if (!array_grow(&x->restores, &x->room_restores, x->n_restores + 1, sizeof(*x->restores)))
		return -ENOMEM;
	x->restores[x->n_restores++] = *r;
	return 0;
}

/* Between an iteration and the next: what came from a checkpoint must be what is here; what was
 * made of neighbours is made of them again. */
static int compare_restores(struct comparison *x, uint64_t iteration, struct error *err)
{
	for (size_t i = 0; i < x->n_restores; i++) {
		const struct store_restore *r = &x->restores[i];
		const struct store_hash h = { iteration, r->hash, r->node, r->stage };
		int rc = 0;

		if (r->iteration != iteration)
			continue;
		if (r->n_from > 0)
			rc = replay_average(x->replay, r, err);
		if (rc != 0)
			return rc;
		if (r->n_from > 0)
			x->result->averaged++;
		else
			x->result->restored++;
		if (!x->result->unlike_from &&
		    (iteration >= x->options->from || x->options->from == 1))
			count_hash(&h, replay_hash(x->replay, h.stage), x->result);
	}
	return 0;
}

static int compare_iteration(struct comparison *x, uint64_t iteration, struct error *err)
{
	struct replay *replay = x->replay;
	struct compare_result *out = x->result;
	struct store_commit c;
	struct replayed again;
	int rc = store_read_commit(x->store, iteration, &c, err);

	if (rc != 0)
		return rc;
	rc = audit_commit(store_run_of(x->store), &c, replay_config(replay)->n_stages, err);
	if (rc == 0)
		rc = replay_commit(replay, &c, &again, err);
	if (rc == 0) {
		out->replayed++;
		x->uncertain = x->uncertain || again.uncertain;
		if (iteration >= x->options->from) {
			see_nodes(x, &c);
			rc = compare_hashes(x->store, replay, iteration,
					    x->uncertain || again.uncertain, out, err);
			compare_loss(iteration, c.loss, again.loss, out);
			compare_norm(iteration, c.gradient_norm, again.norm, out);
		}
	}
	store_commit_clear(&c);
	return rc;
}

static int compare_range(struct comparison *x, uint64_t to, struct error *err)
{
	const struct compare_options *o = x->options;
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i <= to; i++) {
		struct error why = { "" };

		rc = i > 0 ? compare_iteration(x, i, &why) : 0;
		if (rc == 0)
			rc = compare_restores(x, i, &why);
		if (rc == -EPROTO) {
			x->result->broken = why;
			return 0;
		}
		if (rc != 0)
			return error_set(err, rc, "%s", why.text);
		if (o->progress && i > 0)
			o->progress(o->context, i, to);
	}
	return rc;
}

/* What computed the run and what does here; whether that can be the same bits. */
static void take_kinds(struct compare_result *out, const struct kinds *k)
{
	bool bf16 = false;

	out->n_kinds = k->n;
	for (uint32_t i = 0; i < k->n; i++) {
		struct compare_kind *to = &out->kinds[i];

		snprintf(to->device, sizeof(to->device), "%s", k->list[i].device);
		snprintf(to->here, sizeof(to->here), "%s", executor_text(k->list[i].executor));
		to->nodes = k->list[i].nodes;
		to->exact = k->list[i].exact;
		bf16 = bf16 || strstr(to->device, ":bf16") || strstr(to->here, ":bf16");
	}
	out->unlike_limit = bf16 ? COMPARE_UNLIKE_BF16_LIMIT : COMPARE_UNLIKE_LIMIT;
	if (!k->exact)
		begin_unlike(out, 1, "another kind of device computed than does here");
}

/* Every iteration from the first is computed, those asked for are compared: weights come from
 * the beginning. */
int compare_run(struct store *s, const struct compare_options *o, struct compare_result *out,
		struct error *err)
{
	struct compare_result result = { 0 };
	struct comparison x = { .store = s, .options = o, .result = &result };
	uint64_t to;
	int rc = store_last_commit(s, &result.last, err);

	if (rc != 0)
		return rc;
	to = o->to && o->to < result.last ? o->to : result.last;
	if (to == 0 || o->from > to)
		return error_set(err, -ENODATA,
				 "nothing to compare: the last committed iteration is %" PRIu64,
				 result.last);
	rc = replay_new(&x.replay, s, o->device, o->workers, err);
	if (rc != 0)
		return rc;
	take_kinds(&result, replay_kinds(x.replay));
	rc = store_each_restore(s, see_restore, &x, err);
	if (rc == 0)
		rc = compare_range(&x, to, err);
	free(x.restores);
	replay_free(x.replay);
	if (rc == 0 && !result.broken.text[0] && result.announced == 0)
		rc = error_set(err, -ENODATA, "nothing to compare: no node announced its weights");
	if (rc == 0)
		*out = result;
	return rc;
}
