/* members.c - who is there. A member is a node of the cluster, whatever process stands for it.
 * Its states: node_state.c.
 *
 * A dead member's session is kept: if its process only slept, its heartbeats come back by it.
 */
#include "controller/iteration/stall_detector.h"
#include "controller/members/members.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "controller/controller.h"
#include "controller/history/finish.h"
#include "controller/history/resume.h"
#include "controller/history/run_state.h"
#include "controller/iteration/iteration.h"
#include "controller/members/assign.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/members/failure_detector.h"
#include "controller/network/failed_links.h"
#include "controller/network/measuring.h"
#include "controller/network/observed_links.h"
#include "controller/operator/journal.h"
#include "controller/planning/drift.h"
#include "controller/trust/agreement.h"
#include "controller/trust/exclude.h"
#include "controller/weights/copies.h"
#include "controller/weights/restore.h"

enum {
	PING_EVERY_US = 500000,
	OFFSET_AGE_US = 20000000,
	ASSIGN_PATIENCE_US = 60000000,
	JOIN_AGAIN_US = 1000000,
	REFUSALS = 50, TROUBLES = 20 /* lines at once */
};
static const double refusals_per_s = 0.1, troubles_per_s = 1.0 / 60;

/* ---- joining ---- */

/* The place of a node that is gone goes to another key, as when an agent's key was changed: nobody can
 * tell whether the old process sleeps, and if so it finds its place taken. */
static bool is_vacant(const struct member *m)
{
	return m->peer == 0 || m->state == NODE_DEAD;
}

/* A key's own node, whose links and disk are its machine's; else best one that nobody had. */
static struct member *find_place(struct controller *c, const struct keys_public *key, int32_t wish)
{
	struct member *best = NULL;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (keys_equal(&m->key, key))
			return m;
		if (is_vacant(m) && (!best || (member_has_key(best) && !member_has_key(m))))
			best = m;
	}
	if (wish < 0)
		return best;
	if ((uint32_t)wish >= c->n_members || !is_vacant(&c->members[wish]))
		return NULL;
	return &c->members[wish];
}

static void refuse_agent(struct controller *c, post_peer_id peer, const char *reason)
{
	struct msg m = { .type = MSG_REFUSED };
	struct member nobody = { .peer = peer };

	snprintf(m.u.refused.reason, sizeof(m.u.refused.reason), "%s", reason);
	member_send(c, &nobody, &m);
	if (rate_limit_take(&c->membership.refusals, 1, REFUSALS, refusals_per_s, c->now_us))
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
static void welcome_member(struct controller *c, struct member *m)
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
		.time_scale = c->options.time_scale > 0 ? c->options.time_scale : 0,
		.forward_s = node->forward_s,
		.backward_s = node->backward_s, .loss_s = node->loss_s,
		.dispatch_overhead_s = given->dispatch_overhead_s,
		.serialise = c->options.serialise, .bf16 = c->options.bf16, .n_delays = (uint32_t)n, .delay_s = delay,
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
			welcome_member(c, &c->members[i]);
}

/* A process that was started again on its machine has the links that were measured. */
static bool same_place(const struct msg_hello *was, const struct msg_hello *is)
{
	return was->machine[0] && strcmp(was->machine, is->machine) == 0 && strcmp(was->host, is->host) == 0;
}

void members_replaced(struct controller *c, post_peer_id peer, const struct msg_hello *hello)
{
	struct post_peer_info info;
	struct member *m;

	if (post_peer(c->post, peer, &info) != 0 || info.role != KEYS_AGENT || hello->protocol != MSG_VERSION)
		return;
	m = find_place(c, &info.key, hello->node);
	if (!m || !m->replica || m->hello.incarnation == hello->incarnation)
		return;
	failure_detector_hung_up(c);
	members_gone(c, m, "its process was replaced");
}

/* What it kept may be all there is of a stage: whoever takes that one over has it from there (recover.c). */
static void join_or_keep(struct controller *c, struct member *m)
{
	if (copy_needed(c, m)) {
		members_set(c, m, NODE_JOINING, "keeps a copy of a lost stage");
		return;
	}
	copies_forget(m);
	members_assign(c, m, member_stage(c, m), c->committed > 0);
}

void members_hello(struct controller *c, post_peer_id peer, const struct msg_hello *hello)
{
	struct post_peer_info info;
	struct member *m;
	bool known;

	if (post_peer(c->post, peer, &info) != 0 || info.role != KEYS_AGENT)
		return;
	if (hello->protocol != MSG_VERSION) {
		refuse_agent(c, peer, "it speaks another version of the protocol");
		return;
	}
	m = find_place(c, &info.key, hello->node);
	if (!m) {
		refuse_agent(c, peer, hello->node >= 0 ? "that node is taken, or not in the cluster" :
						   "every node of the cluster has its agent");
		return;
	}
	if (m->peer != 0 && m->peer != peer)
		post_forget(c->post, m->peer);
	if (c->phase != PHASE_GATHERING && !same_place(&m->hello, hello))
		measuring_forget(c, m);
	known = keys_equal(&m->key, &info.key);
	m->peer = peer;
	m->key = info.key;
	if (m->hello.incarnation != hello->incarnation)
		m->differs = false; /* that was another process */
	m->hello = *hello;
	failure_detector_begin(c, m);
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
	if (c->phase == PHASE_GATHERING && !c->resumed && c->gathering < GATHER_BUILD)
		return; /* the first plan says where, and how fast time goes */
	if (!known)
		resume_save(c);
	welcome_member(c, m);
	resume_member(c, m);
	if (c->phase == PHASE_GATHERING && c->resumed)
		return;
	if (m->marked)
		members_set(c, m, NODE_FAILED, "marked failed");
	else
		join_or_keep(c, m);
}

void members_ready(struct controller *c, struct member *m, const struct msg_ready *r)
{
	if (m->assignment == 0) /* it did what a predecessor ordered */
		return;
	if (r->assignment != m->assignment || m->state == NODE_DEAD)
		return;
	m->corpus_hash = r->corpus_hash;
	if (r->stage == 0 && !agreement_reads(c, m))
		return;
	c->steps += m->restoring && !m->ready;
	m->ready = true;
	m->ready_sequence = m->sequence;
	m->holds = r->iteration;
	m->hash = r->hash;
	m->hash_agrees = true;
	if (!agreement_joins(c, m))
		return;
	m->measured_forward_s = r->forward_s;
	m->measured_backward_s = r->backward_s;
	m->measured_loss_s = r->loss_s;
	if (m->alone_forward_s > 0 && r->loss_s > 0 && r->forward_s > 0) /* as much too long as the rest */
		m->alone_loss_s = r->loss_s * fmin(m->alone_forward_s / r->forward_s, 1);
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
	timeout_round(&m->rounds, round_trip ? round_trip : 1);
	offset = c->now_us - h->now_us - round_trip / 2;
	if (m->round_trip_us != 0 && round_trip > m->round_trip_us &&
	    c->now_us - m->offset_at_us < OFFSET_AGE_US)
		return;
	m->round_trip_us = round_trip ? round_trip : 1;
	m->clock_offset_us = offset;
	m->offset_at_us = c->now_us;
}

static void heard_again(struct controller *c, struct member *m)
{
	note(c, NOTE_EVENT, m->id, 0, "n%02u is heard again", m->id);
	members_set(c, m, NODE_JOINING, "");
	restore_look_again(c);
	join_or_keep(c, m);
}

void members_heartbeat(struct controller *c, struct member *m, const struct msg_heartbeat *h)
{
	if (!failure_detector_hear(c, m, h))
		return; /* a newer one has overtaken it */
	if (m->beat.slots != h->slots || m->beat.running != h->running || m->beat.queued != h->queued)
		m->changed = true;
	m->beat = *h;
	m->beat.stuck = NULL; /* of the message */
	link_failures_hear(c, m, h);
	stall_hear(c, m);
	learn_clock(c, m, h);
	if (m->state == NODE_SUSPECT) {
		members_set(c, m, NODE_LIVE, "");
	} else if (m->state == NODE_DEAD && m->marked) {
		members_set(c, m, NODE_FAILED, "marked failed");
	} else if (m->state == NODE_DEAD && c->phase == PHASE_GATHERING && member_stage(c, m) < 0) {
		members_set(c, m, NODE_JOINING, "");
	} else if (m->state == NODE_DEAD && !iteration_resumes(c, m) && link_failures_healed(c, m)) {
		heard_again(c, m);
	}
	/* Agents tell their weights with every beat: a replica that differs is an alarm. It may come before the
	 * agent's word of the commit; and after its word that it has loaded others, though it was said before. */
	if (m->replica && m->sequence >= m->ready_sequence && h->committed == c->committed && m->holds == c->committed && m->hash != 0 &&
	    h->hash != m->hash && h->hash != 0 && m->hash_agrees)
		agreement_changed(c, m);
}

/* A trouble's words are for people: the first, and one a minute. */
static void tell_trouble(struct controller *c, struct member *m, const struct msg_trouble *t)
{
	if (!rate_limit_take(&m->troubles, 1, TROUBLES, troubles_per_s, c->now_us)) {
		m->troubles.left_out++;
		return;
	}
	if (m->troubles.left_out > 0)
		note(c, NOTE_WARNING, m->id, 0, "n%02u told of trouble %u times more", m->id, m->troubles.left_out);
	m->troubles.left_out = 0;
	note(c, t->fatal ? NOTE_ALERT : NOTE_WARNING, m->id, 0, "n%02u: %.160s", m->id, t->text);
}

void members_trouble(struct controller *c, struct member *m, const struct msg_trouble *t)
{
	bool names = t->refused_node >= 0 && (uint32_t)t->refused_node < c->n_members;
	struct member *refused = names && m->replica ? &c->members[t->refused_node] : NULL;

	/* Several may refuse what one node sends: the first report excludes it. */
	if (!names || t->fatal || (refused && refused->replica))
		tell_trouble(c, m, t);
	if (refused)
		exclude_for_number(c, refused, "sent what no computation gives");
	if (c->phase == PHASE_GATHERING && !c->resumed && t->fatal && strncmp(t->text, "leaving:", 8) != 0)
		controller_finish(c, 1, t->text);
	else if (t->fatal && member_alive(m))
		members_gone(c, m, "gave up");
}

/* What a heartbeat of links says, into the table: a latency always, a bandwidth where one was seen. */
static void learn_link(struct controller *c, const struct member *m, const struct msg_link *l)
{
	struct link_seen *s = c->links && l->to != m->id ? link_table_at(c->links, m->id, l->to) : NULL;

	if (!s || !(l->latency_s > 0))
		return;
	s->latency_s = l->latency_s;
	s->spread_s = l->spread_s;
	if (l->bandwidth_bytes_per_s > 0)
		s->bandwidth = (double)l->bandwidth_bytes_per_s;
}

/* Of what is said of each link the first, into out (MSG_NODES). Returns how many. */
static uint32_t one_each(const struct controller *c, const struct msg_links *l, struct msg_link *out)
{
	bool told[MSG_NODES] = { false };
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->n_links; i++) {
		uint16_t to = l->links[i].to;

		if (to >= c->n_members || told[to])
			continue;
		told[to] = true;
		out[n++] = l->links[i];
	}
	return n;
}

void members_links(struct controller *c, struct member *m, const struct msg_links *told)
{
	struct msg_link links[MSG_NODES];
	struct msg_links each = { one_each(c, told, links), links };

	if (!c->links)
		drift_links(c, m, &each);
	for (uint32_t i = 0; i < each.n_links; i++) {
		struct observed_link *s = observed_link(m, links[i].to);

		if (!s)
			return;
		learn_link(c, m, &links[i]);
		s->link = links[i];
		s->link.from = m->id;
		if (s->link.measured_delay_s > 0)
			s->took_s = s->link.measured_delay_s;
		if (!(c->links && c->phase == PHASE_GATHERING))
			drift_link(c, s);
		c->stream.links_changed = true;
	}
}

static bool source_lost(const struct controller *c, const struct member *m)
{
	const struct member *source = &c->members[m->source];

	if (m->keeps < 0 || m->kept)
		return false;
	return link_failures_between(c, m->id, m->source) ||
	       (!(source->replica && member_stage(c, source) == m->keeps) &&
		!copy_whole(source, m->keeps) && !copy_left_out(c, source, m->keeps));
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
	    (m->differs && c->committed == 0) || (c->restore.active && !c->restore.average))
		return;
	if (m->replica) {
		if (source_lost(c, m))
			copies_release(c, m);
		return;
	}
	if (copy_needed(c, m) && m->keeps != member_stage(c, m))
		return;
	/* The member's copy follows; the word of the last commit is on its way. */
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

bool members_due(const struct controller *c)
{
	return c->now_us >= c->membership.next_look_us;
}

void members_hear_silence(struct controller *c)
{
	int64_t gap = c->now_us - c->membership.next_look_us;

	failure_detector_check(c, c->membership.next_look_us != 0 && gap > 100000 ? gap : 0);
	c->membership.next_look_us = c->now_us + 20000;
}

void members_check_joiners(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		check_joiner(c, &c->members[i]);
}

void members_ping(struct controller *c)
{
	if (c->now_us < c->membership.next_ping_us)
		return;
	ping_all(c);
	c->membership.next_ping_us = c->now_us + PING_EVERY_US;
}
