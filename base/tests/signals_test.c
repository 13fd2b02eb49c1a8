/* signals_test.c - ignored signals do not end a program. */
#include "base/process/signals.h"
#include "base/tests/test.h"

TEST(ignored_signals_do_not_end_a_program)
{
	sigset_t set;

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
