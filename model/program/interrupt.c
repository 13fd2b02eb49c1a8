/* Records the first signal, so that Ctrl-C does not lose the work since the last checkpoint. A
 * later signal ends the process. Terminals and `timeout` send a signal both to a process and to
 * its group. A signal that follows the first signal at once is therefore ignored as a
 * repetition. */
#include "model/program/interrupt.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/process/signals.h"

enum { REPETITION_S = 3, EXIT_FAILED = 1 };

/* A signal handler has no argument, so its state is global. */
static volatile sig_atomic_t seen;
static struct timespec first;

static void note_signal(int signal)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!seen) {
		first = now;
		seen = 1;
	} else if (now.tv_sec - first.tv_sec > REPETITION_S) {
		struct sigaction a = { .sa_handler = SIG_DFL };

		/* The raised signal is blocked while this handler runs. It ends the process when
		 * the handler returns. */
		sigaction(signal, &a, NULL);
		raise(signal);
	}
}

/* Reports a mapped file that was cut short: reading its missing part raises SIGBUS. */
static void report_cut(int signal)
{
	static const char text[] = "skippipe: a file was cut short while it was read, perhaps the "
				   "corpus. Files that were written before are complete\n";

	(void)signal;
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		_exit(EXIT_FAILED);
	_exit(EXIT_FAILED);
}

/* The handler gets its own stack. oneDNN's matrix products use the stack pointer for other memory,
 * and a handler on the normal stack would overwrite that memory. Only this thread needs such a
 * stack, because the threads of a pool block all signals. */
void interrupt_catch(void)
{
	static char room[64 << 10];
	stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };
	struct sigaction a = { .sa_handler = note_signal, .sa_flags = SA_ONSTACK };
	struct sigaction bus = { .sa_handler = report_cut, .sa_flags = SA_ONSTACK };
	sigset_t ending;

	sigaltstack(&stack, NULL);
	sigaction(SIGBUS, &bus, NULL);
	signals_ending(&ending);
	a.sa_mask = ending;
	for (int s = 1; s < NSIG; s++)
		if (sigismember(&ending, s) == 1)
			sigaction(s, &a, NULL);
}

bool interrupt_seen(void)
{
	return seen != 0;
}
