/* What is written: one transaction a call. */
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "store/db.h"
#include "store/list.h"

int store_corpus(struct store *s, uint64_t hash, struct error *err)
{
	struct db_value v[] = { db_u64(hash) };
	int rc = 0;

	if (s->run.corpus_hash != 0 && s->run.corpus_hash != hash)
		return error_set(err, -EEXIST,
				 "%s: the corpus has hash %016" PRIx64 ", the run began with %016" PRIx64,
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
	char *copy = strdup(cluster);
	int rc = copy ? db_write(s, true, DB_SET_CLUSTER, v, DB_COUNT(v), err)
		      : error_set(err, -ENOMEM, "%s: out of memory", s->path);

	if (rc == 0) {
		free((char *)s->run.cluster);
		s->run.cluster = copy;
	} else {
		free(copy);
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

static int no_memory(const struct store *s, struct error *err)
{
	return error_set(err, -ENOMEM, "%s: out of memory", s->path);
}

static int put_route(struct store *s, uint64_t iteration, const struct store_route *r,
		     struct error *err)
{
	char *nodes = list_print_u16(r->nodes, r->n_hops);
	char *stages = list_print_u8(r->stages, r->n_hops);
	int rc;

	if (nodes && stages) {
		struct db_value v[] = { db_u64(iteration), db_int(r->microbatch),
					db_int(r->shard), db_int(r->wave), db_int(r->attempt),
					db_text(nodes), db_text(stages) };

		rc = db_run(s, DB_PUT_ROUTE, v, DB_COUNT(v), err);
		if (rc == -EEXIST)
			rc = error_set(err, -EINVAL,
				       "%s: iteration %" PRIu64 ": microbatch %u has two routes",
				       s->path, iteration, r->microbatch);
	} else {
		rc = no_memory(s, err);
	}
	free(stages);
	free(nodes);
	return rc;
}

static int put_order(struct store *s, uint64_t iteration, const struct store_order *o,
		     struct error *err)
{
	char *items = list_print_counted(o->counted, o->n_counted);
	int rc;

	if (items) {
		struct db_value v[] = { db_u64(iteration), db_int(o->node), db_int(o->stage),
					db_text(items) };

		rc = db_run(s, DB_PUT_ORDER, v, DB_COUNT(v), err);
		if (rc == -EEXIST)
			rc = error_set(err, -EINVAL,
				       "%s: iteration %" PRIu64 ": node %u has two orders", s->path,
				       iteration, o->node);
		if (rc == 0 && o->device) {
			struct db_value d[] = { db_u64(iteration), db_int(o->node),
						db_text(o->device) };

			rc = db_run(s, DB_PUT_COMPUTED, d, DB_COUNT(d), err);
		}
	} else {
		rc = no_memory(s, err);
	}
	free(items);
	return rc;
}

static int put_reduction(struct store *s, uint64_t iteration, const struct store_reduction *r,
			 struct error *err)
{
	char *nodes = list_print_u16(r->nodes, r->n_nodes);
	int rc;

	if (nodes) {
		struct db_value v[] = { db_u64(iteration), db_int(r->stage), db_text(nodes) };

		rc = db_run(s, DB_PUT_REDUCTION, v, DB_COUNT(v), err);
		if (rc == -EEXIST)
			rc = error_set(err, -EINVAL,
				       "%s: iteration %" PRIu64 ": stage %u has two reductions",
				       s->path, iteration, r->stage);
	} else {
		rc = no_memory(s, err);
	}
	free(nodes);
	return rc;
}

static int put_parts(struct store *s, const struct store_commit *c, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->n_routes; i++)
		rc = put_route(s, c->iteration, &c->routes[i], err);
	for (size_t i = 0; rc == 0 && i < c->n_orders; i++)
		rc = put_order(s, c->iteration, &c->orders[i], err);
	for (size_t i = 0; rc == 0 && i < c->n_reductions; i++)
		rc = put_reduction(s, c->iteration, &c->reductions[i], err);
	return rc;
}

static int put_commit(struct store *s, const struct store_commit *c, struct error *err)
{
	struct db_value v[] = {
		db_u64(c->iteration), db_u64(c->epoch), db_int(c->attempt),
		db_real((double)c->scale), db_real((double)c->lr), db_real((double)c->beta1),
		db_real((double)c->beta2), db_real((double)c->eps),
		db_real((double)c->weight_decay), db_real((double)c->loss),
		db_real(c->gradient_norm), db_real(c->clip), db_real(c->iteration_s),
		db_real(c->predicted_s), db_real(c->sync_s), db_real(c->real_s),
		db_int(c->collisions), db_real(c->wait_s), db_int(c->alive),
		db_int(c->path_length), db_int(c->rerun), db_int(c->wall_us)
	};

	return db_run(s, DB_PUT_COMMIT, v, DB_COUNT(v), err);
}

static int check_next(struct store *s, uint64_t iteration, struct error *err)
{
	uint64_t last;
	int rc = store_last_commit(s, &last, err);

	if (rc != 0)
		return rc;
	if (iteration != 0 && iteration <= last)
		return error_set(err, -EEXIST,
				 "%s: iteration %" PRIu64 " is committed already (the last is %" PRIu64 ")",
				 s->path, iteration, last);
	if (iteration != last + 1)
		return error_set(err, -EINVAL,
				 "%s: iteration %" PRIu64 " cannot be committed: the next is %" PRIu64,
				 s->path, iteration, last + 1);
	return 0;
}

static int try_commit(struct store *s, const struct store_commit *c, struct error *err)
{
	int rc = db_begin(s, true, err);

	if (rc != 0)
		return rc;
	rc = check_next(s, c->iteration, err);
	if (rc == 0)
		rc = put_commit(s, c, err);
	if (rc == 0)
		rc = put_parts(s, c, err);
	return db_end(s, rc, err);
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
	struct db_value v[] = { db_int(s->epoch), db_u64(m->iteration), db_int(m->at_us),
				db_int(m->wall_us), db_text(m->kind), db_int(m->node),
				db_int(m->stage), db_int(m->value), db_text(m->word),
				db_text(m->text), db_real(m->forward_s), db_real(m->backward_s),
				db_real(m->loss_s), db_text(m->device), db_text(m->host) };

	return db_write(s, false, DB_PUT_MOMENT, v, DB_COUNT(v), err);
}

int store_set(struct store *s, const char *key, const char *value, struct error *err)
{
	struct db_value v[] = { db_text(key), db_text(value) };

	if (!value)
		return db_write(s, true, DB_DROP_STATE, v, 1, err);
	return db_write(s, true, DB_PUT_STATE, v, DB_COUNT(v), err);
}
