/* measure.h - what links can do: on the controller's order, and round trips now and then. */
#ifndef AGENT_NETWORK_MEASURE_H
#define AGENT_NETWORK_MEASURE_H

#include <stdint.h>

#include "wire/msg.h"

struct agent;
struct measure; /* opaque; the agent has one */

struct measure *measure_new(void); /* measure_free */
void measure_free(struct measure *w);  /* NULL is allowed */

/* A link's latency and bandwidth, or (MSG_NOBODY) all round trips; in place of the order before. */
void measure_begin(struct agent *a, const struct msg_measure *m, int64_t now_us);
void measure_turn(struct agent *a, int64_t now_us);
void measure_soon(struct agent *a, int64_t now_us); /* the next turn has something to do */
int64_t measure_deadline_us(const struct agent *a);
void measure_forget(struct agent *a);

#endif
