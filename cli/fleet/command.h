/* command.h - the verb `skippipe fleet`. */
#ifndef CLI_FLEET_COMMAND_H
#define CLI_FLEET_COMMAND_H

/* Runs `skippipe fleet`. argv: the words after the verb. Returns the exit status. */
int fleet_main(char **argv);

#endif
