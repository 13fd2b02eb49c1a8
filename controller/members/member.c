/* member.c - answers questions about one node, and sends messages to it.
 *
 * Every part of the controller uses this module. It therefore only reads state and makes no
 * decisions. */
#include "controller/members/member.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "controller/members/members.h"

bool member_alive(const struct member *m)
{
	return m->peer != 0 && m->state != MEMBER_ABSENT && m->state != MEMBER_DEAD &&
	       m->state != MEMBER_LEFT;
}

bool member_is_replica(const struct member *m)
{
	return m->state == MEMBER_SUMMING || member_computes(m);
}

bool member_takes_part(const struct member *m)
{
	return member_is_replica(m) && member_alive(m);
}

bool member_computes(const struct member *m)
{
	return m->state == MEMBER_LIVE || m->state == MEMBER_SUSPECT;
}

bool member_is_ready(const struct member *m)
{
	return m->state == MEMBER_READY || m->state == MEMBER_RESTORED || member_is_replica(m);
}

bool member_is_restoring(const struct member *m)
{
	return m->state == MEMBER_RESTORING || m->state == MEMBER_RESTORED;
}

enum node_state member_shown(const struct member *m)
{
	static const enum node_state shown[MEMBER_STATES] = {
		[MEMBER_ABSENT] = NODE_ABSENT,     [MEMBER_JOINING] = NODE_JOINING,
		[MEMBER_SYNCING] = NODE_SYNCING,   [MEMBER_READY] = NODE_SYNCING,
		[MEMBER_RESTORING] = NODE_SYNCING, [MEMBER_RESTORED] = NODE_SYNCING,
		[MEMBER_SUMMING] = NODE_SYNCING,   [MEMBER_LIVE] = NODE_LIVE,
		[MEMBER_SUSPECT] = NODE_SUSPECT,   [MEMBER_FAILED] = NODE_FAILED,
		[MEMBER_DEAD] = NODE_DEAD,         [MEMBER_LEFT] = NODE_LEFT,
	};

	return m->move.drain != DRAIN_NOT && member_alive(m) ? NODE_DRAINING : shown[m->state];
}

bool member_has_key(const struct member *m)
{
	static const struct keys_public none;

	return !keys_equal(&m->key, &none);
}

int member_stage(const struct run *run, const struct member *m)
{
	return run->cluster->nodes[m->id].stage;
}

uint32_t member_layers(const struct run *run, const struct member *m)
{
	int stage = member_stage(run, m);

	return stage < 0 || (uint32_t)stage >= run->training.model.n_stages
		       ? 0
		       : model_layer_count(&run->training.model, (uint32_t)stage);
}

double member_work(const struct run *run, const struct member *m)
{
	return cluster_work(run->cluster, member_stage(run, m));
}

bool member_joins(const struct run *run, const struct member *m)
{
	return (m->state == MEMBER_READY || m->state == MEMBER_SUMMING) && !m->is_marked &&
	       !m->weights.differ && m->weights.iterations == run->committed;
}

bool member_holds(const struct run *run, const struct member *m, int stage)
{
	return stage < run->cluster->n_stages && !m->weights.differ && m->weights.stage == stage &&
	       m->weights.iterations == run->committed && m->beat.stage == stage &&
	       m->beat.committed == run->committed;
}

bool members_share_machine(const struct member *a, const struct member *b)
{
	return a == b || (a->hello.machine[0] && strcmp(a->hello.machine, b->hello.machine) == 0);
}

bool members_share_processors(const struct member *a, const struct member *b)
{
	const struct msg_hello *x = &a->hello, *y = &b->hello;

	if (!members_share_machine(a, b) || strcmp(x->card, y->card) != 0)
		return false;
	if (a == b || x->card[0])
		return true;
	/* A container with a quota has processor time of its own. Agents in the same container have
	 * the same quota and the same network. */
	return x->quota == y->quota && (x->quota == 0 || x->network == y->network);
}

uint32_t member_processors(const struct member *m)
{
	return m->hello.card[0] ? 1 : m->hello.cores;
}

/* Agents of one machine share a device if they are on one card, or if they report the same `device`
 * text, which contains the GPU's number. */
double members_memory(const struct members *members, const struct member *m)
{
	int on_machine = 0, on_device = 0;
	double bytes;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *o = &members->list[i];

		if (o != m && (!member_alive(o) || !members_share_machine(m, o)))
			continue;
		on_machine++;
		on_device += m->hello.card[0] ? members_share_processors(m, o)
					      : strcmp(m->hello.device, o->hello.device) == 0;
	}
	/* The memory of a CPU is that of the machine, or less if the agent has a limit of its
	 * own. */
	if (strncmp(m->hello.device, "cpu", 3) == 0 && m->hello.machine_bytes > 0)
		on_device = 1;
	bytes = (double)m->hello.memory_bytes / on_device;
	return m->hello.machine_bytes > 0 ? fmin(bytes, (double)m->hello.machine_bytes / on_machine)
					  : bytes;
}

struct member *member_of_peer(struct members *members, post_peer_id peer)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (members->list[i].peer == peer)
			return &members->list[i];
	return NULL;
}

uint32_t members_live(const struct members *members)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < members->n; i++)
		n += member_computes(&members->list[i]);
	return n;
}

uint32_t stage_replicas(const struct members *members, int stage, const struct member *without)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		n += m != without && member_is_replica(m) && !m->is_marked &&
		     member_stage(members->run, m) == stage;
	}
	return n;
}

bool replicas_everywhere(const struct members *members)
{
	for (int s = 0; s < members->run->cluster->n_stages; s++)
		if (stage_replicas(members, s, NULL) == 0)
			return false;
	return true;
}

/* ---- sending ---- */

int member_send(struct run *run, struct member *m, const struct msg *message)
{
	unsigned char small[2048];
	size_t size = msg_size(message);
	unsigned char *data = size > sizeof(small) ? alloc_resize(NULL, size, 1) : small;
	struct post_part parts[2] = { { data, size }, { message->body, message->body_size } };
	enum post_flags flags = message->type == MSG_FILE_PART ? POST_WEIGHTS : POST_RELIABLE;
	int rc;

	if (msg_encode(message, data, size) < 0) {
		log_line(&run->log, LOG_ERROR, "cannot encode %s", msg_name(message->type));
		rc = -1;
	} else {
		rc = post_send(run->post, m->peer, parts, message->body_size ? 2 : 1, flags,
			       run->now_us);
		if (rc != 0)
			log_line(&run->log, LOG_WARN, "node %u: cannot send %s: %d", m->id,
				 msg_name(message->type), rc);
	}
	if (data != small)
		free(data);
	return rc;
}

void member_ping(struct run *run, const struct member *m)
{
	struct msg ping = { .type = MSG_PING,
			    .u.ping = { run->now_us, m->clock.offset_us,
					m->clock.round_trip_us != 0 } };
	unsigned char data[64];
	long size = msg_encode(&ping, data, sizeof(data));
	struct post_part part = { data, (size_t)size };

	post_send(run->post, m->peer, &part, 1, POST_LOSSY, run->now_us);
}

void send_replicas(struct members *members, const struct msg *m)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (member_is_replica(&members->list[i]))
			member_send(members->run, &members->list[i], m);
}
