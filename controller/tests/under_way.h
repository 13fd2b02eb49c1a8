/* under_way.h - for tests: a controller without a process, an iteration under way, at times that the test gives.
 *
 * Three data nodes and three of the second stage, all alike and live; a store in a folder of its own. Who is sent
 * something does not get it. Everything fails the running cmocka test when it goes wrong.
 */
#ifndef CONTROLLER_TESTS_UNDER_WAY_H
#define CONTROLLER_TESTS_UNDER_WAY_H

#include "controller/controller.h"

enum { NODES = 6, DATA = 3, EACH = 4, N = DATA * EACH, SECOND = 1000000, FIRST = 5 };

/* Set-up and tear-down: *state is the controller. */
int under_way_begin(void **state);
int under_way_end(void **state);
/* So with other numbers: half of the nodes are data nodes, with so many microbatches each. under_way_end takes it. */
struct controller *under_way_of(int nodes, int each);
/* So in that cluster, which it takes, by ways through so many stages. */
struct controller *under_way_begun(struct cluster *cluster, int path_length);
/* What a controller knows beside its store and plan. Takes the cluster. */
struct controller *under_way_knowing(struct cluster *cluster);

#endif
