/* status.h - skippipe status: the state of a run, for scripts and for people. */
#ifndef CONTROLLER_MONITOR_STATUS_H
#define CONTROLLER_MONITOR_STATUS_H

/* Runs `skippipe status`. argv[0] is the verb. Returns the exit status: 0 healthy, 1 degraded, 2
 * stopped, 3 unreachable, 4 wrong usage. */
int status_main(int argc, char **argv);

#endif
