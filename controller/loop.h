/* loop.h - the controller's main loop. */
#ifndef CONTROLLER_LOOP_H
#define CONTROLLER_LOOP_H

struct controller;
struct iteration;

/* Runs the loop until the run has ended and every peer has received the last messages. The time
 * for sending the last messages is limited. signals: descriptor (signalfd) of the signals that
 * end the run. */
void loop_run(struct controller *c, int signals);
/* ---- parts of a turn, public for tests, which run them one by one ---- */

/* Carries out the requests of the parts (requests.h). These may cause further requests, so the
 * call continues until no request is left. */
void loop_act(struct iteration *it);
/* Checks which nodes are silent or cut off, and advances nodes that join. */
void loop_look_at_members(struct iteration *it);
/* Takes the planner's answers, and passes each to the part that asked: plans of the run, plans
 * for previews and comparisons, and the plan of the plain pipeline. */
void loop_take_answers(struct controller *c);
/* Does the work of the run's present phase. */
void loop_phase(struct controller *c);

#endif
