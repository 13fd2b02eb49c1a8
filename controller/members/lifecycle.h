/* lifecycle.h - the states of a member, its events, and the one function that changes its state.
 *
 *     ABSENT --HELLO--> JOINING --ASSIGN--> SYNCING --HAS_STAGE--> READY
 *                          |                                         |
 *                       RESTORE                           JOIN_SUMS  |  ADMIT
 *                          v                              v          v
 *                      RESTORING --HAS_STAGE--> RESTORED  SUMMING -> LIVE <-> SUSPECT
 *                                                  |         ADMIT    ^  QUIET, HEARD
 *                                                  +------ADMIT-------+
 *
 *     to JOINING:       WAIT from a candidate's states, LEAVE from a replica's, REWIND from both;
 *                       HELLO from all but a replica's; RETURN from DEAD; RECOVER from FAILED
 *     to RESTORING:     RESTORE also from SYNCING, READY and LIVE; ABANDON ends the restore
 *     to DEAD:          LOST from every state with a connection; MISS from ABSENT, LEFT, FAILED
 *     to FAILED:        MARK from a candidate's states, RETIRE from a replica's; BAR from DEAD and
 *                       from a candidate's states
 *     to LEFT:          DEPART from FAILED and from a candidate's states
 *     to LIVE at once:  REINSTATE from DEAD, JOINING, SYNCING or READY, if the member has the last
 *                       commit of a stage that has no replica
 *
 * A candidate's states are JOINING, SYNCING, READY, RESTORING and RESTORED. A replica's states are
 * SUMMING, LIVE and SUSPECT. The table in lifecycle.c has every pair of state and event that can
 * occur, with what it requests from the loop. Messages that go with an event are named below; the
 * module that applies the event sends them. */
#ifndef CONTROLLER_MEMBERS_LIFECYCLE_H
#define CONTROLLER_MEMBERS_LIFECYCLE_H

#include <stdbool.h>

struct members;
struct run;
struct member;

enum member_state {
	MEMBER_ABSENT,    /* no process has joined as this node since the controller began */
	MEMBER_JOINING,   /* connected, and waits for a stage */
	MEMBER_SYNCING,   /* builds, fetches or loads its stage, or is measured */
	MEMBER_READY,     /* has its stage; becomes a replica with the next sum or iteration */
	MEMBER_RESTORING, /* reads a stage from a checkpoint, or averages it from its neighbours */
	MEMBER_RESTORED,  /* has restored its stage; waits for nodes that restore other stages */
	MEMBER_SUMMING,   /* takes part in this iteration's sum and commit, but computes nothing */
	MEMBER_LIVE,      /* takes part in everything */
	MEMBER_SUSPECT,   /* takes part, but has been silent for most of the allowed time */
	/* Connected, but excluded by the operator or because it sent bad data */
	MEMBER_FAILED,
	/* Silent or disconnected. Its session is kept, because the process may only be suspended */
	MEMBER_DEAD,
	MEMBER_LEFT, /* the agent of this node drained and was ordered to stop */
	MEMBER_STATES
};

/* A node drains if its agent got SIGTERM. Only member_drain changes this value. */
enum member_drain {
	DRAIN_NOT,
	DRAIN_WANTED,   /* the agent has announced that it drains, and plans still use the node */
	DRAIN_EXCLUDED, /* the node is marked: the next plan does not use it */
};

enum member_event {
	EVENT_HELLO,     /* a process joined; the controller sends it MSG_WELCOME */
	EVENT_HEARD,     /* the member sent a heartbeat */
	EVENT_RETURN,    /* the member was dead, and sent a heartbeat */
	EVENT_REINSTATE, /* the member has the last commit of a stage that has no replica */
	EVENT_WAIT,      /* the member cannot have a stage yet, or its weights are useless */
	EVENT_LEAVE,     /* a replica gives its stage up to take another one */
	EVENT_ASSIGN,    /* the member gets a stage: MSG_ASSIGN, or MSG_KEEP to fetch it first */
	EVENT_HAS_STAGE, /* the member reported that it has its stage (MSG_READY) */
	/* The member returned to a resumed run with the last commit of its stage */
	EVENT_HOLDS,
	EVENT_RESTORE,   /* the controller sends the member MSG_RESTORE */
	EVENT_ABANDON,   /* the restore is abandoned; an answer may arrive later */
	EVENT_JOIN_SUMS, /* the next MSG_REDUCE of the member's stage names the member */
	EVENT_ADMIT,     /* the member gets the next MSG_START */
	EVENT_REWIND,    /* the run goes back to a checkpoint */
	EVENT_QUIET,     /* the member was silent for most of the allowed time */
	/* The member was marked failed; a replica works until a plan excludes it */
	EVENT_MARK,
	EVENT_RETIRE,  /* no plan contains the marked replica any more */
	EVENT_BAR,     /* a member that is marked failed connects */
	EVENT_RECOVER, /* the operator takes the mark back */
	EVENT_LOST,    /* the member counts as dead */
	EVENT_DEPART,  /* the draining member is not needed any more, and gets MSG_STOP */
	/* The member did not return to a resumed run, or the run ends without it */
	EVENT_MISS,
	MEMBER_EVENTS
};

/* Changes m's state as the table says, and records the change for the store, the journal and the
 * consoles. why: the reason that is shown with the state; NULL: the reason stays. If the table
 * does not list the event for m's state, nothing changes, an error is logged, and false is
 * returned. */
bool member_apply(struct run *run, struct member *m, enum member_event event, const char *why);
/* Sets whether m is marked failed, by the operator or because m sent bad data. The mark is
 * recorded, so a restarted controller knows it, too. */
void member_mark(struct members *members, struct member *m, bool is_marked);
/* Sets whether m drains, and records the change. A restarted controller learns this state from m's
 * heartbeats. */
void member_drain(struct members *members, struct member *m, enum member_drain to);

#endif
