/* measure.h - measures links on the controller's order, and round trips from time to time. */
#ifndef AGENT_NETWORK_MEASURE_H
#define AGENT_NETWORK_MEASURE_H

#include <stdint.h>

#include "wire/msg.h"

struct agent;
struct measure; /* opaque; the agent has one */

struct measure *measure_new(void); /* measure_free */
void measure_free(struct measure *w);  /* NULL is allowed */

/* Begins to measure a link, or (MSG_NOBODY) all round trips. Replaces the previous order. */
void measure_begin(struct agent *a, const struct msg_measure *m, int64_t now_us);
void measure_turn(struct agent *a, int64_t now_us);
void measure_soon(struct agent *a, int64_t now_us); /* makes the next turn due at once */
int64_t measure_deadline_us(const struct agent *a);
void measure_forget(struct agent *a);

#endif
