/* Tests that only one process at a time has the turn. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/turn.h"
#include "base/tests/test.h"

TEST(one_process_has_the_turn)
{
	int taken[2], turn;
	char c;
	pid_t child;

	assert_int_equal(pipe(taken), 0);
	child = fork();
	if (child == 0) {
		turn = turn_begin(60000);
		if (turn < 0 || write(taken[1], "t", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(taken[0], &c, 1), 1);
	assert_int_equal(turn_begin(0), -1);
	assert_int_equal(turn_begin(30), -1);
	/* A process that dies gives up its turn. */
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	turn = turn_begin(60000);
	assert_true(turn >= 0);
	assert_int_equal(turn_begin(0), -1);
	turn_end(turn);
	turn_end(-1);
	turn = turn_begin(0);
	assert_true(turn >= 0);
	turn_end(turn);
	/* A child that was forked meanwhile does not keep the turn. */
	turn = turn_begin(0);
	assert_true(turn >= 0);
	child = fork();
	if (child == 0)
		for (;;)
			pause();
	turn_end(turn);
	turn = turn_begin(0);
	assert_true(turn >= 0);
	turn_end(turn);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(taken[0]);
	close(taken[1]);
}
