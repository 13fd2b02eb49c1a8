/* replay.h - a cursor over a recording, and what a console must be told as it moves.
 *
 * A console that follows a replay hears what one that followed the run heard: a snapshot, then every
 * change, from the same messages. Nothing here knows a clock or a network: the caller moves the
 * cursor and sends what is emitted.
 *
 *     replay_seek(r, cursor); replay_snapshot(r, emit, to);   after an attach, and after a jump
 *     replay_next(r, cursor, emit, to);                       as time goes on
 *     replay_status(r, emit, to); replay_nodes(r, emit, to);  now and then
 *
 * The state at a cursor depends on the cursor alone, however it was reached. What agents only ever
 * told by heartbeat (processes' sizes, links, messages resent) was not recorded, and stays 0; a loss
 * is known for the iteration, not for each microbatch.
 *
 * Functions return 0, or a negative errno with *err where the store could not be read: then less was
 * emitted than should have been, and the replay can go on.
 */
#ifndef CONTROLLER_REPLAY_H
#define CONTROLLER_REPLAY_H

#include "controller/replay/recording.h"

struct replay; /* opaque */

/* How fast a cursor goes. */
struct replay_pace {
	double speed;    /* times real, > 0 */
	bool stopped;
	double carry_us; /* of a microsecond, not gone yet */
};

/* How far the cursor goes in real_us; what is less than a microsecond is kept for the next step. */
int64_t replay_pace_step(struct replay_pace *p, int64_t real_us);

/* The message is the callee's to change but for its arrays, which are borrowed. Its sequence, and
 * that which MSG_SEE_SYNCED carries, are the sender's to fill in. */
typedef void (*replay_emit)(void *context, struct msg *m);

/* At the recording's beginning. The recording is borrowed until replay_free or replay_renew. */
int replay_new(struct replay **out, const struct recording *recording, struct error *err);
void replay_free(struct replay *r); /* NULL is allowed */
/* A recording of the same run, read again: the cursor stays. 1 when what lies behind the cursor is not what it was:
 * then a snapshot is due. */
int replay_renew(struct replay *r, const struct recording *recording, struct error *err);

/* For the status to say: times real (0: the cursor stands), and messages lost to that console. */
void replay_note_pace(struct replay *r, double times, uint64_t dropped);

int64_t replay_cursor(const struct replay *r);
/* To any time; beyond the ends is at them. */
int replay_seek(struct replay *r, int64_t cursor_us, struct error *err);
/* When the next iteration after the cursor was committed; the end when none was. */
int64_t replay_next_commit(const struct replay *r);

/* What the run is, told again when it grew or its baseline became known; and the faults that are
 * active, which consoles then expect anew. */
void replay_run(const struct replay *r, replay_emit emit, void *context);
/* From MSG_SEE_RUN to MSG_SEE_SYNCED. Each snapshot is of a run with a new number: a console that
 * followed the cursor elsewhere starts from nothing. */
int replay_snapshot(struct replay *r, replay_emit emit, void *context, struct error *err);
/* Moves on and tells what happened since. A cursor behind the present one moves nothing. */
int replay_next(struct replay *r, int64_t cursor_us, replay_emit emit, void *context, struct error *err);
void replay_status(const struct replay *r, replay_emit emit, void *context);
/* Every node that lives: its numbers, and that it was heard. */
int replay_nodes(struct replay *r, replay_emit emit, void *context, struct error *err);
/* Alerts up to the cursor that stand: id, or 0 for all. Returns how many there were. */
uint32_t replay_acknowledge(struct replay *r, uint64_t id, replay_emit emit, void *context);

/* What the planner needs for a plan like the one in force at the cursor: the plan, who is out
 * (n_nodes) and a cluster whose nodes are pinned as then (cluster_free). -EAGAIN: no plan yet. */
int replay_present(struct replay *r, const struct plan **plan, bool *excluded, struct cluster **cluster,
		   struct error *err);

#endif
