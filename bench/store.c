/* Measures how long a durable commit takes, by the size of the cluster: build/bench/store [FOLDER].
 * The controller commits each iteration durably, and the run waits for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "store/store.h"

enum { HOPS = 4, TIMES = 20 };

struct sizes {
	uint32_t nodes, microbatches;
};

static void fill(struct store_commit *c, const struct sizes *z)
{
	struct route *routes = alloc_array(z->microbatches, sizeof(*routes));
	struct store_order *orders = alloc_array(z->nodes, sizeof(*orders));
	uint32_t each = z->microbatches * (HOPS + 1) / z->nodes;
	struct store_counted *counted = alloc_array(each, sizeof(*counted));
	struct route route = { .n_hops = HOPS };

	for (uint32_t i = 0; i < each; i++)
		counted[i] = (struct store_counted){ i * 7, 'B' };
	for (uint32_t i = 0; i < HOPS; i++) {
		route.nodes[i] = (uint16_t)(z->nodes - i - 1);
		route.stages[i] = (uint8_t)i;
	}
	for (uint32_t i = 0; i < z->microbatches; i++) {
		routes[i] = route;
		routes[i].microbatch = routes[i].wave = i;
	}
	for (uint32_t i = 0; i < z->nodes; i++)
		orders[i] = (struct store_order){ (uint16_t)i, 0, each, counted, "cpu:v4" };
	*c = (struct store_commit){ .n_routes = z->microbatches, .n_orders = z->nodes,
				    .routes = routes, .orders = orders };
}

static int measure(const char *folder, const struct sizes *z)
{
	struct store_run run = { .name = "bench", .version = "", .model = "", .cluster = "",
				 .optimizer = "", .hash = "" };
	char path[256];
	struct store_commit c;
	struct store *s;
	struct error err;
	int64_t longest_us = 0, start;

	snprintf(path, sizeof(path), "%s/skippipe-bench-%ld-%u", folder, (long)getpid(),
		 z->microbatches);
	fill(&c, z);
	if (store_create(&s, path, &run, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	start = clock_monotonic_us();
	for (c.iteration = 1; c.iteration <= TIMES; c.iteration++) {
		int64_t begin = clock_monotonic_us();

		if (store_commit(s, &c, &err) != 0) {
			fprintf(stderr, "%s\n", err.text);
			return 1;
		}
		if (clock_monotonic_us() - begin > longest_us)
			longest_us = clock_monotonic_us() - begin;
	}
	printf("%5u nodes, %5u microbatches: %7.2f ms a commit, at most %7.2f\n", z->nodes,
	       z->microbatches, (double)(clock_monotonic_us() - start) / TIMES / 1e3,
	       (double)longest_us / 1e3);
	store_close(s);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct sizes sizes[] = { { 20, 30 }, { 100, 150 }, { 1000, 1500 },
					      { 1000, 8192 } };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(sizes) / sizeof(sizes[0]); i++)
		rc = measure(argc > 1 ? argv[1] : "/tmp", &sizes[i]);
	return rc;
}
