/* report.h - reports task events to the controller, a few milliseconds' worth in a message. */
#ifndef AGENT_NETWORK_REPORT_H
#define AGENT_NETWORK_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/execution/queue.h"
#include "wire/msg.h"

struct agent;
struct report; /* opaque; the agent has one */

struct report *report_new(void); /* report_free */
void report_free(struct report *r);  /* NULL is allowed */

/* Notes what the task did; told soon, or at once when there is much of it. loss: of a loss task's end. */
void report_event(struct agent *a, enum work_event type, const struct task *t, int64_t at_us,
		  float loss);
void report_flush(struct agent *a, int64_t now_us); /* tells what is noted */
void report_turn(struct agent *a, int64_t now_us);  /* likewise, if it is time */
int64_t report_deadline_us(const struct agent *a);  /* INT64_MAX: nothing is noted */
bool report_pending(const struct agent *a);         /* something is noted and not told */
void report_void(struct agent *a);                  /* forgets what is noted: the run is over */

#endif
