/* journal.c - writes the journal of the run.
 *
 * The journal tells people what happened. Each line goes to the consoles, to the store and to the
 * log. The controller also keeps the newest lines for consoles that attach later. Lines about one
 * node are limited, so that a failing or hostile node cannot fill the disk and the memory. */
#include "controller/run/journal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "controller/run/run.h"
#include "controller/run/stream.h"

enum {
	LINES = 400, /* most journal lines about one node in a burst */
	ALERTS = 50  /* number of alerts about the node that a burst may have in addition */
};
/* Lines about one node that are allowed in each second, over a longer time */
static const double lines_per_s = 0.5;

/* Returns true if the node's limit allows another line. The first line after a gap reports how many
 * lines were dropped. */
static bool has_line(struct run *run, enum note_kind kind, int node)
{
	struct rate_limit *b = node >= 0 && node < MSG_NODES ? &run->journal.lines[node] : NULL;
	uint32_t n_dropped;

	if (!b || kind == NOTE_COMMAND)
		return true;
	if (!rate_limit_take(b, 1, kind == NOTE_ALERT ? LINES + ALERTS : LINES, lines_per_s,
			     run->now_us)) {
		b->n_dropped++;
		return false;
	}
	n_dropped = b->n_dropped;
	b->n_dropped = 0;
	if (n_dropped > 0)
		note(run, NOTE_WARNING, node, 0, "n%02d: %u more lines were dropped", node,
		     n_dropped);
	return true;
}

/* Returns the length of the UTF-8 character at text; 0: the text begins with a control character,
 * or is not UTF-8. */
static size_t character_length(const unsigned char *text)
{
	static const uint32_t least[] = { 0x20, 0xa0, 0x800, 0x10000 };
	size_t more = text[0] >= 0xf0 ? 3 : text[0] >= 0xe0 ? 2 : text[0] >= 0xc0 ? 1 : 0;
	uint32_t value = more ? text[0] & (0x3fu >> more) : text[0];

	if (more ? text[0] >= 0xf8 : text[0] >= 0x7f)
		return 0;
	for (size_t i = 1; i <= more; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (text[i] & 0x3f);
	}
	return value < least[more] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)
		       ? 0
		       : more + 1;
}

void journal_make_plain(char *text)
{
	while (*text) {
		size_t length = character_length((const unsigned char *)text);

		if (length == 0)
			*text = '?';
		text += length ? length : 1;
	}
}

/* If the text begins with a node, such as "n02", returns the node's number and sets *length to
 * the length of this name. Otherwise returns -1. */
static int node_at(const struct cluster *c, const char *text, size_t *length)
{
	char *end;
	unsigned long id;

	if (!c || text[0] != 'n' || !isdigit((unsigned char)text[1]) ||
	    !isdigit((unsigned char)text[2]))
		return -1;
	id = strtoul(text + 1, &end, 10);
	*length = (size_t)(end - text);
	return isalnum((unsigned char)*end) || id >= (unsigned long)c->n_nodes ? -1 : (int)id;
}

/* Adds the name and the location of a node after its first mention: "n02 (gpu-3, eu-west)". The
 * nodes of an embedded cluster have no names of their own. */
static void name_nodes(const struct run *run, const char *text, char *out, size_t room)
{
	const struct cluster *c = run->options.mode.embedded ? NULL : run->cluster;
	bool named[MSG_NODES] = { false };
	size_t at = 0;

	for (const char *from = text; *from && at + 1 < room;) {
		size_t length = 1;
		bool begins = from == text || !isalnum((unsigned char)from[-1]);
		int id = begins ? node_at(c, from, &length) : -1;
		const struct cluster_node *n = id >= 0 && !named[id] ? &c->nodes[id] : NULL;

		at += (size_t)snprintf(out + at, room - at, "%.*s", (int)length, from);
		if (n && n->name && at < room)
			at += (size_t)snprintf(out + at, room - at, " (%s%s%s)", n->name,
					       n->location[0] ? ", " : "", n->location);
		if (id >= 0)
			named[id] = true;
		from += length;
	}
	out[at < room ? at : room - 1] = '\0';
}

uint64_t note(struct run *run, enum note_kind kind, int node, char mark, const char *format, ...)
{
	struct msg m = { .type = MSG_SEE_NOTE };
	struct msg_see_note *n = &m.u.see_note;
	struct journal *kept = &run->journal;
	struct store_note sn;
	struct error err = { "" };
	char text[sizeof(n->text)];
	va_list ap;

	if (!has_line(run, kind, node))
		return run->journal.last;
	*n = (struct msg_see_note){ .id = ++run->journal.last,
				    .at_us = run->now_us,
				    .wall_us = clock_wall_us(),
				    .iteration = run->committed,
				    .kind = (uint8_t)kind,
				    .mark = mark,
				    .node = node,
				    /* The number of the operator's act, with which the operator can
				     * undo this act. */
				    .command = kind == NOTE_COMMAND ? run->journal.act : 0 };
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	name_nodes(run, text, n->text, sizeof(n->text));
	journal_make_plain(n->text); /* the line may contain text from an agent */
	log_line(&run->log,
		 kind == NOTE_ALERT                           ? LOG_ERROR
		 : kind == NOTE_WARNING || kind == NOTE_AGENT ? LOG_WARN
							      : LOG_INFO,
		 "%s", n->text);
	sn = (struct store_note){ n->id, n->iteration, n->wall_us, note_name(kind),
				  mark,  node,         n->text };
	if (run->record.store && store_note(run->record.store, &sn, &err) != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
	kept->n_notes = (uint32_t)array_keep_newest(kept->notes, kept->n_notes, KEPT_NOTES,
						    sizeof(*kept->notes));
	array_reserve(&kept->notes, &kept->room_notes, kept->n_notes + 1, sizeof(*kept->notes));
	kept->notes[kept->n_notes++] = *n;
	kept->counts[kind]++;
	if (kind == NOTE_ALERT) {
		kept->newest_alert = *n;
		if (kept->on_alert)
			kept->on_alert(kept->listener, n, run->now_us);
	}
	consoles_tell(run, &m);
	return n->id;
}
