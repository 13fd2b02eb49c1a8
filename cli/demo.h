/* demo.h - `skippipe demo` and `skippipe rehearse`: a controller, its agents and a console on this
 * machine.
 *
 * The demo creates a run folder, keys and a private folder for sockets. It starts the programs that
 * an operator would start by hand, and restarts or kills agents when the controller orders this.
 * When the demo ends, no process and no socket is left, and the terminal has its former settings.
 */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include <stdbool.h>

/* Runs the verb. rehearse: the agents only pretend to compute. argv: the verb and the words after
 * it; ends with NULL. Returns the exit status: that of the controller, or 1 if a program could not
 * be started, or 2 for wrong usage. */
int demo_main(bool rehearse, char **argv);

#endif
