/* Filters and finds journal entries. The Journal view, the keys and the clipboard use the same
 * list. */
#include "tui/run/notes.h"

#include <stdio.h>
#include <string.h>

#include "tui/run/roster.h"

const char *notes_kind(const struct msg_see_note *n)
{
	static const char *const kinds[] = { "log",     "event", "COMMAND", "predict",
					     "WARNING", "ALERT", "agent" };

	return kinds[n->kind <= NOTE_LAST ? n->kind : NOTE_LOG];
}

/* Returns true if the entry's text or kind contains the word, or if the word is the name ("n07") of
 * the entry's node. */
static bool contains_word(const struct msg_see_note *n, const char *word)
{
	return strcasestr(n->text, word) || strcasestr(notes_kind(n), word) ||
	       (n->node >= 0 && roster_names(word, (uint16_t)n->node));
}

static bool matches(const struct msg_see_note *n, const char *filter)
{
	char words[64], *save, *word;

	snprintf(words, sizeof(words), "%s", filter);
	for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save))
		if (!contains_word(n, word))
			return false;
	return true;
}

size_t notes_list(const struct state *s, const char *filter, const struct msg_see_note **out)
{
	size_t n = 0;

	for (size_t i = s->history.n_notes; i > 0 && n < STATE_NOTES; i--)
		if (matches(&s->history.notes[i - 1], filter))
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
