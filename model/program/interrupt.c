#include "model/program/interrupt.h"

#include <signal.h>

/* A signal has nowhere else to leave its note. */
static volatile sig_atomic_t seen;

static void note(int signal)
{
	(void)signal;
	seen = 1;
}

void interrupt_catch(void)
{
	struct sigaction a = { .sa_handler = note, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

bool interrupt_seen(void)
{
	return seen != 0;
}
