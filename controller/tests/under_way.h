/* under_way.h - for tests: a controller without a process, with an iteration under way, at times
 * that the test sets.
 *
 * The cluster has three data nodes and three nodes of the second stage, all alike and live. The
 * store is in a folder of its own. Messages to nodes are lost. Every error fails the running cmocka
 * test. */
#ifndef CONTROLLER_TESTS_UNDER_WAY_H
#define CONTROLLER_TESTS_UNDER_WAY_H

#include "controller/controller.h"

enum { NODES = 6, DATA = 3, EACH = 4, N = DATA * EACH, SECOND = 1000000, FIRST = 5 };

/* Set-up and tear-down of a test: *state is the controller. */
int under_way_begin(void **state);
int under_way_end(void **state);
/* Returns a controller like that of under_way_begin with other numbers. Half of the nodes are data
 * nodes, with `each` microbatches each, and paths have path_length stages. under_way_end frees
 * it. */
struct controller *under_way_of(int nodes, int each, int path_length);
/* Returns a cluster of equal nodes, with the same number of nodes in each stage. each: microbatches
 * of each data node. */
struct cluster *under_way_cluster(int nodes, int stages, int each);
/* Returns a controller like that of under_way_begin, but with this cluster and with paths of
 * path_length stages. Takes ownership of the cluster. */
struct controller *under_way_begun(struct cluster *cluster, int path_length);
/* Returns a controller without store and plan, which takes ownership of the cluster. */
struct controller *under_way_knowing(struct cluster *cluster);

/* Makes the controller's messages to the node wait in a queue from now on. Without this, they
 * would be lost, because the test has no agent. */
void under_way_keep_messages(struct controller *c, struct member *m);

/* Makes the planner answer with a plan for the prepared exchange of stages. */
void under_way_plans_exchange(struct controller *c);

/* ---- for iteration 1, with three data nodes and three nodes of the second stage ---- */

/* Makes the node report that it has run a pass of the microbatch, which took took_s seconds. */
void under_way_does(struct controller *c, uint16_t node, uint32_t microbatch, enum task_kind kind,
		    uint32_t attempt, double took_s);
/* Returns the node of the second stage on the microbatch's route. */
uint16_t under_way_second_of(const struct controller *c, uint32_t microbatch);
/* Makes each data node compute its first two microbatches and pass them on. n03 takes six times the
 * planned time for its part, and the other nodes take the planned time. */
void under_way_three_is_slow(struct controller *c);
/* Runs every microbatch forward and backward, in its first attempt. The sums come next. */
void under_way_all_is_done(struct controller *c);
/* Makes the node report the same sum as the other nodes of its stage. */
void under_way_reports_sum(struct controller *c, uint16_t node);
/* Makes all replicas report their sums, so that the iteration is committed. */
void under_way_all_tell_their_sums(struct controller *c);
/* Checks that iteration 1 is committed, and that the recorded sums contain each gradient and each
 * loss once. */
void under_way_recorded_once(const struct controller *c);

#endif
