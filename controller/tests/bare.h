/* bare.h - for tests: a controller without a process, store or plan. The controller has a key, a
 * post and a planner. Every node of its cluster is a live replica without a standby copy. Messages
 * to nodes are lost. Every error fails the running cmocka test. */
#ifndef CONTROLLER_TESTS_BARE_H
#define CONTROLLER_TESTS_BARE_H

#include "controller/controller.h"

/* Returns a controller that takes ownership of the cluster. Free both with bare_free. */
struct controller *bare_controller(struct cluster *cluster, uint32_t path_length);
/* Frees the controller with its plans, faults and members. A test that has added memory to a member
 * must free this memory first. */
void bare_free(struct controller *c);

#endif
