/* misuse.c - counts messages of other nodes that break the protocol, and reports their senders.
 * The controller removes a node that keeps sending such messages. */
#include "agent/network/misuse.h"

#include <stdio.h>

/* A node is reported after this many unexpected messages in an iteration. */
enum { MISFITS_MOST = 64 };

bool misuse_proven(const struct misuse *u, post_peer_id peer, uint16_t node)
{
	struct post_peer_info info;

	return node < u->peers->run->welcome.n_nodes && u->peers->list[node].known &&
	       post_peer(u->peers->post, peer, &info) == 0 &&
	       keys_equal(&info.key, &u->peers->list[node].key);
}

uint32_t misuse_sender(const struct misuse *u, post_peer_id peer)
{
	uint32_t node = 0;

	while (node < u->peers->run->welcome.n_nodes && !misuse_proven(u, peer, (uint16_t)node))
		node++;
	return node;
}

bool misuse_reported(const struct misuse *u, uint16_t node)
{
	return u->held->standing == STAND_READY &&
	       u->peers->list[node].reported_in == u->held->committed + 1;
}

static void report(struct misuse *u, uint16_t node, const char *what, uint64_t epoch,
		   int64_t now_us)
{
	struct msg m = { .type = MSG_TROUBLE, .u.trouble.epoch = epoch };

	if (misuse_reported(u, node) || u->held->standing != STAND_READY)
		return;
	u->peers->list[node].reported_in = u->held->committed + 1;
	m.u.trouble.refused_node = node;
	snprintf(m.u.trouble.text, sizeof(m.u.trouble.text), "n%02u sent %s", node, what);
	log_line(u->peers->tell->log, LOG_WARN, "%s", m.u.trouble.text);
	tell_controller(u->peers->tell, &m, POST_RELIABLE, now_us);
}

void misuse_report_numbers(struct misuse *u, uint16_t node, const char *what, int64_t now_us)
{
	report(u, node, what, u->progress->epoch, now_us);
}

void misuse_misfit(struct misuse *u, uint16_t from, int64_t now_us)
{
	struct peer *p = &u->peers->list[from];

	if (p->misfits_in != u->held->committed + 1) {
		p->misfits_in = u->held->committed + 1;
		p->misfits = 0;
		tell_log(u->peers->tell, LOG_WARN, "node %u sends unexpected messages: refused",
			 from);
	}
	u->peers->tell->tally.refused++;
	if (++p->misfits >= MISFITS_MOST)
		report(u, from, "too many unsolicited messages", 0, now_us);
}

void misuse_malformed(struct misuse *u, int64_t now_us)
{
	struct post_peer_info info;
	post_peer_id id = 0;
	uint32_t node;

	while ((id = post_next_peer(u->peers->post, id)) != 0) {
		if (post_peer(u->peers->post, id, &info) != 0 || info.malformed_frames == 0)
			continue;
		node = misuse_sender(u, id);
		if (node == u->peers->run->welcome.n_nodes ||
		    u->peers->list[node].malformed == info.malformed_frames)
			continue;
		u->peers->list[node].malformed = info.malformed_frames;
		u->peers->tell->tally.refused++;
		report(u, (uint16_t)node, "bytes that are no message of this run", 0, now_us);
	}
}

void misuse_forget(struct misuse *u)
{
	for (uint32_t i = 0; i < u->peers->run->welcome.n_nodes; i++)
		u->peers->list[i].reported_in = 0;
}
