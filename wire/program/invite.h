/* invite.h - the command `skippipe invite`. */
#ifndef WIRE_PROGRAM_INVITE_H
#define WIRE_PROGRAM_INVITE_H

/* Runs the command; argv[0] is the command's name. Returns the exit status: 0: done, 1: failed, 2:
 * wrong usage. */
int invite_command(int argc, char **argv);

#endif
