/* journal.h - the journal: a line is told to consoles, stored, logged, and kept for consoles that come later. */
#ifndef CONTROLLER_OPERATOR_JOURNAL_H
#define CONTROLLER_OPERATOR_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "controller/trust/rate_limit.h"
#include "wire/msg.h"

enum { KEPT_NOTES = 500 }; /* for consoles that come later; the store has all */

struct run;

struct journal {
	struct msg_see_note *notes; /* (n_notes) the newest KEPT_NOTES at least */
	uint32_t n_notes;
	size_t room_notes;
	uint64_t last; /* id of the newest note */
	uint32_t act;  /* number of the operator's newest act, for undo */
	struct rate_limit lines[MSG_NODES]; /* of notes about each node */
};

/* A line of the journal: told, stored, kept. Returns its id. */
uint64_t note(struct run *run, enum note_kind kind, int node, char mark, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

#endif
