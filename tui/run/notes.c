/* Filters and finds journal entries. The Journal view, the keys and the clipboard share one
 * list. */
#include "tui/run/notes.h"

#include <string.h>

const char *notes_kind(const struct msg_see_note *n)
{
	static const char *const kinds[] = { "log",     "event",   "COMMAND",
					     "predict", "WARNING", "ALERT" };

	return kinds[n->kind <= NOTE_ALERT ? n->kind : NOTE_LOG];
}

size_t notes_list(const struct state *s, const char *filter, const struct msg_see_note **out)
{
	size_t n = 0;

	for (size_t i = s->history.n_notes; i > 0 && n < STATE_NOTES; i--)
		if (!*filter || strcasestr(s->history.notes[i - 1].text, filter) ||
		    strcasestr(notes_kind(&s->history.notes[i - 1]), filter))
			out[n++] = &s->history.notes[i - 1];
	return n;
}

size_t notes_place(const struct msg_see_note *const *list, size_t n, uint64_t id)
{
	for (size_t i = 0; id && i < n; i++)
		if (list[i]->id == id)
			return i;
	return 0;
}

const struct msg_see_note *notes_find(const struct state *s, uint64_t id)
{
	for (size_t i = 0; id && i < s->history.n_notes; i++)
		if (s->history.notes[i].id == id)
			return &s->history.notes[i];
	return NULL;
}
