/* demo.h - `skippipe demo`: a controller, its agents and a console on this machine.
 *
 * Makes a run folder, keys and a private folder for sockets, starts the same programs a person
 * would start by hand, restarts or kills agents when the controller asks (on behalf of the
 * operator), and leaves nothing behind when it ends: no process, no socket, no changed terminal.
 */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

/* argv: what follows the verb, NULL-terminated. Returns the exit status: the controller's, or 1
 * failed to start, 2 usage. */
int demo_main(char **argv);

#endif
