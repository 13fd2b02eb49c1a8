/* view.h - the state of a run as monitors see it: a copy of the messages that consoles receive.
 *
 * The copy is plain data. The loop fills it and a server's thread reads it. A slow client of the
 * server therefore never reads the state of the loop. For a recorded run, the copy is filled from
 * the store. */
#ifndef CONTROLLER_MONITOR_VIEW_H
#define CONTROLLER_MONITOR_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/run/record.h"
#include "controller/monitor/alerts.h"
#include "wire/msg.h"

/* Figures of the controller's process. They are zero for a recorded run. */
struct view_process {
	uint64_t resident_bytes, resent;
	double cpu_s;
};

struct view {
	struct msg_see_run run;
	struct msg_see_status status;
	struct msg_see_plan plan; /* the plan in force, without its arrays */
	bool has_plan;
	struct msg_see_iteration last; /* the newest committed iteration */
	bool has_last;
	struct msg_see_validation validation; /* the newest validation */
	bool has_validation;
	struct msg_see_note alert; /* the newest alert; id 0: there is none */
	double goodput;
	struct curve_totals totals;
	struct view_process process;
	struct alerts_count alerts;
	uint64_t notes[NOTE_LAST + 1]; /* number of journal lines of each kind */
	/* The record cannot be written, because the disk is full or the record is locked */
	bool disk_waits;
	/* The run has a record, but no controller continues it */
	bool is_left;
	int64_t wall_us;            /* wall time when the view was made */
	struct msg_see_node *nodes; /* array of n_nodes, malloc */
	uint32_t n_nodes;
	size_t room_nodes;
};

/* Health of a run. Each value is also the exit status of skippipe status. */
enum view_health { VIEW_HEALTHY, VIEW_DEGRADED, VIEW_STOPPED };

/* Judges the run. Calls `say` with each reason as a text; `say` may be NULL. Healthy: the run
 * trains with all of its nodes, and no person or fault interferes. Stopped: the run has ended, or
 * no controller runs. Degraded: neither healthy nor stopped. */
enum view_health view_health(const struct view *v, void (*say)(void *context, const char *reason),
			     void *context);
const char *view_health_name(enum view_health health);
/* Counts the nodes in each state. */
void view_count_states(const struct view *v, uint32_t counts[NODE_LAST + 1]);
/* Frees the nodes. */
void view_fini(struct view *v);

#endif
