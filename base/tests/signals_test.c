/* signals_test.c - tests that ignored signals do not end a program. */
#include <sys/signalfd.h>
#include <unistd.h>

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

TEST(signals_that_end_a_program_are_read)
{
	struct signalfd_siginfo info;
	int fd;

	signal(SIGTERM, SIG_DFL);
	fd = signals_open(SIGCONT);
	assert_true(fd >= 0);
	/* No signal is reported, and the descriptor does not block. */
	assert_true(read(fd, &info, sizeof(info)) < 0);
	raise(SIGTERM);
	assert_int_equal(read(fd, &info, sizeof(info)), sizeof(info));
	assert_int_equal(info.ssi_signo, SIGTERM);
	raise(SIGCONT);
	assert_int_equal(read(fd, &info, sizeof(info)), sizeof(info));
	assert_int_equal(info.ssi_signo, SIGCONT);
	assert_true(signals_ignored(SIGPIPE) && signals_ignored(SIGXFSZ));
	close(fd);
}
