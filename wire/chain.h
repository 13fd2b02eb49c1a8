/* chain.h - the tasks of a microbatch as a chain of positions. Pure functions.
 *
 * A route of n hops is the chain of positions 0 .. 2n:
 *
 *     position   0   1  ..  n-1    n      n+1   ..   2n
 *     task       F   F      F      L      B          B
 *     at hop     0   1      n-1    0      n-1        0
 */
#ifndef WIRE_CHAIN_H
#define WIRE_CHAIN_H

#include <stdint.h>

#include "wire/msg.h"

/* Returns the hop of a position; 0 for a position beyond the chain. */
uint32_t chain_hop(uint32_t n_hops, uint32_t position);
/* Returns TASK_FORWARD, TASK_LOSS or TASK_BACKWARD. */
enum task_kind chain_kind(uint32_t n_hops, uint32_t position);
/* Returns the position of a hop's task. TASK_LOSS has one position, whatever the hop. */
uint32_t chain_position(uint32_t n_hops, uint32_t hop, enum task_kind kind);
/* Returns the hop at which the route visits the node; -1: none. nodes: (n_hops). */
int chain_find(const uint16_t *nodes, uint32_t n_hops, uint16_t node);

#endif
