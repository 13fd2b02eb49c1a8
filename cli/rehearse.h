/* rehearse.h - `skippipe rehearse`. With --fleet, the planner first chooses a cluster. */
#ifndef CLI_REHEARSE_H
#define CLI_REHEARSE_H

/* Runs the verb and returns its exit status. argv: the verb and the words after it; ends with
 * NULL. */
int rehearse_main(char **argv);

#endif
