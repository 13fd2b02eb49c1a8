/* sample.h - a temporary folder and a sample run, for the tests of the store. */
#ifndef STORE_TESTS_SAMPLE_H
#define STORE_TESTS_SAMPLE_H

#include <stdint.h>

#include "base/tests/test.h"
#include "store/store.h"

struct folder {
	char path[64];
};

extern const char *const sample_corpus[2];
extern const struct store_run a_run;

/* Setup and teardown of cmocka. *state becomes a struct folder. */
int make_folder(void **state);
int remove_folder(void **state);

/* Sizes of a sample commit. Every part of such a commit depends on the iteration. */
enum { N_ROUTES = 30, N_HOPS = 4, N_NODES = 20 };

struct sample {
	struct route routes[N_ROUTES];
	struct store_counted counted[N_NODES][8];
	struct store_order orders[N_NODES];
	uint16_t replicas[2][3];
	struct store_reduction reductions[2];
	struct store_commit commit;
};

const struct store_commit *sample(struct sample *p, uint64_t iteration);
void assert_same(const struct store_commit *a, const struct store_commit *b);
struct store *create(const char *folder);
void commit_one(struct store *s, uint64_t iteration);
void sql(const char *folder, const char *text); /* runs SQL on the run's file without the store */

#define FOLDER_TEST(name) TEST_WITH(name, make_folder, remove_folder)

#endif
