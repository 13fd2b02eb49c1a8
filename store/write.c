/* Writes the rows of a run, one transaction for each call. A write that fails because the disk is
 * full is repeated once, after the reserve was deleted (db_again). */
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "store/db.h"
#include "store/list.h"

int store_corpus(struct store *s, uint64_t hash, struct error *err)
{
	struct db_value v[] = { db_u64(hash) };
	int rc = 0;

	if (s->run.corpus_hash != 0 && s->run.corpus_hash != hash)
		return error_set(err, -EEXIST,
				 "%s: the corpus has hash %016" PRIx64
				 ", the run began with %016" PRIx64,
				 s->path, hash, s->run.corpus_hash);
	if (s->run.corpus_hash == 0)
		rc = db_write(s, false, DB_SET_HASH, v, DB_COUNT(v), err);
	if (rc == 0)
		s->run.corpus_hash = hash;
	return rc;
}

int store_cluster(struct store *s, const char *cluster, struct error *err)
{
	struct db_value v[] = { db_text(cluster) };
	int rc = db_write(s, true, DB_SET_CLUSTER, v, DB_COUNT(v), err);

	if (rc == 0) {
		free((char *)s->run.cluster);
		s->run.cluster = alloc_string(cluster);
	}
	return rc;
}

int store_stages(struct store *s, const char *model, uint32_t batch, uint32_t n_shards,
		 uint32_t per_shard, struct error *err)
{
	struct db_value v[] = { db_text(model), db_int(batch), db_int(n_shards),
				db_int(per_shard) };
	int rc = db_write(s, true, DB_SET_STAGES, v, DB_COUNT(v), err);

	if (rc == 0) {
		free((char *)s->run.model);
		s->run.model = alloc_string(model);
		s->run.batch = batch;
		s->run.n_shards = n_shards;
		s->run.per_shard = per_shard;
	}
	return rc;
}

int store_plan(struct store *s, const struct store_plan *p, struct error *err)
{
	struct db_value v[] = { db_u64(p->epoch), db_u64(p->iteration), db_text(p->reason),
				db_int(p->path_length), db_text(p->plan),
				db_real(p->iteration_s), db_real(p->sync_s) };
	int rc = db_write(s, true, DB_PUT_PLAN, v, DB_COUNT(v), err);

	if (rc == -EEXIST)
		return error_set(err, rc, "%s: plan epoch %" PRIu64 " is recorded already", s->path,
				 p->epoch);
	return rc;
}

static int put_route(struct store *s, uint64_t iteration, const struct route *r,
		     struct error *err)
{
	char *nodes = list_print_u16(r->nodes, r->n_hops);
	char *stages = list_print_u8(r->stages, r->n_hops);
	struct db_value v[] = { db_u64(iteration), db_int(r->microbatch), db_int(r->shard),
				db_int(r->wave), db_int(r->attempt), db_text(nodes),
				db_text(stages) };
	int rc = db_run(s, DB_PUT_ROUTE, v, DB_COUNT(v), err);

	if (rc == -EEXIST)
		rc = error_set(err, -EINVAL,
			       "%s: iteration %" PRIu64 ": microbatch %u has two routes",
			       s->path, iteration, r->microbatch);
	free(stages);
	free(nodes);
	return rc;
}

static int put_order(struct store *s, uint64_t iteration, const struct store_order *o,
		     struct error *err)
{
	char *items = list_print_counted(o->counted, o->n_counted);
	struct db_value v[] = { db_u64(iteration), db_int(o->node), db_int(o->stage),
				db_text(items) };
	int rc = db_run(s, DB_PUT_ORDER, v, DB_COUNT(v), err);

	if (rc == -EEXIST)
		rc = error_set(err, -EINVAL, "%s: iteration %" PRIu64 ": node %u has two orders",
			       s->path, iteration, o->node);
	free(items);
	return rc;
}

static int put_reduction(struct store *s, uint64_t iteration, const struct store_reduction *r,
			 struct error *err)
{
	char *nodes = list_print_u16(r->nodes, r->n_nodes);
	struct db_value v[] = { db_u64(iteration), db_int(r->stage), db_text(nodes) };
	int rc = db_run(s, DB_PUT_REDUCTION, v, DB_COUNT(v), err);

	if (rc == -EEXIST)
		rc = error_set(err, -EINVAL,
			       "%s: iteration %" PRIu64 ": stage %u has two reductions", s->path,
			       iteration, r->stage);
	free(nodes);
	return rc;
}

/* ---- printing each part of a commit, for a comparison with the previous commit ---- */

static void print_routes(FILE *to, const struct store_commit *c)
{
	for (size_t i = 0; i < c->n_routes; i++) {
		const struct route *r = &c->routes[i];

		fprintf(to, "%u %u %u %u", r->microbatch, r->shard, r->wave, r->attempt);
		for (uint32_t h = 0; h < r->n_hops; h++)
			fprintf(to, " %u:%u", r->nodes[h], r->stages[h]);
		fputc('\n', to);
	}
}

static void print_orders(FILE *to, const struct store_commit *c)
{
	for (size_t i = 0; i < c->n_orders; i++) {
		const struct store_order *o = &c->orders[i];

		fprintf(to, "%u %u", o->node, o->stage);
		for (uint32_t k = 0; k < o->n_counted; k++)
			fprintf(to, " %c%u", o->counted[k].kind, o->counted[k].microbatch);
		fputc('\n', to);
	}
}

static void print_reductions(FILE *to, const struct store_commit *c)
{
	for (size_t i = 0; i < c->n_reductions; i++) {
		fprintf(to, "%u", c->reductions[i].stage);
		for (uint32_t k = 0; k < c->reductions[i].n_nodes; k++)
			fprintf(to, " %u", c->reductions[i].nodes[k]);
		fputc('\n', to);
	}
}

static void print_computed(FILE *to, const struct store_commit *c)
{
	for (size_t i = 0; i < c->n_orders; i++)
		if (c->orders[i].device)
			fprintf(to, "%u %zu %s\n", c->orders[i].node,
				strlen(c->orders[i].device), c->orders[i].device);
}

/* ---- writing each part's rows ---- */

static int put_routes(struct store *s, const struct store_commit *c, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->n_routes; i++)
		rc = put_route(s, c->iteration, &c->routes[i], err);
	return rc;
}

static int put_orders(struct store *s, const struct store_commit *c, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->n_orders; i++)
		rc = put_order(s, c->iteration, &c->orders[i], err);
	return rc;
}

static int put_reductions(struct store *s, const struct store_commit *c, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->n_reductions; i++)
		rc = put_reduction(s, c->iteration, &c->reductions[i], err);
	return rc;
}

static int put_computed(struct store *s, const struct store_commit *c, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->n_orders; i++) {
		const struct store_order *o = &c->orders[i];
		struct db_value v[] = { db_u64(c->iteration), db_int(o->node), db_text(o->device) };

		if (o->device)
			rc = db_run(s, DB_PUT_COMPUTED, v, DB_COUNT(v), err);
	}
	return rc;
}

static const struct {
	void (*print)(FILE *to, const struct store_commit *c);
	int (*put)(struct store *s, const struct store_commit *c, struct error *err);
} parts[DB_PARTS] = {
	[DB_ROUTES] = { print_routes, put_routes },
	[DB_ORDERS] = { print_orders, put_orders },
	[DB_REDUCTIONS] = { print_reductions, put_reductions },
	[DB_COMPUTED] = { print_computed, put_computed },
};

static void free_written(struct db_written written[DB_PARTS])
{
	for (int i = 0; i < DB_PARTS; i++) {
		free(written[i].text);
		written[i] = (struct db_written){ 0 };
	}
}

void write_forget(struct store *s)
{
	free_written(s->written);
}

static int print_part(const struct store *s, enum db_part part, const struct store_commit *c,
		      char **text, struct error *err)
{
	size_t size;
	FILE *to = open_memstream(text, &size);

	if (to)
		parts[part].print(to, c);
	if (to && fclose(to) == 0)
		return 0;
	if (to)
		free(*text);
	*text = NULL;
	return error_set(err, -ENOMEM, "%s: out of memory", s->path);
}

/* Writes the parts of a commit that differ from the previous commit. For an equal part, the row of
 * the table `alike` names the earlier iteration that wrote it. Sets now[part] to the rows that were
 * written last for the part. If the commit succeeds, the caller keeps `now` for the comparison with
 * the next commit. Otherwise the caller frees the texts in `now`. */
static int put_parts(struct store *s, const struct store_commit *c, struct db_written *now,
		     struct error *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < DB_PARTS; i++) {
		const struct db_written *previous = &s->written[i];

		rc = print_part(s, (enum db_part)i, c, &now[i].text, err);
		if (rc == 0 && previous->iteration && strcmp(previous->text, now[i].text) == 0) {
			now[i].iteration = previous->iteration;
		} else if (rc == 0) {
			now[i].iteration = c->iteration;
			rc = parts[i].put(s, c, err);
		}
	}
	if (rc == 0) {
		struct db_value v[] = { db_u64(c->iteration), db_u64(now[DB_ROUTES].iteration),
					db_u64(now[DB_ORDERS].iteration),
					db_u64(now[DB_REDUCTIONS].iteration),
					db_u64(now[DB_COMPUTED].iteration) };

		rc = db_run(s, DB_PUT_ALIKE, v, DB_COUNT(v), err);
	}
	return rc;
}

static int put_commit(struct store *s, const struct store_commit *c, struct error *err)
{
	char *visits = list_print_u16(c->visits.of, c->visits.n);
	struct db_value v[] = {
		db_u64(c->iteration), db_u64(c->epoch), db_int(c->attempt),
		db_real((double)c->scale), db_real((double)c->lr), db_real((double)c->beta1),
		db_real((double)c->beta2), db_real((double)c->eps),
		db_real((double)c->weight_decay), db_real((double)c->loss),
		db_real(c->gradient_norm), db_u64(c->repeats.skipped), db_real(c->iteration_s),
		db_real(c->predicted_s), db_real(c->sync_s), db_real(c->real_s),
		db_int(c->collisions.n), db_real(c->collisions.wait_s), db_int(c->alive),
		db_int(c->path_length), db_int(c->repeats.rerun), db_int(c->wall_us),
		db_u64(c->stack_from), db_text(tensor_format_name(c->formats.wire)),
		db_text(tensor_format_name(c->formats.sum_wire)), db_text(visits)
	};
	int rc = db_run(s, DB_PUT_COMMIT, v, DB_COUNT(v), err);

	free(visits);
	return rc;
}

static int check_next(struct store *s, uint64_t iteration, struct error *err)
{
	uint64_t last;
	int rc = store_last_commit(s, &last, err);

	if (rc != 0)
		return rc;
	if (iteration != 0 && iteration <= last)
		return error_set(err, -EEXIST,
				 "%s: iteration %" PRIu64 " is committed already (the last is "
				 "%" PRIu64 ")",
				 s->path, iteration, last);
	if (iteration != last + 1)
		return error_set(err, -EINVAL,
				 "%s: iteration %" PRIu64 " cannot be committed: the next is "
				 "%" PRIu64,
				 s->path, iteration, last + 1);
	return 0;
}

static int try_commit(struct store *s, const struct store_commit *c, struct error *err)
{
	struct db_written now[DB_PARTS] = { { 0 } };
	int rc = db_begin(s, true, err);

	if (rc != 0)
		return rc;
	rc = check_next(s, c->iteration, err);
	if (rc == 0)
		rc = put_commit(s, c, err);
	if (rc == 0)
		rc = put_parts(s, c, now, err);
	rc = db_end(s, rc, err);
	if (rc == 0) {
		free_written(s->written);
		memcpy(s->written, now, sizeof(now));
	} else {
		free_written(now);
	}
	return rc;
}

int store_commit(struct store *s, const struct store_commit *c, struct error *err)
{
	int rc;

	do
		rc = try_commit(s, c, err);
	while (db_again(s, rc));
	return rc;
}

static int try_hashes(struct store *s, const struct store_hash *hashes, size_t n, struct error *err)
{
	int rc = db_begin(s, false, err);

	if (rc != 0)
		return rc;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct db_value v[] = { db_u64(hashes[i].iteration), db_int(hashes[i].stage),
					db_int(hashes[i].node), db_u64(hashes[i].hash) };

		rc = db_run(s, DB_PUT_HASH, v, DB_COUNT(v), err);
	}
	return db_end(s, rc, err);
}

int store_hashes(struct store *s, const struct store_hash *hashes, size_t n, struct error *err)
{
	int rc;

	do
		rc = try_hashes(s, hashes, n, err);
	while (db_again(s, rc));
	return rc;
}

int store_forget_hash(struct store *s, const struct store_hash *h, struct error *err)
{
	struct db_value v[] = { db_u64(h->iteration), db_int(h->stage), db_int(h->node) };

	return db_write(s, false, DB_DROP_HASH, v, DB_COUNT(v), err);
}

static int try_tasks(struct store *s, const struct store_task *tasks, size_t n, struct error *err)
{
	int rc = db_begin(s, false, err);

	if (rc != 0)
		return rc;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct store_task *t = &tasks[i];
		const char kind[2] = { t->kind, '\0' };
		struct db_value v[] = { db_u64(t->iteration), db_int(t->node),
					db_int(t->microbatch), db_int(t->attempt), db_text(kind),
					db_int(t->counted), db_int(t->waited_for),
					db_int(t->arrived_us), db_int(t->start_us),
					db_int(t->end_us) };

		rc = db_run(s, DB_PUT_TASK, v, DB_COUNT(v), err);
	}
	return db_end(s, rc, err);
}

int store_tasks(struct store *s, const struct store_task *tasks, size_t n, struct error *err)
{
	int rc;

	do
		rc = try_tasks(s, tasks, n, err);
	while (db_again(s, rc));
	return rc;
}

/* Reads the iteration up to which store_thin has deleted details. An earlier process may have
 * deleted them. */
static int read_thinned(struct store *s, struct error *err)
{
	char *text = NULL;
	int rc = store_get(s, "thinned", &text, err);

	if (rc == 0)
		s->thinned_to = strtoull(text, NULL, 10);
	else if (rc == -ENOENT)
		s->thinned_to = 0;
	free(text);
	return rc == -ENOENT ? 0 : rc;
}

/* Deletes the details of the iterations after thinned_to, up to `upto`. */
static int thin_tasks(struct store *s, uint64_t upto, struct error *err)
{
	char text[24];
	struct db_value tasks[] = { db_u64(s->thinned_to), db_u64(upto), db_int(STORE_THINNED) };
	struct db_value moments[] = { db_u64(upto), db_int(STORE_THINNED) };
	struct db_value state[] = { db_text("thinned"), db_text(text) };
	int rc = db_begin(s, false, err);

	if (rc != 0)
		return rc;
	snprintf(text, sizeof(text), "%" PRIu64, upto);
	rc = db_run(s, DB_THIN_TASKS, tasks, DB_COUNT(tasks), err);
	/* A scan of all moments in every call would be too slow, because their table has no index
	 * by iteration. Therefore only every STORE_THINNED-th call deletes moments. */
	if (rc == 0 && upto % STORE_THINNED == 0)
		rc = db_run(s, DB_THIN_MOMENTS, moments, DB_COUNT(moments), err);
	if (rc == 0)
		rc = db_run(s, DB_PUT_STATE, state, DB_COUNT(state), err);
	return db_end(s, rc, err);
}

int store_thin(struct store *s, uint64_t upto, struct error *err)
{
	/* Limit of the iterations that one call thins. Each commit adds one iteration, so a call
	 * must thin more than one to catch up. */
	enum { AT_ONCE = 4 };
	int rc = s->thinned_to == UINT64_MAX ? read_thinned(s, err) : 0;

	if (rc == 0 && upto < s->thinned_to)
		/* After a restore, iterations above `upto` are repeated and must be thinned
		 * again. */
		s->thinned_to = upto;
	for (uint64_t i = 0; rc == 0 && i < AT_ONCE && s->thinned_to < upto; i++) {
		do
			rc = thin_tasks(s, s->thinned_to + 1, err);
		while (db_again(s, rc));
		if (rc == 0)
			s->thinned_to++;
	}
	return rc;
}

int store_validation(struct store *s, const struct store_validation *l, struct error *err)
{
	struct db_value v[] = { db_u64(l->iteration), db_real(l->loss), db_int(l->wall_us) };

	return db_write(s, false, DB_PUT_VALIDATION, v, DB_COUNT(v), err);
}

int store_note(struct store *s, const struct store_note *n, struct error *err)
{
	struct db_value v[] = { db_u64(n->iteration), db_int(n->wall_us), db_text(n->kind),
				db_int(n->mark), db_int(n->node), db_text(n->text) };

	return db_write(s, false, DB_PUT_NOTE, v, DB_COUNT(v), err);
}

int store_fault(struct store *s, const struct store_fault *f, struct error *err)
{
	struct db_value v[] = { db_int(f->id), db_u64(f->iteration), db_text(f->kind),
				db_int(f->node), db_int(f->peer), db_real(f->factor),
				db_int(f->ttl_ms), db_int(f->started_wall_us),
				db_int(f->ended_wall_us) };

	return db_write(s, false, DB_PUT_FAULT, v, DB_COUNT(v), err);
}

int store_command(struct store *s, const struct store_command *c, struct error *err)
{
	struct db_value v[] = { db_u64(c->id), db_u64(c->iteration), db_int(c->wall_us),
				db_text(c->who), db_text(c->verb), db_int(c->node),
				db_int(c->peer), db_int(c->value), db_text(c->text),
				db_int(c->status), db_text(c->reply), db_text(c->undo),
				db_u64(c->undone_by) };

	return db_write(s, false, DB_PUT_COMMAND, v, DB_COUNT(v), err);
}

int store_moment(struct store *s, const struct store_moment *m, struct error *err)
{
	struct db_value v[] = { db_int(s->epoch),
				db_u64(m->iteration),
				db_int(m->at_us),
				db_int(m->wall_us),
				db_text(m->kind),
				db_int(m->node),
				db_int(m->stage),
				db_int(m->value),
				db_text(m->word),
				db_text(m->text),
				db_real(m->forward_s),
				db_real(m->backward_s),
				db_real(m->loss_s),
				db_text(m->device),
				db_text(m->host),
				db_text(m->name ? m->name : ""),
				db_text(m->place ? m->place : "") };

	return db_write(s, false, DB_PUT_MOMENT, v, DB_COUNT(v), err);
}

int store_set(struct store *s, const char *key, const char *value, struct error *err)
{
	struct db_value v[] = { db_text(key), db_text(value) };
	enum db_statement which = value ? DB_PUT_STATE : DB_DROP_STATE;
	int rc = db_write(s, true, which, v, value ? 2 : 1, err);

	/* While the file is locked, the setting waits in memory like a row that need not be
	 * durable. */
	return rc == -EBUSY ? db_write(s, false, which, v, value ? 2 : 1, err) : rc;
}
