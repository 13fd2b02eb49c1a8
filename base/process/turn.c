/* The turn is a lock on the program's own file: all processes of the program can open it. A lock
 * file in a shared folder such as /tmp could be created and held by another user. */
#include "base/process/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_MS = 10 };

int turn_begin(int wait_ms)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000 };
	int turn = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	while (turn >= 0 && flock(turn, LOCK_EX | LOCK_NB) != 0) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || wait_ms <= 0) {
			close(turn);
			return -1;
		}
		nanosleep(&pause, NULL);
		wait_ms -= PAUSE_MS;
	}
	return turn;
}

void turn_end(int turn)
{
	if (turn < 0)
		return;
	/* Unlocks explicitly. If a child process has inherited the descriptor, close alone would
	 * keep the lock. */
	(void)flock(turn, LOCK_UN);
	close(turn);
}
