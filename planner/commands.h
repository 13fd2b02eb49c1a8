/* commands.h - the commands of skippipe-plan. Each takes argv with the command first, and returns
 * the exit status: 0 done, 1 failed, 2 usage, 3 infeasible or a rule is broken. */
#ifndef PLANNER_COMMANDS_H
#define PLANNER_COMMANDS_H

int command_plan(int argc, char **argv);
int command_fleet(int argc, char **argv); /* plan --fleet */
int command_simulate(int argc, char **argv);

#endif
