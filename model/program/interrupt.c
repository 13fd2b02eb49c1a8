/* Notes the first signal and lets the second end the process, so that Ctrl-C does not lose the
 * work since the last checkpoint. */
#include "model/program/interrupt.h"

#include <signal.h>

#include "base/signals.h"

/* A signal has nowhere else to leave its note. */
static volatile sig_atomic_t seen;

static void note_signal(int signal)
{
	(void)signal;
	seen = 1;
}

/* On a stack of its own: oneDNN's products use the stack pointer for other memory, where a handler
 * would write over what lies below. (Threads of a pool let no signal in.) */
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
