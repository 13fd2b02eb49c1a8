/* member.c - what is known of a node at the moment, as questions, and what is sent to it.
 *
 * The lowest of what the controller's parts share: nothing here decides anything.
 */
#include "controller/members/member.h"

#include <stdlib.h>
#include <string.h>

#include "controller/controller.h"

bool member_alive(const struct member *m)
{
	return m->peer != 0 && m->state != NODE_ABSENT && m->state != NODE_DEAD;
}

bool member_has_key(const struct member *m)
{
	static const struct keys_public none;

	return !keys_equal(&m->key, &none);
}

int member_stage(const struct controller *c, const struct member *m)
{
	return c->cluster->nodes[m->id].stage;
}

bool member_joins(const struct controller *c, const struct member *m)
{
	return m->state == NODE_SYNCING && m->ready && !m->marked && !m->differs && m->holds == c->committed;
}

bool member_holds(const struct controller *c, const struct member *m, int stage)
{
	return stage < c->cluster->n_stages && !m->differs && m->held_stage == stage && m->holds == c->committed &&
	       m->beat.stage == stage && m->beat.committed == c->committed;
}

bool members_share_machine(const struct member *a, const struct member *b)
{
	return a == b || (a->hello.machine[0] && strcmp(a->hello.machine, b->hello.machine) == 0);
}

struct member *member_of_peer(struct controller *c, post_peer_id peer)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		if (c->members[i].peer == peer)
			return &c->members[i];
	return NULL;
}

uint32_t members_live(const struct controller *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++)
		n += c->members[i].state == NODE_LIVE || c->members[i].state == NODE_SUSPECT;
	return n;
}

uint32_t stage_replicas(const struct controller *c, int stage, const struct member *without)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		n += m != without && m->replica && !m->marked && member_stage(c, m) == stage;
	}
	return n;
}

bool replicas_everywhere(const struct controller *c)
{
	for (int s = 0; s < c->cluster->n_stages; s++)
		if (stage_replicas(c, s, NULL) == 0)
			return false;
	return true;
}

/* ---- sending ---- */

int member_send(struct controller *c, struct member *m, const struct msg *message)
{
	unsigned char small[2048];
	size_t size = msg_size(message);
	unsigned char *data = size > sizeof(small) ? malloc(size) : small;
	struct post_part part = { data, size };
	int rc;

	if (!data || msg_encode(message, data, size) < 0) {
		log_line(&c->log, LOG_ERROR, "cannot encode %s", msg_name(message->type));
		rc = -1;
	} else {
		rc = post_send(c->post, m->peer, &part, 1, POST_RELIABLE, c->now_us);
		if (rc != 0)
			log_line(&c->log, LOG_WARN, "node %u: cannot send %s: %d", m->id,
				 msg_name(message->type), rc);
	}
	if (data != small)
		free(data);
	return rc;
}

void send_replicas(struct controller *c, const struct msg *m)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		if (c->members[i].replica)
			member_send(c, &c->members[i], m);
}
