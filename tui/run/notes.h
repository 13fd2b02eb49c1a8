/* notes.h - the journal's entries as the Journal view lists them: newest first, those that
 * match what is searched for. */
#ifndef TUI_NOTES_H
#define TUI_NOTES_H

#include "tui/run/state.h"

/* filter: "" all; else an entry is listed when its text or its kind holds it, in any case.
 * out (STATE_NOTES): borrowed until the state changes. Returns how many. */
size_t notes_list(const struct state *s, const char *filter, const struct msg_see_note **out);
/* The place of the entry in the list; 0, the newest's, when id is 0 or not listed. */
size_t notes_place(const struct msg_see_note *const *list, size_t n, uint64_t id);
/* NULL when there is none. */
const struct msg_see_note *notes_find(const struct state *s, uint64_t id);
const char *notes_kind(const struct msg_see_note *n); /* "COMMAND" */

#endif
