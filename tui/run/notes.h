/* notes.h - the journal's entries as the Journal view lists them: those that match the filter,
 * newest first. */
#ifndef TUI_NOTES_H
#define TUI_NOTES_H

#include "tui/run/state.h"

/* Lists the entries that match every word of the filter, newest first. An entry matches a word if
 * its text or kind contains the word, in upper or lower case, or if the word is the name ("n07") of
 * the entry's node. filter "": all entries. `out` has room for STATE_NOTES entries; they are
 * borrowed until the state changes. Returns their number. */
size_t notes_list(const struct state *s, const char *filter, const struct msg_see_note **out);
/* Returns the index of the entry `id` in the list. If id is 0 or not listed, returns 0, the index
 * of the newest entry. */
size_t notes_place(const struct msg_see_note *const *list, size_t n, uint64_t id);
/* Returns the entry `id` of the whole journal; NULL: none. */
const struct msg_see_note *notes_find(const struct state *s, uint64_t id);
/* Returns the name of an entry's kind, such as "COMMAND". */
const char *notes_kind(const struct msg_see_note *n);

#endif
