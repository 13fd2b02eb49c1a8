/* live.c - reads one snapshot of a running controller: nodes, links and the journal. */
#include "doctor/run/live.h"

#include <string.h>

#include "wire/invite/snapshot.h"

bool live_suits(const char *text)
{
	return snapshot_suits(text);
}

static void take_node(struct picture *p, const struct msg_see_node *m)
{
	struct picture_node *n;

	if (m->node >= p->n)
		return;
	n = &p->nodes[m->node];
	memcpy(n->name, m->name, sizeof(n->name));
	memcpy(n->place, m->location, sizeof(n->place));
	memcpy(n->host, m->host, sizeof(n->host));
	memcpy(n->device, m->device, sizeof(n->device));
	memcpy(n->why, m->why, sizeof(n->why));
	n->state = m->state;
	n->has_state = true;
}

static void take_links(struct picture *p, const struct msg_see_links *m)
{
	for (uint32_t i = 0; i < m->n_links; i++) {
		const struct msg_link *l = &m->links[i];

		if (l->from >= p->n || l->to >= p->n || l->from == l->to)
			continue;
		p->links[l->from * p->n + l->to] =
			(struct picture_link){ l->latency_s < 0   ? LINK_BROKEN
					       : l->latency_s > 0 ? LINK_WORKS
								  : LINK_UNKNOWN,
					       (double)l->latency_s,
					       (double)l->bandwidth_bytes_per_s };
	}
}

static void take_note(struct picture *p, const struct msg_see_note *m)
{
	struct picture_note note = { m->node, m->kind == NOTE_ALERT, m->iteration, "" };

	if (m->kind != NOTE_WARNING && m->kind != NOTE_ALERT && m->kind != NOTE_AGENT)
		return;
	memcpy(note.text, m->text, sizeof(note.text));
	picture_add_note(p, &note);
}

static void take_message(void *context, struct msg *m)
{
	struct picture *p = context;

	switch (m->type) {
	/* A snapshot begins. It is the first snapshot, or another snapshot after a lost
	 * connection. */
	case MSG_SEE_RUN:
		p->notes.n = 0;
		picture_size(p, m->u.see_run.n_nodes);
		p->is_emulated = m->u.see_run.emulated;
		break;
	case MSG_SEE_NODE:
		take_node(p, &m->u.see_node);
		break;
	case MSG_SEE_LINKS:
		take_links(p, &m->u.see_links);
		break;
	case MSG_SEE_NOTE:
		take_note(p, &m->u.see_note);
		break;
	default:
		break;
	}
}

int live_read(struct picture *out, char *value, struct error *err)
{
	const struct log log = { .to = stderr, .least = LOG_ERROR, .who = "doctor" };
	struct picture p = { .is_running = true };
	int rc = snapshot_read(&(struct snapshot_options){ .token = value,
							   .who = log.who,
							   .log = &log,
							   .take = take_message,
							   .context = &p },
			       err);

	if (rc == 0)
		*out = p;
	else
		picture_free(&p);
	return rc;
}
