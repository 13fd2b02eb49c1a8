/* misuse.c - counts messages of other nodes that break the protocol, and reports their senders.
 * The controller removes a node that keeps sending such messages. */
#include "agent/network/misuse.h"

#include <stdio.h>

#include "agent/state.h"

/* Messages of one node in an iteration that fit nothing, before it is reported. */
enum { MISFITS_MOST = 64 };

bool misuse_proven(const struct agent *a, post_peer_id peer, uint16_t node)
{
	struct post_peer_info info;

	return node < a->run.welcome.n_nodes && a->peers[node].known &&
	       post_peer(a->tensors, peer, &info) == 0 &&
	       keys_equal(&info.key, &a->peers[node].key);
}

uint32_t misuse_sender(const struct agent *a, post_peer_id peer)
{
	uint32_t node = 0;

	while (node < a->run.welcome.n_nodes && !misuse_proven(a, peer, (uint16_t)node))
		node++;
	return node;
}

bool misuse_reported(const struct agent *a, uint16_t node)
{
	return a->held.standing == STAND_READY &&
	       a->peers[node].reported_in == a->held.committed + 1;
}

static void report(struct agent *a, uint16_t node, const char *what, uint64_t epoch,
		   int64_t now_us)
{
	struct msg m = { .type = MSG_TROUBLE, .u.trouble.epoch = epoch };

	if (misuse_reported(a, node) || a->held.standing != STAND_READY)
		return;
	a->peers[node].reported_in = a->held.committed + 1;
	m.u.trouble.refused_node = node;
	snprintf(m.u.trouble.text, sizeof(m.u.trouble.text), "n%02u sent %s", node, what);
	log_line(a->tell.log, LOG_WARN, "%s", m.u.trouble.text);
	tell_controller(&a->tell, &m, POST_RELIABLE, now_us);
}

void misuse_report_numbers(struct agent *a, uint16_t node, const char *what, int64_t now_us)
{
	report(a, node, what, a->progress.epoch, now_us);
}

void misuse_misfit(struct agent *a, uint16_t from, int64_t now_us)
{
	struct peer *p = &a->peers[from];

	if (p->misfits_in != a->held.committed + 1) {
		p->misfits_in = a->held.committed + 1;
		p->misfits = 0;
		tell_log(&a->tell, LOG_WARN, "node %u sends unexpected messages: refused", from);
	}
	a->tell.tally.refused++;
	if (++p->misfits >= MISFITS_MOST)
		report(a, from, "too many unsolicited messages", 0, now_us);
}

void misuse_malformed(struct agent *a, int64_t now_us)
{
	struct post_peer_info info;
	post_peer_id id = 0;
	uint32_t node;

	while ((id = post_next_peer(a->tensors, id)) != 0) {
		if (post_peer(a->tensors, id, &info) != 0 || info.malformed_frames == 0)
			continue;
		node = misuse_sender(a, id);
		if (node == a->run.welcome.n_nodes ||
		    a->peers[node].malformed == info.malformed_frames)
			continue;
		a->peers[node].malformed = info.malformed_frames;
		a->tell.tally.refused++;
		report(a, (uint16_t)node, "bytes that are no message of this run", 0, now_us);
	}
}

void misuse_forget(struct agent *a)
{
	for (uint32_t i = 0; i < a->run.welcome.n_nodes; i++)
		a->peers[i].reported_in = 0;
}
