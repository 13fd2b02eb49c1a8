/* signals.c - finds which signals should end the program.
 * A signal that was ignored when the program started should not end it: nohup ignores SIGHUP, and
 * shells ignore SIGINT for programs in the background. */
#include "base/process/signals.h"

#include <errno.h>
#include <stddef.h>
#include <sys/signalfd.h>

bool signals_ignored(int signal)
{
	struct sigaction now;

	return sigaction(signal, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void signals_ending(sigset_t *set)
{
	static const int ending[] = { SIGINT, SIGTERM, SIGHUP };

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		if (!signals_ignored(ending[i]))
			sigaddset(set, ending[i]);
}

int signals_open(int beside)
{
	sigset_t set;
	int fd;

	signals_ending(&set);
	if (beside)
		sigaddset(&set, beside);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
