/* finish.h - ends a run: announces the end once, to consoles, agents and the supervisor. */
#ifndef CONTROLLER_MEMBERS_FINISH_H
#define CONTROLLER_MEMBERS_FINISH_H

struct members;

/* Ends the run now and sends MSG_STOP to the agents. status: the exit status of the program. If
 * status is not 0, `why` is an error. Does nothing if the run has ended already. */
void controller_finish(struct members *members, int status, const char *why);
/* Ends this controller because it cannot write its record. The agents do not stop: they keep their
 * weights for a controller that can write. */
void controller_unrecorded(struct members *members, const char *why);

#endif
