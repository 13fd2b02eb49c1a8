/* chain.h - numbers the tasks of a microbatch in the order in which they run. Pure functions.
 *
 * A route of n hops has the task positions 0 to 2n (F: forward, L: loss, B: backward):
 *
 *     position   0   1  ..  n-1    n      n+1   ..   2n
 *     task       F   F      F      L      B          B
 *     at hop     0   1      n-1    0      n-1        0
 */
#ifndef WIRE_CHAIN_H
#define WIRE_CHAIN_H

#include <stdint.h>

#include "wire/msg.h"

/* Returns the hop of the task at a position; 0 for a position beyond 2n. */
uint32_t chain_hop(uint32_t n_hops, uint32_t position);
/* Returns the kind of the task at a position: TASK_FORWARD, TASK_LOSS or TASK_BACKWARD. */
enum task_kind chain_kind(uint32_t n_hops, uint32_t position);
/* Returns the position of a hop's task. For TASK_LOSS, returns the same position for every
 * hop. */
uint32_t chain_position(uint32_t n_hops, uint32_t hop, enum task_kind kind);
/* Returns the hop at which the route visits the node; -1: the route does not visit it. nodes: the
 * nodes of the route's n_hops hops. */
int chain_find(const uint16_t *nodes, uint32_t n_hops, uint16_t node);

#endif
