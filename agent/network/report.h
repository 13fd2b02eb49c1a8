/* report.h - reports task events to the controller. One message has the events of a few
 * milliseconds. */
#ifndef AGENT_NETWORK_REPORT_H
#define AGENT_NETWORK_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/shared/progress.h"
#include "agent/shared/run.h"
#include "agent/shared/tell.h"
#include "wire/msg.h"

struct report; /* opaque; the agent has one */

/* Borrows its arguments (report_free). */
struct report *report_new(struct tell *tell, const struct run *run,
			  const struct progress *progress);
void report_free(struct report *r);  /* NULL is allowed */

/* Records an event of a task of this node. The next report is sent a few milliseconds later, or
 * at once if the report is full. */
void report_event(struct report *r, const struct msg_task_event *e);
void report_flush(struct report *r, int64_t now_us); /* sends the recorded events now */
/* Sends the recorded events if a report is due. */
void report_turn(struct report *r, int64_t now_us);
/* Returns the time at which the next report is due; INT64_MAX: no events are recorded. */
int64_t report_deadline_us(const struct report *r);
/* Returns true if events are recorded and not sent. */
bool report_pending(const struct report *r);
void report_void(struct report *r); /* drops the recorded events when the run is over */

#endif
