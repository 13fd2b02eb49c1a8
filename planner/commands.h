/* commands.h - the commands of skippipe-plan. Each takes argv with the command first, and returns
 * the exit status: 0: done; 1: failed; 2: wrong usage; 3: no plan is possible, or the plan breaks a
 * rule. */
#ifndef PLANNER_COMMANDS_H
#define PLANNER_COMMANDS_H

int command_plan(int argc, char **argv);
int command_fleet(int argc, char **argv); /* the command `plan --fleet` */
int command_simulate(int argc, char **argv);

#endif
