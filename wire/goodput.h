/* goodput.h - goodput: the share of the nodes' time that was spent in tasks of committed
 * iterations. */
#ifndef WIRE_GOODPUT_H
#define WIRE_GOODPUT_H

#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

/* Returns goodput over the newest 32 of the n iterations: the share of the nodes' time that they
 * spent in tasks of committed iterations. The time of an iteration is counted from the previous
 * commit to its own commit.
 *
 * microbatches: number of microbatches in an iteration. unit_s: real seconds in one second of the
 * plan. Returns 0 if no iteration has been committed. */
double goodput_of(const struct msg_see_iteration *iterations, size_t n, uint32_t microbatches,
		  double unit_s);

#endif
