/* signals.h - the signals that end a program in an orderly way. */
#ifndef BASE_PROCESS_SIGNALS_H
#define BASE_PROCESS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Returns true if the signal was ignored when the program was started, by nohup for example, or is
 * ignored now. */
bool signals_ignored(int signal);
/* Writes SIGINT, SIGTERM and SIGHUP to set, except those that are ignored. A program that blocks
 * these signals and reads them through signalfd can end in an orderly way. Ignored signals are left
 * out, because signalfd would report them, too. */
void signals_ending(sigset_t *set);
/* Blocks the signals that end the program, and the signal `beside` (0: none). Ignores SIGPIPE and
 * SIGXFSZ, so that writes to a closed connection, or to a file that may not grow (ulimit -f), fail
 * with an error. Returns a non-blocking signalfd for the blocked signals, or a negative errno.
 * Threads that start later inherit the blocked signals. */
int signals_open(int beside);

#endif
