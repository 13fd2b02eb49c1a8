/* command.h - the operator's acts. */
#ifndef CONTROLLER_OPERATOR_COMMAND_H
#define CONTROLLER_OPERATOR_COMMAND_H

struct controller;
struct console;
struct msg_command;
struct planned;

void command_receive(struct controller *c, struct console *from, const struct msg_command *m);
void command_previewed(struct controller *c, struct planned *answer); /* takes it */
void command_scripted(struct controller *c); /* --at: acts due before the next iteration */
void command_turn(struct controller *c);     /* leases and faults that end */
void command_fini(struct controller *c);
float prediction_error(const struct controller *c); /* median */

#endif
