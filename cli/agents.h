/* agents.h - `skippipe agent` with several devices: an agent for each.
 *
 * Agent i of them gets the i-th device, the key FILE.i for --key FILE, and i more than the port of
 * --listen and --advertise and than the node of --node.
 */
#ifndef CLI_AGENTS_H
#define CLI_AGENTS_H

#include <stdbool.h>

/* argv: what follows the verb. */
bool agents_wanted(char **argv);
/* Until all have ended; SIGINT, SIGTERM and SIGHUP end them. The worst exit status. */
int agents_main(char **argv);

#endif
