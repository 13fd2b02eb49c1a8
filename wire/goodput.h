/* goodput.h - goodput: the share of the nodes' time that was spent in tasks of committed
 * iterations. */
#ifndef WIRE_GOODPUT_H
#define WIRE_GOODPUT_H

#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

/* Returns the share of the nodes' time, from commit to commit, that they spent in tasks of
 * committed iterations, over the newest of the n iterations (32 at most). microbatches: number in
 * an iteration; unit_s: real seconds of a plan second. Returns 0 if no iteration has ended. */
double goodput_of(const struct msg_see_iteration *iterations, size_t n, uint32_t microbatches,
		  double unit_s);

#endif
