/* journal.h - writes the journal of the run: to consoles, the store and the log. */
#ifndef CONTROLLER_RUN_JOURNAL_H
#define CONTROLLER_RUN_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "controller/run/rate_limit.h"
#include "wire/msg.h"

/* Number of notes kept for consoles that attach later; the store has all notes */
enum { KEPT_NOTES = 500 };

struct run;

struct journal {
	struct msg_see_note *notes; /* (n_notes) at least the newest KEPT_NOTES */
	uint32_t n_notes;
	size_t room_notes;
	uint64_t last;                      /* id of the newest note */
	uint64_t counts[NOTE_LAST + 1];     /* number of lines of each kind */
	struct msg_see_note newest_alert;   /* id 0: none */
	/* Receives each alert (controller/monitor); NULL: no receiver */
	void (*on_alert)(void *listener, const struct msg_see_note *alert, int64_t now_us);
	void *listener;
	uint32_t act;                       /* number of the operator's newest act, for undo */
	struct rate_limit lines[MSG_NODES]; /* limits the journal lines about each node */
};

/* Writes a line, with '?' for control characters and bytes that are not UTF-8. node: -1: about no
 * node; mark: the letter in the console's curves, 0: none. Returns the line's id, or that of the
 * newest line if the node's limit drops it. */
uint64_t note(struct run *run, enum note_kind kind, int node, char mark, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* Replaces control characters, and bytes that are not UTF-8, by '?'. No text of an agent can then
 * write a line of its own into the log, or change an operator's terminal. */
void journal_make_plain(char *text);

#endif
