/* signals.h - the signals that end a program in an orderly way. */
#ifndef BASE_PROCESS_SIGNALS_H
#define BASE_PROCESS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Returns true if the signal was ignored when the program was started, by nohup for example, or is
 * ignored since. */
bool signals_ignored(int signal);
/* Writes SIGINT, SIGTERM and SIGHUP to set, except those that are ignored. A program that blocks
 * this set and reads it through signalfd ends in order. A blocked signal would be reported even if
 * it is ignored. */
void signals_ending(sigset_t *set);
/* Blocks the signals that end the program, and one more (0: none). Ignores SIGPIPE and SIGXFSZ, so
 * that a peer that has gone and a file that may not grow (ulimit -f) are failed writes. Returns a
 * signalfd, which does not block, or a negative errno. Threads that start later inherit this. */
int signals_open(int beside);

#endif
