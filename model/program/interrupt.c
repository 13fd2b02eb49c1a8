/* Records the first signal, so that Ctrl-C does not lose the work since the last checkpoint. A
 * second signal ends the process. */
#include "model/program/interrupt.h"

#include <signal.h>

#include "base/signals.h"

/* A signal handler has no argument, so the flag is global. */
static volatile sig_atomic_t seen;

static void note_signal(int signal)
{
	(void)signal;
	seen = 1;
}

/* The handler gets its own stack. oneDNN's matrix products use the stack pointer for other memory,
 * and a handler on the normal stack would overwrite that memory. Threads of a pool block all
 * signals. */
void interrupt_catch(void)
{
	static char room[64 << 10];
	stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };
	struct sigaction a = { .sa_handler = note_signal,
			       .sa_flags = (int)(SA_RESETHAND | SA_ONSTACK) };

	sigset_t ending;

	sigaltstack(&stack, NULL);
	signals_ending(&ending);
	for (int s = 1; s < NSIG; s++)
		if (sigismember(&ending, s) == 1)
			sigaction(s, &a, NULL);
}

bool interrupt_seen(void)
{
	return seen != 0;
}
