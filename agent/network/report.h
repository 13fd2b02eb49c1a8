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

/* Records an event of a task, to be reported soon, or at once if there are many. loss: of the end
 * of a loss task. */
void report_event(struct agent *a, enum work_event type, const struct task *t, int64_t at_us,
		  float loss);
void report_flush(struct agent *a, int64_t now_us); /* sends the recorded events now */
void report_turn(struct agent *a, int64_t now_us);  /* sends the recorded events if that is due */
/* Returns when the next report is due; INT64_MAX: no events are recorded. */
int64_t report_deadline_us(const struct agent *a);
/* Returns true if events are recorded and not sent. */
bool report_pending(const struct agent *a);
void report_void(struct agent *a);                  /* drops the events when the run is over */

#endif
