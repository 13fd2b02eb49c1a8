/* members.c - who is there. A member is a node of the cluster, whatever process stands for it.
 *
 *     ABSENT -> JOINING (said hello) -> SYNCING (told its stage) -> LIVE
 *     LIVE -> SUSPECT (quiet) -> LIVE, or DEAD;  LIVE -> FAILED (marked out by the operator)
 *     DEAD -> SYNCING when it is heard again, or JOINING when a new process says hello
 *
 * A dead member's session is kept: if its process only slept, its heartbeats come back by it.
 */
#include "controller/controller.h"
#include "controller/list.h"
#include "controller/silence.h"

#include <stdlib.h>
#include <string.h>

enum {
	GATHER_SILENCE_US = 5000000,
	PING_EVERY_US = 500000,
	OFFSET_AGE_US = 20000000,
	ASSIGN_PATIENCE_US = 60000000,
	JOIN_AGAIN_US = 1000000
};

bool member_alive(const struct member *m)
{
	return m->peer != 0 && m->state != NODE_ABSENT && m->state != NODE_DEAD;
}

bool member_joins(const struct controller *c, const struct member *m)
{
	return m->state == NODE_SYNCING && m->ready && !m->marked && m->holds == c->committed;
}

bool member_holds(const struct controller *c, const struct member *m, int stage)
{
	return stage < c->cluster->n_stages && m->held_stage == stage && m->holds == c->committed &&
	       m->beat.stage == stage && m->beat.committed == c->committed;
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

int member_stage(const struct controller *c, const struct member *m)
{
	return c->cluster->nodes[m->id].stage;
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

void members_set(struct controller *c, struct member *m, enum node_state state, const char *why)
{
	bool changed = m->state != state;

	snprintf(m->why, sizeof(m->why), "%s", why);
	m->changed = true;
	if (!changed)
		return;
	m->state = state;
	if (state == NODE_LIVE)
		m->n_refused = 0;
	m->since_us = c->now_us;
	m->told_us = 0;
	if (state != NODE_SUSPECT)
		record_node(c, m);
}

/* ---- joining ---- */

/* The place of a node that is gone goes to another key, as when an agent's key was changed: nobody can
 * tell whether the old process sleeps, and if so it finds its place taken. */
static bool vacant(const struct member *m)
{
	return m->peer == 0 || m->state == NODE_DEAD;
}

static struct member *place(struct controller *c, const struct keys_public *key, int32_t wish)
{
	struct member *best = NULL;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m->peer != 0 && keys_equal(&m->key, key))
			return m;
		if (vacant(m) && (!best || (best->peer != 0 && m->peer == 0)))
			best = m;
	}
	if (wish < 0)
		return best;
	if ((uint32_t)wish >= c->n_members || !vacant(&c->members[wish]))
		return NULL;
	return &c->members[wish];
}

static void refuse(struct controller *c, post_peer_id peer, const char *reason)
{
	struct msg m = { .type = MSG_REFUSED };
	struct member nobody = { .peer = peer };

	snprintf(m.u.refused.reason, sizeof(m.u.refused.reason), "%s", reason);
	member_send(c, &nobody, &m);
	note(c, NOTE_WARNING, -1, 0, "an agent was refused: %s", reason);
}

static size_t join_corpus(const struct controller *c, char *out, size_t room)
{
	size_t at = 0;

	for (uint32_t i = 0; i < c->options.n_corpus; i++) {
		size_t n = strlen(c->options.corpus[i]) + 1;

		if (at + n > room)
			break;
		memcpy(out + at, c->options.corpus[i], n);
		at += n;
	}
	return at;
}

/* What it emulates is the cluster as given, whatever is believed of it by now. */
static void welcome(struct controller *c, struct member *m)
{
	char corpus[1 << 16];
	float delay[MSG_NODES], sync[MSG_NODES];
	const struct cluster *given = c->planned;
	const struct cluster_node *node = &given->nodes[m->id];
	int n = given->n_nodes;
	struct msg w = { .type = MSG_WELCOME };

	for (int to = 0; to < n; to++) {
		delay[to] = (float)given->delay_s[m->id * n + to];
		sync[to] = given->sync_pair_s ? (float)given->sync_pair_s[m->id * n + to] : 0;
		if (sync[to] < 0 || to == m->id)
			sync[to] = 0;
		if (to == m->id)
			delay[to] = 0;
	}
	w.u.welcome = (struct msg_welcome){
		.node = m->id, .n_nodes = (uint32_t)n, .run = c->run, .seed = c->options.seed,
		.batch = c->recipe.batch, .sequence = c->recipe.sequence, .n_shards = c->n_shards,
		.threads = c->options.threads, .slots = (uint32_t)node->memory,
		.time_scale = c->options.time_scale, .weight_gradient_s = cluster_weights_s(node),
		.forward_s = node->forward_s,
		.backward_s = node->backward_s, .loss_s = node->loss_s,
		.dispatch_overhead_s = given->dispatch_overhead_s,
		.serialise = c->options.serialise, .n_delays = (uint32_t)n, .delay_s = delay,
		.n_syncs = (uint32_t)n, .sync_s = sync, .corpus = corpus,
	};
	w.u.welcome.n_corpus = (uint32_t)join_corpus(c, corpus, sizeof(corpus));
	snprintf(w.u.welcome.model, sizeof(w.u.welcome.model), "%s", c->model_json);
	member_send(c, m, &w);
	m->welcomed = true;
}

void members_welcome(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		if (member_alive(&c->members[i]) && !c->members[i].welcomed)
			welcome(c, &c->members[i]);
}

static int poorest_stage(const struct controller *c)
{
	int best = 0;

	for (int s = 1; s < c->cluster->n_stages; s++)
		if (stage_replicas(c, s, NULL) < stage_replicas(c, best, NULL))
			best = s;
	return best;
}

void members_hello(struct controller *c, post_peer_id peer, const struct msg_hello *hello)
{
	struct post_peer_info info;
	struct member *m;

	if (post_peer(c->post, peer, &info) != 0 || info.role != KEYS_AGENT)
		return;
	if (hello->protocol != MSG_VERSION) {
		refuse(c, peer, "it speaks another version of the protocol");
		return;
	}
	m = place(c, &info.key, hello->node);
	if (!m) {
		refuse(c, peer, hello->node >= 0 ? "that node is taken, or not in the cluster" :
						   "every node of the cluster has its agent");
		return;
	}
	if (m->replica && m->hello.incarnation != hello->incarnation) {
		c->n_hung_up -= c->n_hung_up > 0; /* it was that one's */
		members_gone(c, m, "its process was replaced");
	}
	if (m->peer != 0 && m->peer != peer)
		post_forget(c->post, m->peer);
	m->peer = peer;
	m->key = info.key;
	m->hello = *hello;
	m->heard_us = c->now_us;
	m->gap_us = 0;
	m->n_stuck = 0;
	m->round_trip_us = 0;
	m->plan_epoch = 0;
	m->ready = false;
	copies_forget(m);
	m->refused_copy_us = 0;
	m->n_refused = 0;
	m->restoring = false;
	m->failed_restore = 0;
	restore_look_again(c);
	members_set(c, m, NODE_JOINING, "");
	m->welcomed = false;
	m->held_stage = m->beat.stage = MSG_NO_STAGE;
	m->disowned = false;
	m->arrival = ++c->arrivals;
	m->told_arrival = 0;
	if (c->phase == PHASE_GATHERING && !c->resumed && c->assignments == 0)
		return; /* the first plan says where, and how fast time goes */
	welcome(c, m);
	if (c->phase == PHASE_GATHERING && c->resumed) {
		resume_member(c, m);
		return;
	}
	if (m->marked) {
		members_set(c, m, NODE_FAILED, "marked failed");
		return;
	}
	members_assign(c, m, member_stage(c, m) >= 0 ? member_stage(c, m) : poorest_stage(c),
		       c->committed > 0);
}

/* A successor must know it too. */
void members_mark(struct controller *c, struct member *m, bool out)
{
	m->marked = out;
	m->overdue_in = out ? m->overdue_in : 0;
	resume_save(c);
}

void members_assign(struct controller *c, struct member *m, int stage, bool fetch)
{
	struct msg a = { .type = MSG_ASSIGN };

	m->replica = false;
	m->ready = false;
	m->assigned_us = c->now_us;
	if (fetch)
		stage = place_for(c, m, stage);
	if (stage < 0) {
		copies_release(c, m);
		members_set(c, m, NODE_JOINING, "its links to its stage are too slow");
		return;
	}
	c->cluster->nodes[m->id].stage = stage;
	if (fetch && !copy_usable(c, m, stage)) {
		if (copies_fetch(c, m, stage))
			members_set(c, m, NODE_SYNCING, "fetching weights");
		else
			members_set(c, m, NODE_JOINING,
				    "its stage has no living copy of the weights");
		return;
	}
	m->held_stage = (uint8_t)stage;
	m->holds = c->committed;
	m->assignment = ++c->assignments;
	a.u.assign = (struct msg_assign){ m->assignment, (uint8_t)stage, fetch };
	members_set(c, m, NODE_SYNCING, fetch ? "loading weights" : "building its stage");
	member_send(c, m, &a);
}

void members_ready(struct controller *c, struct member *m, const struct msg_ready *r)
{
	struct error err;

	if (r->assignment != m->assignment || m->state == NODE_DEAD)
		return;
	if (r->stage == 0 && c->corpus_hash == 0) {
		c->corpus_hash = r->corpus_hash;
		if (store_corpus(c->store, c->corpus_hash, &err) != 0)
			log_line(&c->log, LOG_ERROR, "%s", err.text);
	}
	if (r->stage == 0 && r->corpus_hash != c->corpus_hash) {
		note(c, NOTE_ALERT, m->id, 0, "n%02u reads another corpus than the run: kept out", m->id);
		members_mark(c, m, true);
		members_set(c, m, NODE_FAILED, "its corpus differs");
		return;
	}
	c->steps += m->restoring && !m->ready;
	m->ready = true;
	m->holds = r->iteration;
	m->hash = r->hash;
	m->hash_agrees = true;
	m->measured_forward_s = r->forward_s;
	m->measured_backward_s = r->backward_s;
	m->measured_loss_s = r->loss_s;
	m->changed = true;
}

/* ---- hearing ---- */

static void learn_clock(struct controller *c, struct member *m, const struct msg_heartbeat *h)
{
	int64_t round_trip, offset;

	if (!is_clock(h->now_us) || !is_clock(h->echo_us) || !is_clock(h->echo_age_us))
		return;
	if (h->echo_us == 0) {
		if (m->round_trip_us == 0)
			m->clock_offset_us = c->now_us - h->now_us;
		return;
	}
	round_trip = c->now_us - h->echo_us - h->echo_age_us;
	if (round_trip < 0)
		return;
	offset = c->now_us - h->now_us - round_trip / 2;
	if (m->round_trip_us != 0 && round_trip > m->round_trip_us &&
	    c->now_us - m->offset_at_us < OFFSET_AGE_US)
		return;
	m->round_trip_us = round_trip ? round_trip : 1;
	m->clock_offset_us = offset;
	m->offset_at_us = c->now_us;
}

/* What it kept may be all there is of a stage: whoever takes that one over has it from there (recover.c). */
static void heard_again(struct controller *c, struct member *m)
{
	note(c, NOTE_EVENT, m->id, 0, "n%02u is heard again", m->id);
	members_set(c, m, NODE_JOINING, "keeps a copy of a lost stage");
	if (copy_needed(c, m))
		return;
	copies_forget(m);
	members_assign(c, m, member_stage(c, m), c->committed > 0);
}

void members_heartbeat(struct controller *c, struct member *m, const struct msg_heartbeat *h)
{
	if (c->phase != PHASE_GATHERING)
		m->gap_us = silence_learn(m->gap_us, c->now_us - m->heard_us, c->options.silence_us);
	m->heard_us = c->now_us;
	if (m->beat.slots != h->slots || m->beat.running != h->running || m->beat.queued != h->queued)
		m->changed = true;
	m->beat = *h;
	m->beat.stuck = NULL; /* of the message */
	cuts_hear(c, m, h);
	doubt_beat(c, m);
	learn_clock(c, m, h);
	if (m->state == NODE_SUSPECT) {
		members_set(c, m, NODE_LIVE, "");
	} else if (m->state == NODE_DEAD && m->marked) {
		members_set(c, m, NODE_FAILED, "marked failed");
	} else if (m->state == NODE_DEAD && c->phase == PHASE_GATHERING && member_stage(c, m) < 0) {
		members_set(c, m, NODE_JOINING, "");
	} else if (m->state == NODE_DEAD && !iteration_resumes(c, m) && cuts_healed(c, m)) {
		heard_again(c, m);
	}
	/* Agents tell their weights with every beat: a replica that differs is an alarm. */
	if (m->replica && h->committed == c->committed && m->holds == c->committed &&
	    h->hash != m->hash && h->hash != 0 && m->hash_agrees) {
		m->hash_agrees = false;
		note(c, NOTE_ALERT, m->id, 0, "n%02u: its weights changed outside a commit", m->id);
	}
}

void members_gone(struct controller *c, struct member *m, const char *why)
{
	bool was_replica = m->replica;

	m->doomed = m->cut = false;
	members_set(c, m, NODE_DEAD, why);
	m->replica = false;
	m->ready = false;
	m->slots = 0;
	m->copies = m->homing = false;
	m->restoring = false;
	note(c, NOTE_ALERT, m->id, 'F', "n%02u S%d %s", m->id, member_stage(c, m), why);
	if (was_replica)
		iteration_lost(c, m);
	else if (c->phase == PHASE_REDUCING)
		commit_when_reduced(c); /* it may have waited for its copy */
}

void members_trouble(struct controller *c, struct member *m, const struct msg_trouble *t)
{
	note(c, t->fatal ? NOTE_ALERT : NOTE_WARNING, m->id, 0, "n%02u: %.160s", m->id, t->text);
	if (t->accused >= 0 && (uint32_t)t->accused < c->n_members && m->replica)
		doubt_accused(c, &c->members[t->accused], m);
	if (c->phase == PHASE_GATHERING && !c->resumed && t->fatal && strncmp(t->text, "leaving:", 8) != 0)
		controller_finish(c, 1, t->text);
	else if (t->fatal && member_alive(m))
		members_gone(c, m, "gave up");
}

static struct seen_link *seen(struct member *m, uint16_t to)
{
	for (uint32_t i = 0; i < m->n_links; i++)
		if (m->links[i].link.to == to)
			return &m->links[i];
	if (!list_grow(&m->links, m->n_links, &m->room_links, sizeof(*m->links)))
		return NULL;
	m->links[m->n_links] = (struct seen_link){ .strikes = 0 };
	return &m->links[m->n_links++];
}

void members_links(struct controller *c, struct member *m, const struct msg_links *l)
{
	drift_links(c, m, l);
	for (uint32_t i = 0; i < l->n_links; i++) {
		struct seen_link *s = l->links[i].to < c->n_members ? seen(m, l->links[i].to) : NULL;

		if (!s)
			return;
		s->link = l->links[i];
		s->link.from = m->id;
		drift_link(c, s);
		c->links_changed = true;
	}
}

static int64_t usual_gap_us(const struct controller *c)
{
	int64_t gaps[MSG_NODES];
	size_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		if (member_alive(&c->members[i]))
			gaps[n++] = c->members[i].gap_us;
	}
	return silence_usual(gaps, n);
}

/* The system tells that a connection has ended, not whose it was. */
static void hear_hang_ups(struct controller *c)
{
	struct post_counters counters;

	post_count(c->post, &counters);
	if (counters.link.broken != c->hung_up) {
		c->hung_up_us = c->now_us;
		c->n_hung_up += (uint32_t)(counters.link.broken - c->hung_up);
	} else if (c->now_us - c->hung_up_us > c->options.silence_us) {
		c->n_hung_up = 0; /* a console's, or it is back */
	}
	c->hung_up = counters.link.broken;
}

static int64_t allowed_us(const struct controller *c, const struct member *m, int64_t usual_us)
{
	/* Nothing waits for anyone while agents gather, and starting up is heavy work. */
	if (c->phase == PHASE_GATHERING)
		return GATHER_SILENCE_US;
	if (c->n_hung_up > 0 && m->heard_us < c->hung_up_us)
		return silence_hung_up(m->gap_us, usual_us, c->options.silence_us);
	return silence_allowed(m->gap_us, usual_us, c->options.silence_us);
}

static void check_silence(struct controller *c, struct member *m, int64_t usual_us)
{
	int64_t quiet = c->now_us - m->heard_us, most = allowed_us(c, m, usual_us);

	if (!member_alive(m) || !m->welcomed)
		return;
	if (quiet > most) {
		bool hung_up = c->n_hung_up > 0 && m->heard_us < c->hung_up_us;
		char why[96];

		c->n_hung_up -= hung_up;
		snprintf(why, sizeof(why), hung_up ? "hung up, heartbeat lost for %.2f s" :
						     "heartbeat lost for %.2f s",
			 (double)quiet * 1e-6);
		members_gone(c, m, why);
	} else if (quiet > most * 6 / 10 && m->state == NODE_LIVE) {
		members_set(c, m, NODE_SUSPECT, "quiet");
	}
}

static bool source_lost(const struct controller *c, const struct member *m)
{
	const struct member *source = &c->members[m->source];

	return m->keeps >= 0 && !m->kept &&
	       !(source->replica && member_stage(c, source) == m->keeps) &&
	       !copy_whole(source, m->keeps) && !copy_left_out(c, source, m->keeps);
}

/* Each time that it could not fetch its weights the next try comes later. */
static int64_t again_us(const struct member *m)
{
	int64_t last = m->assigned_us > m->refused_copy_us ? m->assigned_us : m->refused_copy_us;

	return last + ((int64_t)JOIN_AGAIN_US << (m->n_refused < 6 ? m->n_refused : 6));
}

/* A joiner whose weights are of an older iteration, or whose source died, starts over. */
static void check_joiner(struct controller *c, struct member *m)
{
	bool late = c->now_us - m->assigned_us > ASSIGN_PATIENCE_US;

	if (c->phase == PHASE_GATHERING || m->marked || !member_alive(m) || m->restoring ||
	    (c->restore.active && !c->restore.average))
		return;
	if (m->replica) {
		if (source_lost(c, m))
			copies_release(c, m);
		return;
	}
	if (copy_needed(c, m) && m->keeps != member_stage(c, m))
		return;
	/* Its copy follows; the word of the last commit is on its way. */
	if (m->kept && m->keeps == member_stage(c, m) && m->kept_holds < c->committed &&
	    m->copy_told == c->committed && !late)
		return;
	if (m->state == NODE_JOINING && c->now_us > again_us(m))
		members_assign(c, m, member_stage(c, m), c->committed > 0);
	else if (m->state == NODE_SYNCING &&
		 ((m->ready && m->holds < c->committed) || source_lost(c, m) ||
		  (!m->ready && late && (m->kept || m->keeps < 0))))
		members_assign(c, m, member_stage(c, m), c->committed > 0);
}

/* What this one has not been told yet of the others' keys and addresses. */
static void send_peers_to(struct controller *c, struct member *to)
{
	struct msg_peer peers[MSG_NODES];
	struct msg p = { .type = MSG_PEERS };
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if (m->arrival <= to->told_arrival || (m->peer == 0 && !m->disowned))
			continue;
		peers[n] = (struct msg_peer){ .node = m->id };
		if (!m->disowned) {
			memcpy(peers[n].key, m->key.bytes, sizeof(peers[n].key));
			snprintf(peers[n].address, sizeof(peers[n].address), "%s", m->hello.address);
		}
		n++;
	}
	p.u.peers = (struct msg_peers){ n, peers };
	if (n == 0 || member_send(c, to, &p) == 0)
		to->told_arrival = c->arrivals;
}

/* Whoever was not there when others came is told once it is. */
static void send_peers(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m->told_arrival < c->arrivals && m->welcomed && member_alive(m))
			send_peers_to(c, m);
	}
}

static void ping_all(struct controller *c)
{
	struct msg ping = { .type = MSG_PING, .u.ping = { c->now_us } };
	unsigned char data[64];
	long size = msg_encode(&ping, data, sizeof(data));
	struct post_part part = { data, (size_t)size };

	for (uint32_t i = 0; i < c->n_members; i++)
		if (member_alive(&c->members[i]))
			post_send(c->post, c->members[i].peer, &part, 1, POST_LOSSY, c->now_us);
}

void members_check(struct controller *c)
{
	int64_t gap = c->now_us - c->next_beat_check_us, usual_us;

	send_peers(c);
	if (c->now_us < c->next_beat_check_us)
		return;
	/* If we were the ones asleep, silence proves nothing: the beats wait in our socket. */
	if (c->next_beat_check_us != 0 && gap > 100000)
		for (uint32_t i = 0; i < c->n_members; i++)
			c->members[i].heard_us += gap;
	usual_us = usual_gap_us(c);
	hear_hang_ups(c);
	for (uint32_t i = 0; i < c->n_members; i++) {
		check_silence(c, &c->members[i], usual_us);
		check_joiner(c, &c->members[i]);
	}
	cuts_check(c, usual_us);
	c->next_beat_check_us = c->now_us + 20000;
	if (c->now_us >= c->next_ping_us) {
		ping_all(c);
		c->next_ping_us = c->now_us + PING_EVERY_US;
	}
}
