/* anew.h - the iteration that is under way begins anew. */
#ifndef CONTROLLER_ITERATION_ANEW_H
#define CONTROLLER_ITERATION_ANEW_H

struct controller;

/* The iteration that was under way begins anew. */
void recover_restart(struct controller *c, const char *why);
/* So too where the plan that is pending ends it clearly sooner than what runs again does. */
void recover_sooner(struct controller *c);

#endif
