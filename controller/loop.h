/* loop.h - the controller's loop: who does what, and after whom. */
#ifndef CONTROLLER_LOOP_H
#define CONTROLLER_LOOP_H

struct controller;
struct iteration;

/* Until the run has ended and everybody was told. signals: a signalfd of those that end it. */
void loop_run(struct controller *c, int signals);
/* ---- its parts, public for tests, which play turns one by one ---- */

/* Carries out what parts have requested (requests.h), and what that leads to, until nothing is
 * left. */
void loop_act(struct iteration *it);
/* Who is here, and whom each reaches: who is silent or cut off goes, joiners are helped on. */
void loop_look_at_members(struct iteration *it);
/* Takes the planner's answers: plans for the run, previews, the plain pipeline. */
void loop_take_answers(struct controller *c);
/* Does what the present phase of the run allows. */
void loop_phase(struct controller *c);

#endif
