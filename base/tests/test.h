/* test.h - unit tests that register themselves, on cmocka.
 *
 *  TEST(an_empty_queue_has_no_first) {
 *   ...
 *  }
 *
 * The tests of a program run in the order of their lines. test_main.c has main. If main gets an
 * argument, the argument is a pattern, and only the tests whose names match the pattern run. A
 * file whose tests share a fixture defines its own form of TEST with TEST_WITH.
 */
#ifndef BASE_TESTS_TEST_H
#define BASE_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Adds a test to the list of tests that main runs. */
void test_add(const char *name, int line, CMUnitTestFunction run, CMFixtureFunction set_up,
	      CMFixtureFunction tear_down);

/* Defines a test. set_up and tear_down may be NULL. `state` holds what set_up stored. */
#define TEST_WITH(name, set_up, tear_down) \
	static void name(void **state); \
	__attribute__((constructor)) static void add_##name(void) \
	{ \
		test_add(#name, __LINE__, name, set_up, tear_down); \
	} \
	static void name(void **state __attribute__((unused)))

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* Longest wait for an event that must occur, in microseconds. 20 s are too short: with 24 busy
 * processes on two cores, a test of one second took longer. */
#define TEST_PATIENCE_US INT64_C(100000000)

#endif
