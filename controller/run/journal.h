/* journal.h - writes the journal of the run: to consoles, the store and the log. */
#ifndef CONTROLLER_RUN_JOURNAL_H
#define CONTROLLER_RUN_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "controller/run/rate_limit.h"
#include "wire/msg.h"

/* Number of newest notes that the controller keeps for consoles that attach later; the store has
 * all notes */
enum { KEPT_NOTES = 500 };

struct run;

struct journal {
	struct msg_see_note *notes; /* array of n_notes: at least the newest KEPT_NOTES lines */
	uint32_t n_notes;
	size_t room_notes;
	uint64_t last;                      /* id of the newest line */
	uint64_t counts[NOTE_LAST + 1];     /* number of lines of each kind */
	struct msg_see_note newest_alert;   /* the newest alert; its id is 0 if there is none */
	/* Function that is called with each alert (controller/monitor); NULL: none */
	void (*on_alert)(void *listener, const struct msg_see_note *alert, int64_t now_us);
	void *listener;
	/* Number of the operator's newest act, with which it can be undone */
	uint32_t act;
	struct rate_limit lines[MSG_NODES]; /* limits the journal lines about each node */
};

/* Writes a line to the journal, with '?' for control characters and bytes that are not UTF-8. node:
 * the node concerned; -1: none. mark: a letter that the console shows in its curves; 0: none.
 * Returns the line's id. If the limit of the node's lines drops the line, returns the id of the
 * newest line. */
uint64_t note(struct run *run, enum note_kind kind, int node, char mark, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* Replaces control characters, and bytes that are not UTF-8, by '?'. No text of an agent can then
 * write a line of its own into the log, or change an operator's terminal. */
void journal_make_plain(char *text);

#endif
