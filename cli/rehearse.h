/* rehearse.h - `skippipe rehearse`, which with --fleet first lets the planner choose a cluster. */
#ifndef CLI_REHEARSE_H
#define CLI_REHEARSE_H

/* Runs the verb and returns its exit status. argv: the verb and the words after it; ends with
 * NULL. */
int rehearse_main(char **argv);

#endif
