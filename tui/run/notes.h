/* notes.h - the journal's entries as the Journal view lists them: those that match the filter,
 * newest first. */
#ifndef TUI_NOTES_H
#define TUI_NOTES_H

#include "tui/run/state.h"

/* Lists the entries that match each word of the filter: their text or kind contains the word, in
 * any case, or they are about its node ("n07"). "": all entries. `out` has room for STATE_NOTES
 * entries, which are borrowed until the state changes. Returns the number of entries. */
size_t notes_list(const struct state *s, const char *filter, const struct msg_see_note **out);
/* Returns the index of an entry in the list; 0, the newest, if id is 0 or is not listed. */
size_t notes_place(const struct msg_see_note *const *list, size_t n, uint64_t id);
/* Returns an entry by its id; NULL: none. */
const struct msg_see_note *notes_find(const struct state *s, uint64_t id);
/* Returns the name of the kind: "COMMAND". */
const char *notes_kind(const struct msg_see_note *n);

#endif
