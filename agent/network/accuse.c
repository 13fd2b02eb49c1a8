#include "agent/network/accuse.h"

#include <stdio.h>

#include "agent/state.h"

enum { MISFITS_MOST = 64 }; /* of one node in an iteration, then it is no accident */

bool accuse_proven(const struct agent *a, post_peer_id peer, uint16_t node)
{
	struct post_peer_info info;

	return node < a->run.n_nodes && a->peers[node].known &&
	       post_peer(a->tensors, peer, &info) == 0 &&
	       keys_equal(&info.key, &a->peers[node].key);
}

uint32_t accuse_sender(const struct agent *a, post_peer_id peer)
{
	uint32_t node = 0;

	while (node < a->run.n_nodes && !accuse_proven(a, peer, (uint16_t)node))
		node++;
	return node;
}

bool accuse_stands(const struct agent *a, uint16_t node)
{
	return a->standing == STAND_READY && a->peers[node].accused_in == a->committed + 1;
}

void accuse_node(struct agent *a, uint16_t node, const char *what, int64_t now_us)
{
	struct msg m = { .type = MSG_TROUBLE };

	if (accuse_stands(a, node) || a->standing != STAND_READY)
		return;
	a->peers[node].accused_in = a->committed + 1;
	m.u.trouble.accused = node;
	snprintf(m.u.trouble.text, sizeof(m.u.trouble.text), "n%02u sent %s", node, what);
	log_line(a->options.log, LOG_WARN, "%s", m.u.trouble.text);
	if (a->accusations.n < ACCUSED_MOST)
		a->accusations.list[a->accusations.n++] = m.u.trouble;
	tell_controller(a, &m, POST_RELIABLE, now_us);
}

void accuse_misfit(struct agent *a, uint16_t from, int64_t now_us)
{
	struct peer *p = &a->peers[from];

	if (p->misfits_in != a->committed + 1) {
		p->misfits_in = a->committed + 1;
		p->misfits = 0;
		log_line(a->options.log, LOG_WARN, "node %u sends what fits nothing: refused", from);
	}
	a->refused++;
	if (++p->misfits >= MISFITS_MOST)
		accuse_node(a, from, "again and again what nobody has asked it for", now_us);
}

void accuse_malformed(struct agent *a, int64_t now_us)
{
	struct post_peer_info info;
	post_peer_id id = 0;
	uint32_t node;

	while ((id = post_next_peer(a->tensors, id)) != 0) {
		if (post_peer(a->tensors, id, &info) != 0 || info.malformed_frames == 0)
			continue;
		node = accuse_sender(a, id);
		if (node == a->run.n_nodes || a->peers[node].malformed == info.malformed_frames)
			continue;
		a->peers[node].malformed = info.malformed_frames;
		a->refused++;
		accuse_node(a, (uint16_t)node, "what is no message, or longer than any of this run", now_us);
	}
}

void accuse_recall(struct agent *a, int64_t now_us)
{
	for (uint32_t i = 0; i < a->accusations.n; i++) {
		struct msg m = { .type = MSG_TROUBLE, .u.trouble = a->accusations.list[i] };

		tell_controller(a, &m, POST_RELIABLE, now_us);
	}
}

void accuse_forget(struct agent *a)
{
	a->accusations.n = 0;
}
