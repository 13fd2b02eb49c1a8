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

/* ---- of iteration 1, with the three and three ---- */

/* The node tells that it did its pass of the microbatch, in so many plan seconds. */
void under_way_does(struct controller *c, uint16_t node, uint32_t microbatch, enum task_kind kind,
		    uint32_t attempt, double took_s);
/* The microbatch's node of the second stage. */
uint16_t under_way_second_of(const struct controller *c, uint32_t microbatch);
/* Each data node passes its first two on, and n03 takes six times as long as planned for what it gets of
 * them; the others take what they should. */
void under_way_three_is_slow(struct controller *c);
/* Every microbatch, out and back, in its first attempt: sums are next. */
void under_way_all_is_done(struct controller *c);
/* The node tells the sum of its stage, alike with the others'. */
void under_way_tells_its_sum(struct controller *c, uint16_t node);
/* All that take part, until it is committed */
void under_way_all_tell_their_sums(struct controller *c);
/* Iteration 1 is committed, and the record has each gradient of each stage, and each loss, in one sum once. */
void under_way_recorded_once(const struct controller *c);

#endif
