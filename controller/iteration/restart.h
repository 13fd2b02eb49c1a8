/* restart.h - the iteration that is under way begins anew. */
#ifndef CONTROLLER_ITERATION_RESTART_H
#define CONTROLLER_ITERATION_RESTART_H

struct iteration;

/* The iteration that was under way begins anew. */
void restart_iteration(struct iteration *it, const char *why);

#endif
