/* Compares a run with its replay, iteration by iteration. For each iteration it repeats the
 * restores before the iteration, audits the iteration's record and recomputes the iteration. Then
 * it compares the hashes of the weights, the loss and the norm of the gradient. A broken rule of
 * the audit ends the comparison. A difference is counted, and the comparison continues, so that the
 * operator sees how many results differ. */
#include "verify/compare.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "model/files/run_parts.h"
#include "verify/audit.h"
#include "verify/later_weights.h"
#include "verify/replay.h"

struct comparison {
	struct store *store;
	struct replay *replay;
	const struct compare_options *options;
	struct compare_result *result;
	/* True for each node that counted a gradient in a compared iteration. */
	bool has_counted[UINT16_MAX + 1];
	/* The n_restores restored stages, in the order of their restores. */
	struct store_restore *restores;
	size_t n_restores, room_restores;
	/* The checkpoint with which the replay begins if the weights with which the run began are
	 * gone. */
	struct later_weights later;
	/* The replay has no weights yet, because it has not reached the iteration of `later`. */
	bool lacks_weights;
	/* Index in `restores` of the first restore that belongs to the present part of the run or
	 * to a later part. Earlier restores concern stages that the replay no longer has. */
	size_t next_restore;
};

bool compare_equal(const struct compare_result *r)
{
	return !r->broken_rule.text[0] && r->weights.differing == 0 && r->losses.differing == 0 &&
	       r->norms.differing == 0;
}

/* ---- weights ---- */

struct hashes {
	const struct replay *replay;
	struct compare_result *result;
	/* For each of the n_stages stages, true if a node reported a hash of it. */
	bool *announced;
	uint64_t *first; /* for each of the n_stages stages, the first reported hash */
	uint64_t except; /* bit mask of the stages whose hashes are not compared */
};

static void count_hash(const struct store_hash *h, uint64_t expected, struct compare_weights *out)
{
	out->compared++;
	if (h->hash == expected)
		return;
	if (out->differing++ == 0) {
		out->first_differing = *h;
		out->first_expected = expected;
	}
}

/* Compares a reported hash with the replay's weights. If tolerances apply, compares the hash with
 * the first reported hash of the same stage, because even then replicas must be equal. */
static int see_hash(void *context, const struct store_hash *h)
{
	struct hashes *x = context;

	if (h->stage >= replay_config(x->replay)->n_stages)
		return 0;
	if (!x->announced[h->stage])
		x->first[h->stage] = h->hash;
	x->announced[h->stage] = true;
	if (x->except >> h->stage & 1)
		return 0;
	count_hash(h, x->result->tolerance_from ? x->first[h->stage]
						: replay_hash(x->replay, h->stage),
		   &x->result->weights);
	return 0;
}

/* Compares the hashes that nodes announced with the commit. except: bit mask of the stages whose
 * hashes are not compared. */
static int compare_hashes(struct comparison *x, uint64_t iteration, uint64_t except,
			  struct error *err)
{
	uint32_t n_stages = replay_config(x->replay)->n_stages;
	struct hashes h = { .replay = x->replay, .result = x->result, .except = except,
			    .announced = alloc_array(n_stages, sizeof(*h.announced)),
			    .first = alloc_array(n_stages, sizeof(*h.first)) };
	int rc = store_each_hash(x->store, iteration, see_hash, &h, err);

	for (uint32_t i = 0; rc == 0 && i < n_stages; i++)
		x->result->weights.unannounced += !h.announced[i];
	free(h.announced);
	free(h.first);
	return rc;
}

/* ---- losses and norms ---- */

static double relative_difference(double recorded, double here)
{
	return fabs(recorded - here) / fmax(fabs(recorded), 1e-30);
}

static void compare_loss(uint64_t iteration, float recorded, float here,
			 struct compare_result *r)
{
	struct compare_losses *out = &r->losses;
	double difference = relative_difference((double)recorded, (double)here);

	out->compared++;
	out->equal_bits += memcmp(&recorded, &here, sizeof(here)) == 0;
	if (isnan(difference) || difference > out->largest)
		out->largest = difference;
	if (difference <= (r->tolerance_from ? r->tolerance : COMPARE_LOSS_LIMIT))
		return;
	if (out->differing++ == 0) {
		out->first_differing = iteration;
		out->first_recorded = (double)recorded;
		out->first_here = (double)here;
	}
}

/* If tolerances apply, compares the norm of the gradient. If weights are compared bit for bit,
 * equal weights already prove equal norms. */
static void compare_norm(uint64_t iteration, double recorded, double here,
			 struct compare_result *r)
{
	struct compare_norms *out = &r->norms;
	double difference = relative_difference(recorded, here);

	if (!r->tolerance_from || recorded == 0)
		return;
	if (isnan(difference) || difference > out->largest)
		out->largest = difference;
	if (!(difference <= COMPARE_NORM_FACTOR * r->tolerance) && out->differing++ == 0)
		out->first_differing = iteration;
}

/* ---- devices ---- */

/* Adds to result->nodes the nodes that counted a gradient in this iteration and in no earlier
 * iteration. */
static void see_nodes(struct comparison *x, const struct store_commit *c)
{
	for (size_t i = 0; i < c->n_orders; i++) {
		bool *counted = &x->has_counted[c->orders[i].node];

		if (c->orders[i].n_counted == 0 || *counted)
			continue;
		*counted = true;
		x->result->nodes++;
	}
}

static bool all_devices_match(const struct devices *d)
{
	for (uint32_t i = 0; i < d->n; i++)
		if (!d->list[i].matches)
			return false;
	return true;
}

/* Returns true if a device of another kind may have computed in the iteration. The record names
 * only the devices of nodes that counted a gradient. If microbatches ran again, a node that
 * counted nothing may have computed an output that other nodes used. In this case every device of
 * the run must match. */
static bool has_other_device(const struct devices *d, const struct store_commit *c)
{
	if (c->repeats.rerun > 0 && !all_devices_match(d))
		return true;
	for (size_t i = 0; i < c->n_orders; i++)
		if (c->orders[i].n_counted > 0 && !devices_match(d, c->orders[i].device))
			return true;
	return false;
}

static double tolerance_of(const struct devices *d)
{
	bool bf16 = strstr(d->text, ":bf16") != NULL;

	for (uint32_t i = 0; i < d->n; i++)
		bf16 = bf16 || strstr(d->list[i].text, ":bf16");
	return bf16 ? COMPARE_TOLERANCE_BF16 : COMPARE_TOLERANCE;
}

/* ---- restored stages ---- */

static int see_restore(void *context, const struct store_restore *r)
{
	struct comparison *x = context;

	array_reserve(&x->restores, &x->room_restores, x->n_restores + 1, sizeof(*x->restores));
	x->restores[x->n_restores++] = *r;
	return 0;
}

/* Returns true if a later restore after the same iteration replaced the stage of restore i. */
static bool is_replaced(const struct comparison *x, size_t i)
{
	for (size_t k = i + 1; k < x->n_restores; k++)
		if (x->restores[k].iteration == x->restores[i].iteration &&
		    x->restores[k].stage == x->restores[i].stage)
			return true;
	return false;
}

/* Repeats the restores that followed an iteration. If a stage was restored from a checkpoint, it
 * must equal the replay's stage. If a stage was restored as an average of other stages, the
 * replay computes the average again. If the replay began with a checkpoint of this iteration, the
 * checkpoint already has the averages. In this case only the last average of each stage is
 * compared, not its earlier averages. */
static int compare_restores(struct comparison *x, uint64_t iteration, struct error *err)
{
	struct compare_weights *out = &x->result->weights;
	const struct run_part *next = replay_next_part(x->replay);
	size_t end = next && next->n_restores < x->n_restores ? next->n_restores : x->n_restores;

	for (size_t i = x->next_restore; i < end; i++) {
		const struct store_restore *r = &x->restores[i];
		const struct store_hash h = { iteration, r->hash, r->node, r->stage };
		bool saved = r->n_from > 0 && iteration == x->result->began_after;
		int rc = 0;

		if (r->iteration != iteration || x->lacks_weights ||
		    r->stage >= replay_config(x->replay)->n_stages ||
		    (saved && is_replaced(x, i)))
			continue;
		if (r->n_from > 0 && !saved)
			rc = replay_average(x->replay, r, err);
		if (rc != 0)
			return rc;
		if (r->n_from > 0)
			out->averaged++;
		else
			out->restored++;
		if (!x->result->tolerance_from &&
		    (iteration >= x->options->from || x->options->from == 1))
			count_hash(&h, replay_hash(x->replay, h.stage), out);
	}
	return 0;
}

/* ---- the run ---- */

static int compare_iteration(struct comparison *x, uint64_t iteration, struct error *err)
{
	struct compare_result *out = x->result;
	struct store_commit c;
	struct replayed again;
	int rc = store_read_commit(x->store, iteration, &c, err);

	if (rc != 0)
		return rc;
	rc = audit_commit(replay_part(x->replay), &c, replay_config(x->replay)->n_stages, err);
	if (rc != 0 || x->lacks_weights) {
		store_commit_clear(&c);
		return rc;
	}
	rc = replay_commit(x->replay, &c, &again, err);
	if (rc == 0) {
		out->replayed++;
		if (!out->tolerance_from && has_other_device(&out->devices, &c))
			out->tolerance_from = iteration;
	}
	if (rc == 0 && iteration >= x->options->from) {
		see_nodes(x, &c);
		rc = compare_hashes(x, iteration, 0, err);
		if (!out->rehearsal)
			compare_loss(iteration, c.loss, again.loss, out);
		compare_norm(iteration, c.gradient_norm, again.norm, out);
	}
	store_commit_clear(&c);
	return rc;
}

/* Returns a bit mask of the stages that were replaced by an average of other stages after the
 * iteration. */
static uint64_t averaged_after(const struct comparison *x, uint64_t iteration)
{
	uint64_t stages = 0;

	for (size_t i = x->next_restore; i < x->n_restores; i++)
		if (x->restores[i].iteration == iteration && x->restores[i].n_from > 0)
			stages |= UINT64_C(1) << x->restores[i].stage;
	return stages;
}

/* Loads the checkpoint with which the replay begins, if the checkpoint is of this iteration and
 * of the present part. Compares the checkpoint's weights with the weights that nodes announced,
 * unless the announced weights are those of former stages. A stage that an average replaced after
 * the iteration is not compared here but with its restores. */
static int begin_later(struct comparison *x, uint64_t iteration, struct error *err)
{
	int rc;

	if (!x->lacks_weights || iteration != x->later.iteration || replay_next_part(x->replay))
		return 0;
	x->lacks_weights = false;
	rc = replay_load(x->replay, &x->later, x->options->run, err);
	if (rc != 0 || iteration < x->options->from ||
	    iteration == replay_part(x->replay)->after)
		return rc;
	return compare_hashes(x, iteration, averaged_after(x, iteration), err);
}

/* If the run changed its stages after this iteration, makes the same change in the replay. */
static int change_stages(struct comparison *x, uint64_t iteration, struct error *err)
{
	int rc;

	while ((rc = replay_recut(x->replay, iteration, err)) == 1) {
		x->result->cuts++;
		x->next_restore = replay_part(x->replay)->n_restores;
		rc = begin_later(x, iteration, err);
		if (rc == 0)
			rc = compare_restores(x, iteration, err);
		if (rc != 0)
			break;
	}
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
			rc = begin_later(x, i, &why);
		if (rc == 0)
			rc = compare_restores(x, i, &why);
		if (rc == 0)
			rc = change_stages(x, i, &why);
		if (rc == -EPROTO) {
			x->result->broken_rule = why;
			return 0;
		}
		if (rc != 0)
			return error_set(err, rc, "%s", why.text);
		if (o->progress && i > 0)
			o->progress(o->context, i, to);
	}
	return rc;
}

/* Gives the replay the weights with which the run began. If these weights are gone and the
 * operator has not named a folder for them, finds a checkpoint with which the replay can
 * begin. */
static int begin(struct comparison *x, uint64_t to, struct error *err)
{
	const struct compare_options *o = x->options;
	struct compare_result *out = x->result;
	struct error ignored = { "" };
	int rc = replay_begin(x->replay, x->store, o->run, o->weights, err);

	if (rc == 0 || rc == -ENOMEM || rc == -EIO || !replay_knows_origin(x->replay) ||
	    o->weights ||
	    later_weights_find(&x->later, x->store, o->run, &ignored) != 0 ||
	    x->later.iteration == 0 || x->later.iteration >= to)
		return rc;
	x->lacks_weights = true;
	out->began_after = x->later.iteration;
	out->began_late_why = *err;
	if (out->began_after >= o->from)
		out->unproved = out->began_after - o->from + 1;
	return 0;
}

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
	rc = devices_choose(&result.devices, s, o->device, err);
	if (rc != 0)
		return rc;
	result.tolerance = tolerance_of(&result.devices);
	rc = replay_new(&x.replay, s, result.devices.name, o->workers, err);
	if (rc != 0)
		return rc;
	result.rehearsal = replay_config(x.replay)->rehearsal;
	rc = begin(&x, to, err);
	if (rc == 0)
		rc = store_each_restore(s, see_restore, &x, err);
	if (rc == 0)
		rc = compare_range(&x, to, err);
	free(x.restores);
	replay_free(x.replay);
	if (rc == 0 && !result.broken_rule.text[0] && result.weights.compared == 0)
		rc = error_set(err, -ENODATA, "nothing to compare: no node announced its weights");
	if (rc == 0)
		*out = result;
	return rc;
}
