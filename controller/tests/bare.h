/* bare.h - for tests: a controller without a process, store or plan. It has a key, a post and a
 * planner; every node of its cluster is a live replica that keeps no copy. Messages to nodes are
 * lost. Every error fails the running cmocka test. */
#ifndef CONTROLLER_TESTS_BARE_H
#define CONTROLLER_TESTS_BARE_H

#include "controller/controller.h"

/* Returns a controller of this cluster, which it takes. bare_free frees it. */
struct controller *bare_controller(struct cluster *cluster, uint32_t path_length);
/* Frees the controller with its plans, faults and members. What a test added to a member is the
 * test's to free. */
void bare_free(struct controller *c);

#endif
