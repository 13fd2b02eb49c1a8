/* The turn is a lock on the program's file, because all processes of the program can open it, and a
 * file of another user in a shared folder cannot take its place. */
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
	/* A child that was forked meanwhile may still have the descriptor, and with it the lock. */
	(void)flock(turn, LOCK_UN);
	close(turn);
}
