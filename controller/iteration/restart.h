/* restart.h - the iteration that is under way begins anew. */
#ifndef CONTROLLER_ITERATION_RESTART_H
#define CONTROLLER_ITERATION_RESTART_H

struct controller;

/* The iteration that was under way begins anew. */
void restart_iteration(struct controller *c, const char *why);
/* Begins the iteration anew where the pending plan ends it clearly sooner than what runs again does. */
void restart_if_sooner(struct controller *c);

#endif
