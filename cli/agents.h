/* agents.h - `skippipe agent` with several devices: starts one agent for each device.
 *
 * Agent i computes on device number i and has the key FILE.i, where FILE is the value of --key. The
 * ports of --listen and --advertise and the number of --node are increased by i.
 */
#ifndef CLI_AGENTS_H
#define CLI_AGENTS_H

#include <stdbool.h>

/* Returns true if argv, the arguments after the verb, names several devices. */
bool agents_wanted(char **argv);
/* Runs the agents until all have ended. SIGINT, SIGTERM and SIGHUP end the agents. Returns the
 * highest exit status of the agents. */
int agents_main(char **argv);

#endif
