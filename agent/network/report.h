/* report.h - task events for the controller, a few milliseconds' worth a message; and those of the
 * iteration, for a controller that takes over.
 */
#ifndef AGENT_NETWORK_REPORT_H
#define AGENT_NETWORK_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/execution/queue.h"
#include "wire/msg.h"

struct agent;
struct report; /* opaque; the agent has one */

int report_new(struct report **out); /* -ENOMEM */
void report_free(struct report *r);  /* NULL is allowed */

/* Notes what the task did; told soon, or at once when there is much of it. loss: of a loss task's end. */
void report_event(struct agent *a, enum work_event type, const struct task *t, int64_t at_us, float loss);
void report_flush(struct agent *a, int64_t now_us); /* tells what is noted */
void report_turn(struct agent *a, int64_t now_us);  /* likewise, if it is time */
int64_t report_deadline_us(const struct agent *a);  /* INT64_MAX: nothing is noted */
bool report_pending(const struct agent *a);         /* something is noted and not told */
void report_void(struct agent *a);                  /* forgets what is noted: the run is over */

/* Of the iteration: everything is remembered, until it is forgotten. */
void report_forget(struct agent *a);
/* Tells a controller that took over all of it; false: it asks for another iteration, or something
 * is missing, and nothing is told. */
bool report_recall(struct agent *a, const struct msg_recall *r, int64_t now_us);
bool report_incomplete(const struct agent *a); /* there was no memory for some of it */

#endif
