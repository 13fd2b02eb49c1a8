/* test_main.c - runs the tests that a program has registered (test.h).
 *
 * Constructors of one file may run in any order, so the tests are sorted by their lines. Some tests
 * replace the allocators of base/, so this file uses none. */
#include "base/tests/test.h"

#include <stdlib.h>

enum { TESTS_MOST = 200 };

static struct entry {
	int line;
	struct CMUnitTest test;
} entries[TESTS_MOST];
static size_t n_entries;

void test_add(const char *name, int line, CMUnitTestFunction run, CMFixtureFunction set_up,
	      CMFixtureFunction tear_down)
{
	if (n_entries == TESTS_MOST)
		abort();
	entries[n_entries++] = (struct entry){ line, { name, run, set_up, tear_down, NULL } };
}

static int by_line(const void *a, const void *b)
{
	return ((const struct entry *)a)->line - ((const struct entry *)b)->line;
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[TESTS_MOST];

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	qsort(entries, n_entries, sizeof(*entries), by_line);
	for (size_t i = 0; i < n_entries; i++)
		tests[i] = entries[i].test;
	return _cmocka_run_group_tests("tests", tests, n_entries, NULL, NULL);
}
