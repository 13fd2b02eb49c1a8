/* signals_test.c - ignored signals do not end a program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/signals.h"

static void ignored_signals_do_not_end_a_program(void **state)
{
	sigset_t set;

	(void)state;
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	signals_ending(&set);
	assert_true(sigismember(&set, SIGINT) && sigismember(&set, SIGTERM) &&
		    sigismember(&set, SIGHUP));
	assert_false(sigismember(&set, SIGQUIT));
	signal(SIGHUP, SIG_IGN);
	assert_true(signals_ignored(SIGHUP));
	signals_ending(&set);
	assert_false(sigismember(&set, SIGHUP));
	assert_true(sigismember(&set, SIGINT) && sigismember(&set, SIGTERM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ignored_signals_do_not_end_a_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
