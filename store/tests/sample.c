/* Makes a run that has every kind of row, so that a test notices if one is lost. */
#include "base/tests/test.h"
#include "store/tests/sample.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const sample_corpus[] = { "/data/a.txt", "/data/b with space.txt" };

const struct store_run a_run = {
	.name = "test",
	.version = "0",
	.model = "{\"m\":1}",
	.cluster = "{}",
	.optimizer = "{}",
	.hash = "sum",
	.id = UINT64_C(0xfedcba9876543210),
	.seed = UINT64_MAX,
	.corpus_hash = UINT64_C(1) << 63,
	.started_wall_us = 1234567,
	.batch = 4,
	.sequence = 64,
	.n_shards = 5,
	.per_shard = 6,
	.threads = 1,
	.n_corpus = 2,
	.corpus = sample_corpus,
};

int make_folder(void **state)
{
	struct folder *f = calloc(1, sizeof(*f));

	strcpy(f->path, "/tmp/skippipe-store-XXXXXX");
	assert_non_null(mkdtemp(f->path));
	*state = f;
	return 0;
}

int remove_folder(void **state)
{
	static const char *const files[] = { "run.db", "run.db-wal", "run.db-shm", "run.lock",
					     "filler" };
	struct folder *f = *state;
	char path[128];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->path, files[i]);
		unlink(path);
	}
	rmdir(f->path);
	free(f);
	return 0;
}

const struct store_commit *sample(struct sample *p, uint64_t iteration)
{
	uint32_t k = (uint32_t)iteration;

	for (uint32_t i = 0; i < N_ROUTES; i++) {
		p->routes[i] = (struct route){ .microbatch = i, .shard = i % 5, .wave = i / 5,
					       .attempt = k % 2, .n_hops = N_HOPS };
		for (uint32_t h = 0; h < N_HOPS; h++) {
			p->routes[i].nodes[h] = (uint16_t)(k + i + h);
			p->routes[i].stages[h] = (uint8_t)(h + i % 3);
		}
	}
	for (uint32_t n = 0; n < N_NODES; n++) {
		for (uint32_t i = 0; i < 8; i++)
			p->counted[n][i] = (struct store_counted){ k * i, i % 2 ? 'L' : 'B' };
		p->orders[n] = (struct store_order){ (uint16_t)n, (uint8_t)(n % 6), n % 9,
						     p->counted[n],
						     n % 3 ? "cpu:v3 oneDNN" : NULL };
	}
	for (uint32_t r = 0; r < 2; r++) {
		for (uint32_t i = 0; i < 3; i++)
			p->replicas[r][i] = (uint16_t)(100 * r + i);
		p->reductions[r] =
			(struct store_reduction){ (uint8_t)r, r ? 0 : 3, p->replicas[r] };
	}
	p->commit = (struct store_commit){
		.iteration = iteration,
		.epoch = 3,
		.attempt = 1,
		.scale = 1.0f / 30,
		.lr = 1e-3f,
		.beta1 = 0.9f,
		.beta2 = 0.95f,
		.eps = 1e-8f,
		.weight_decay = 0.1f,
		.stack_from = iteration % 2 ? 0 : UINT64_MAX - 4,
		.visits = { iteration % 2 ? 3 : 0, { 30, 0, 65535 } },
		.loss = 5.5f / (float)k,
		.gradient_norm = 1.25,
		.iteration_s = 33.3,
		.predicted_s = 33.0,
		.sync_s = 1.5,
		.real_s = 2.5,
		.collisions = { 7, 0.25 },
		.alive = 20,
		.path_length = 4,
		.repeats = { 2, 7 },
		.wall_us = 99,
		.n_routes = N_ROUTES,
		.n_orders = N_NODES,
		.n_reductions = 2,
		.routes = p->routes,
		.orders = p->orders,
		.reductions = p->reductions,
	};
	return &p->commit;
}

void assert_same(const struct store_commit *a, const struct store_commit *b)
{
	assert_int_equal(a->iteration, b->iteration);
	assert_int_equal(a->epoch, b->epoch);
	assert_memory_equal(&a->scale, &b->scale, sizeof(a->scale));
	assert_true(a->stack_from == b->stack_from);
	assert_int_equal(a->visits.n, b->visits.n);
	assert_memory_equal(a->visits.of, b->visits.of, a->visits.n * sizeof(*a->visits.of));
	assert_memory_equal(&a->loss, &b->loss, sizeof(a->loss));
	assert_memory_equal(&a->eps, &b->eps, sizeof(a->eps));
	assert_int_equal(a->repeats.rerun, b->repeats.rerun);
	assert_int_equal(a->repeats.skipped, b->repeats.skipped);
	assert_int_equal(a->n_routes, b->n_routes);
	assert_int_equal(a->n_orders, b->n_orders);
	assert_int_equal(a->n_reductions, b->n_reductions);
	for (size_t i = 0; i < a->n_routes; i++) {
		const struct route *x = &a->routes[i], *y = &b->routes[i];

		assert_int_equal(x->microbatch, y->microbatch);
		assert_int_equal(x->shard, y->shard);
		assert_int_equal(x->wave, y->wave);
		assert_int_equal(x->attempt, y->attempt);
		assert_int_equal(x->n_hops, y->n_hops);
		assert_memory_equal(x->nodes, y->nodes, x->n_hops * sizeof(*x->nodes));
		assert_memory_equal(x->stages, y->stages, x->n_hops);
	}
	for (size_t i = 0; i < a->n_orders; i++) {
		assert_int_equal(a->orders[i].node, b->orders[i].node);
		assert_int_equal(a->orders[i].stage, b->orders[i].stage);
		assert_int_equal(a->orders[i].n_counted, b->orders[i].n_counted);
		assert_int_equal(!a->orders[i].device, !b->orders[i].device);
		if (a->orders[i].device)
			assert_string_equal(a->orders[i].device, b->orders[i].device);
		for (uint32_t j = 0; j < a->orders[i].n_counted; j++) {
			assert_int_equal(a->orders[i].counted[j].kind,
					 b->orders[i].counted[j].kind);
			assert_int_equal(a->orders[i].counted[j].microbatch,
					 b->orders[i].counted[j].microbatch);
		}
	}
	for (size_t i = 0; i < a->n_reductions; i++) {
		assert_int_equal(a->reductions[i].n_nodes, b->reductions[i].n_nodes);
		assert_memory_equal(a->reductions[i].nodes, b->reductions[i].nodes,
				    a->reductions[i].n_nodes * sizeof(uint16_t));
	}
}

struct store *create(const char *folder)
{
	struct store *s = NULL;
	struct error err = { "" };

	if (store_create(&s, folder, &a_run, &err) != 0)
		fail_msg("%s", err.text);
	return s;
}

void commit_one(struct store *s, uint64_t iteration)
{
	struct sample *p = calloc(1, sizeof(*p));
	struct error err = { "" };

	if (store_commit(s, sample(p, iteration), &err) != 0)
		fail_msg("%s", err.text);
	free(p);
}

void sql(const char *folder, const char *text)
{
	char path[128];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/run.db", folder);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}
