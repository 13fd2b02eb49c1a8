/* replay.h - a cursor over a recorded run, and the messages that a console gets as the cursor
 * moves.
 *
 * A console that follows a replay gets the messages that it would get from the live run: a
 * snapshot, then every change. A replay has no clock and no network: the caller moves the cursor
 * and sends the messages that the replay emits.
 *
 *     replay_seek(r, cursor); replay_snapshot(r, emit, to);   after an attach or a jump
 *     replay_next(r, cursor, emit, to);                       as time passes
 *     replay_status(r, emit, to); replay_nodes(r, emit, to);  periodically
 *
 * The state at a cursor depends on the cursor alone, and not on how the cursor got there. Values
 * that agents only report in heartbeats (process sizes, links, resent messages) are not recorded
 * and stay 0. The loss is recorded per iteration, not per microbatch.
 *
 * Functions return 0, or a negative errno with *err if the store could not be read. After an error
 * some messages are missing, but the caller may continue the replay. */
#ifndef CONTROLLER_REPLAY_H
#define CONTROLLER_REPLAY_H

#include "controller/replay/recorded_run.h"

struct replay; /* opaque */

/* The speed of a cursor */
struct replay_pace {
	double speed;    /* multiple of real time, > 0 */
	bool stopped;
	/* fraction of a microsecond that replay_pace_step carries to the next step */
	double carry_us;
};

/* Returns how far the cursor moves in real_us. A remaining fraction of a microsecond is added to
 * the next step. */
int64_t replay_pace_step(struct replay_pace *p, int64_t real_us);

/* Callback that sends a message. The callback may change the message, except for its arrays,
 * which are borrowed. The callback has to set the message's sequence number, and the sequence
 * number inside MSG_SEE_SYNCED. */
typedef void (*replay_emit)(void *context, struct msg *m);

/* Creates a cursor at the recorded run's beginning. The recorded run is borrowed until replay_free
 * or replay_renew. */
int replay_new(struct replay **out, const struct recorded_run *recorded, struct error *err);
void replay_free(struct replay *r); /* r may be NULL */
/* Replaces the recorded run by a newer reading of the same run. The cursor keeps its time. Returns
 * 1 if rows before the cursor have changed, so that the console needs a new snapshot. */
int replay_renew(struct replay *r, const struct recorded_run *recorded, struct error *err);

/* Sets two values that the status reports: the speed (0: stopped), and the number of messages to
 * this console that were lost. */
void replay_note_pace(struct replay *r, double times, uint64_t dropped);

int64_t replay_cursor(const struct replay *r);
/* Returns the index of the recorded part to which the cursor's time belongs. */
size_t replay_part_at(const struct replay *r);
/* Moves the cursor to any time without emitting messages. The time is limited to the recorded run's
 * beginning and end. */
int replay_seek(struct replay *r, int64_t cursor_us, struct error *err);
/* Returns the time of the first commit after the cursor. If there is none, returns the end of the
 * recorded run. */
int64_t replay_next_commit(const struct replay *r);

/* Emits the description of the run, for example after the recorded run grew or its baseline became
 * known. A console that gets this message forgets the active faults, so replay_run emits the faults
 * after it. */
void replay_run(const struct replay *r, replay_emit emit, void *context);
/* Emits the whole state, from MSG_SEE_RUN to MSG_SEE_SYNCED. Each snapshot has a new run number, so
 * that the console drops everything that it showed at another cursor. */
int replay_snapshot(struct replay *r, replay_emit emit, void *context, struct error *err);
/* Moves the cursor forward and emits the changes on the way, or a snapshot if the run's controller
 * was restarted on the way. Does nothing if the time is before the cursor. */
int replay_next(struct replay *r, int64_t cursor_us, replay_emit emit, void *context,
		struct error *err);
void replay_status(const struct replay *r, replay_emit emit, void *context);
/* Emits the current numbers of every node that is live or suspect. */
int replay_nodes(struct replay *r, replay_emit emit, void *context, struct error *err);
/* Acknowledges the alert with this id, or all alerts if id is 0. Only alerts before the cursor
 * count. Returns the number of alerts that this call acknowledged. */
uint32_t replay_acknowledge(struct replay *r, uint64_t id, replay_emit emit, void *context);

/* Describes the situation at the cursor for the planner. Gives the plan in force, the nodes to
 * exclude (n_nodes entries), and a cluster in which each node has its stage at the cursor. The
 * caller frees the cluster with cluster_free. -EAGAIN: there is no plan yet. */
int replay_present(struct replay *r, const struct plan **plan, bool *excluded,
		   struct cluster **cluster, struct error *err);

#endif
