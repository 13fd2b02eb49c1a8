/* agents.c - handles the messages with which agents join, report their state and leave.
 *
 * A member is a node of the cluster. During the run another process may replace its agent's
 * process. lifecycle.c has the states of a member and their transitions. The controller keeps the
 * session of a dead member: if its process was only suspended, its heartbeats arrive on that
 * session again. */
#include "controller/joining/agents.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "controller/iteration/drain.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/stall_detector.h"
#include "controller/joining/resume.h"
#include "controller/joining/slots.h"
#include "controller/members/failure_detector.h"
#include "controller/members/failures.h"
#include "controller/members/finish.h"
#include "controller/members/gpu_reports.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/members/saved_state.h"
#include "controller/network/failed_links.h"
#include "controller/network/link_record.h"
#include "controller/network/link_table.h"
#include "controller/network/measuring.h"
#include "controller/network/observed_links.h"
#include "controller/planning/drift.h"
#include "controller/run/journal.h"
#include "controller/trust/agreement.h"
#include "controller/trust/exclude.h"
#include "controller/weights/assign.h"
#include "controller/weights/copies.h"
#include "controller/weights/first_weights.h"
#include "controller/weights/restore.h"
#include "wire/address.h"

enum {
	PING_EVERY_US = 500000,
	/* Longest plausible time, in seconds, in which a host encodes or decodes an activation. A
	 * longer reported time is ignored. */
	HOST_MOST_S = 60,
	OFFSET_AGE_US = 20000000,
	ASSIGN_PATIENCE_US = 60000000,
	JOIN_AGAIN_US = 1000000,
	/* Journal lines allowed in one burst: about refused agents, and about errors that agents
	 * report */
	REFUSALS = 50,
	TROUBLES = 20
};
static const double refusals_per_s = 0.1, troubles_per_s = 1.0 / 60;

/* ---- joining ---- */

/* Returns true if an agent with another key may take this node, for example because the agent's key
 * was changed. The node's previous process may only have been suspended. The controller then
 * refuses the previous process when that process wakes up. */
static bool is_vacant(const struct member *m)
{
	return m->peer == 0 || m->state == MEMBER_DEAD || m->state == MEMBER_LEFT;
}

/* Returns the node that belongs to this key. A returning agent needs its old node: the links and
 * the disk that the controller has recorded for the old node are those of the agent's machine. For
 * a new key, returns a vacant node, preferably a node that no key has had. wish: the node that the
 * agent wants; < 0: any. NULL: no node is vacant. */
static struct member *find_place(struct members *members, const struct keys_public *key,
				 int32_t wish)
{
	struct member *best = NULL;

	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (keys_equal(&m->key, key))
			return m;
		if (is_vacant(m) && (!best || (member_has_key(best) && !member_has_key(m))))
			best = m;
	}
	if (wish < 0)
		return best;
	if ((uint32_t)wish >= members->n || !is_vacant(&members->list[wish]))
		return NULL;
	return &members->list[wish];
}

void members_refuse(struct run *run, post_peer_id peer, const char *reason, bool final)
{
	struct msg m = { .type = MSG_REFUSED, .u.refused.final = final };
	struct member nobody = { .peer = peer };

	snprintf(m.u.refused.reason, sizeof(m.u.refused.reason), "%s", reason);
	member_send(run, &nobody, &m);
}

static void refuse_agent(struct members *members, post_peer_id peer, const char *reason)
{
	members_refuse(members->run, peer, reason, false);
	if (rate_limit_take(&members->membership.refusals, 1, REFUSALS, refusals_per_s,
			    members->run->now_us))
		note(members->run, NOTE_WARNING, -1, 0, "an agent was refused: %s", reason);
}

void members_refuse_version(struct members *members, post_peer_id peer)
{
	struct msg m = { .type = MSG_REFUSED };
	struct member sender = { .peer = peer };

	member_send(members->run, &sender, &m);
}

static size_t join_corpus(const struct run *run, char *out, size_t room)
{
	size_t at = 0;

	for (uint32_t i = 0; i < run->options.training.n_corpus; i++) {
		size_t n = strlen(run->options.training.corpus[i]) + 1;

		if (at + n > room)
			break;
		memcpy(out + at, run->options.training.corpus[i], n);
		at += n;
	}
	return at;
}

/* Sends the description of the run to m. The description has the cluster that the operator
 * described, without later corrections, because the agent emulates that cluster. The transfer
 * times are those for fp32, because formats change during the run. */
static void welcome_member(struct run *run, struct member *m)
{
	char corpus[1 << 16];
	float delay[MSG_NODES], bytes[MSG_NODES], sync[MSG_NODES];
	const struct cluster *given = run->cluster_as_given;
	const struct cluster_node *node = &given->nodes[m->id];
	float sum_share = (float)tensor_format_sum_share(run->cluster->formats.sum_wire);
	double spared = 1 - tensor_format_activation_share(run->cluster->formats.wire);
	int n = given->n_nodes;
	struct msg w = { .type = MSG_WELCOME };

	for (int to = 0; to < n; to++) {
		double bytes_s = given->bytes_s ? fmax(0, given->bytes_s[m->id * n + to]) : 0;

		delay[to] = (float)given->delay_s[m->id * n + to];
		if (delay[to] >= 0)
			delay[to] = (float)(given->delay_s[m->id * n + to] + spared * bytes_s);
		bytes[to] = to == m->id ? 0 : fmaxf(0, fminf((float)bytes_s, delay[to]));
		sync[to] = given->sync_pair_s
				   ? (float)given->sync_pair_s[m->id * n + to] / sum_share
				   : 0;
		if (sync[to] < 0 || to == m->id)
			sync[to] = 0;
		if (to == m->id)
			delay[to] = 0;
	}
	w.u.welcome = (struct msg_welcome){
		.node = m->id,
		.n_nodes = (uint32_t)n,
		.run = run->id,
		.seed = run->options.seed,
		.batch = run->training.hyper.batch,
		.sequence = run->training.hyper.sequence,
		.n_shards = run->training.n_shards,
		.threads = run->options.training.threads,
		.slots = (uint32_t)node->memory,
		.time_scale =
			run->options.cluster.time_scale > 0 ? run->options.cluster.time_scale : 0,
		.forward_s = node->forward_s,
		.backward_s = node->backward_s,
		.loss_s = node->loss_s,
		.dispatch_overhead_s = given->dispatch_overhead_s,
		.serialise = run->options.cluster.serialise,
		.steps_before = run->training.origin.steps,
		.has_tokenizer = run->training.has_tokenizer,
		.n_delays = (uint32_t)n,
		.delay_s = delay,
		.n_bytes = (uint32_t)n,
		.bytes_s = bytes,
		.n_syncs = (uint32_t)n,
		.sync_s = sync,
		.corpus = corpus,
	};
	w.u.welcome.n_corpus = (uint32_t)join_corpus(run, corpus, sizeof(corpus));
	snprintf(w.u.welcome.model, sizeof(w.u.welcome.model), "%s", run->training.model_json);
	member_send(run, m, &w);
	m->assigned.is_welcomed = true;
}

void members_welcome(struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (member_alive(&members->list[i]) && !members->list[i].assigned.is_welcomed)
			welcome_member(members->run, &members->list[i]);
}

/* Returns true if both HELLO messages come from the same machine and host name. The links of a
 * process that was restarted there need no new measurement. */
static bool same_place(const struct msg_hello *was, const struct msg_hello *is)
{
	return was->machine[0] && strcmp(was->machine, is->machine) == 0 &&
	       strcmp(was->host, is->host) == 0;
}

void members_replaced(struct members *members, post_peer_id peer, const struct msg_hello *hello)
{
	struct post_peer_info info;
	struct member *m;
	char why[sizeof(m->why)];

	if (post_peer(members->run->post, peer, &info) != 0 || info.role != KEYS_AGENT)
		return;
	m = find_place(members, &info.key, hello->node);
	if (!m || !member_is_replica(m))
		return;
	failure_detector_hung_up(members);
	snprintf(why, sizeof(why), "its process was replaced by that at %.50s", hello->address);
	member_apply(members->run, m, EVENT_LOST,
		     m->hello.incarnation == hello->incarnation ? "its session was replaced" : why);
}

/* Lets m keep its standby copy if no other node has the weights of that stage. The node that
 * restores the stage fetches the copy from m (recover.c). Otherwise assigns a stage to m. */
static void join_or_keep(struct members *members, struct member *m)
{
	if (copy_needed(members, m)) {
		member_apply(members->run, m, EVENT_WAIT, "keeps a copy of a lost stage");
		return;
	}
	copies_forget(m);
	members_assign(members, m, member_stage(members->run, m), members->run->committed > 0);
}

/* Returns true if the agent only pretends to compute, as in a rehearsal. */
static bool pretends(const struct msg_hello *hello)
{
	return strncmp(hello->device, "pretend", 7) == 0;
}

/* Returns true if the texts are addresses to which other agents may connect. These are TCP
 * addresses or, if the controller itself listens on a local socket, local sockets. Only `inside`
 * may hold several addresses. The check matters because an agent's texts reach the logs of other
 * agents. */
static bool has_addresses(const struct run *run, const struct msg_hello *h)
{
	char host[LINK_ADDRESS_SIZE], port[8];

	for (const char *c = h->address; *c; c++)
		if (*c <= ' ' || *c > '~')
			return false;
	for (const char *c = h->inside; *c; c++)
		if (*c < ' ' || *c > '~')
			return false;
	return address_split(h->address, host, port) ||
	       (strncmp(h->address, "ipc://", 6) == 0 &&
		strncmp(run->options.listen, "ipc://", 6) == 0);
}

/* Returns why an agent cannot take part in the run, or NULL if it can. m: the node found for the
 * agent, or NULL. */
static const char *why_refused(const struct run *run, const struct msg_hello *hello,
			       const struct member *m)
{
	if (pretends(hello) && !run_is_rehearsal(run))
		return "--device pretend computes nothing: this run is no rehearsal";
	if (!pretends(hello) && run_is_rehearsal(run))
		return "this run is a rehearsal, whose agents need --device pretend";
	if (!has_addresses(run, hello))
		return "its address is none: expected tcp://HOST:PORT (--advertise)";
	if (!m)
		return hello->node >= 0 ? "that node is taken, or not in the cluster"
					: "every node of the cluster has its agent";
	return NULL;
}

/* Sets the name and the location of the node. Characters other than visible ASCII become '?',
 * because the location is written into files. */
static void name_member(struct run *run, struct member *m, const char *name)
{
	struct cluster_node *node = &run->cluster->nodes[m->id];

	snprintf(m->name, sizeof(m->name), "%s", name);
	for (char *c = m->hello.place; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	free(node->name);
	node->name = alloc_string(name);
	if (!m->hello.place[0])
		return;
	free(node->location);
	node->location = alloc_string(m->hello.place);
}

/* Returns how plans treat a node whose new process has this key. In a resumed run, a node whose
 * gradients are in the last commit stays in use, or stays a spare. */
static enum member_use use_of_joiner(const struct run *run, const struct member *m,
				     const struct keys_public *key)
{
	if (run->phase != PHASE_GATHERING)
		return USE_UNDECIDED;
	if (!run->resumed)
		return USE_ALWAYS;
	return m->is_awaited && keys_equal(&m->key, key) ? m->move.use : USE_UNDECIDED;
}

/* Makes the process that sent `hello` the process of m, and forgets the state of m's previous
 * process. */
static void connect_member(struct backups *backups, struct member *m,
			   const struct post_peer_info *from, post_peer_id peer,
			   const struct msg_hello *hello)
{
	if (m->peer != 0 && m->peer != peer)
		post_forget(backups->run->post, m->peer);
	if (backups->run->phase != PHASE_GATHERING && !same_place(&m->hello, hello))
		measuring_forget(backups->members, m);
	m->peer = peer;
	m->move.use = use_of_joiner(backups->run, m, &from->key);
	if (!keys_equal(&m->key, &from->key))
		m->move.failures = 0; /* the failures belong to the node's previous key */
	m->key = from->key;
	if (m->hello.incarnation != hello->incarnation)
		/* the weights that differed belong to the node's previous process */
		m->weights.differ = false;
	m->hello = *hello;
	failures_recall(backups->members, m);
	name_member(backups->run, m, from->name);
	failure_detector_begin(backups->members, m);
	m->stuck.n = 0;
	m->clock.round_trip_us = 0;
	m->compute.spent = (struct device_time){ { 0 } };
	m->compute.spent_from_us = 0;
	m->compute.spent_in = 0;
	m->assigned.plan_epoch = m->assigned.connect_id = 0;
	copies_forget(m);
	m->copy.refused_us = 0;
	m->copy.n_refused = 0;
	m->checkpoint.failed = 0;
	restore_look_again(backups);
	member_drain(backups->members, m, DRAIN_NOT);
	member_apply(backups->run, m, EVENT_HELLO, "");
	m->assigned.is_welcomed = false;
	m->weights.stage = m->beat.stage = MSG_NO_STAGE;
	m->peers.key_revoked = false;
	m->peers.arrival = ++backups->members->arrivals;
	m->peers.arrivals_sent = 0;
}

void members_hello(struct backups *backups, post_peer_id peer, const struct msg_hello *hello)
{
	struct post_peer_info info;
	struct member *m;
	const char *why;
	bool known, moved;

	if (post_peer(backups->run->post, peer, &info) != 0 || info.role != KEYS_AGENT)
		return;
	m = find_place(backups->members, &info.key, hello->node);
	why = why_refused(backups->run, hello, m);
	if (why) {
		refuse_agent(backups->members, peer, why);
		return;
	}
	known = keys_equal(&m->key, &info.key);
	moved = m->hello.machine[0] && !same_place(&m->hello, hello);
	connect_member(backups, m, &info, peer, hello);
	if (resume_is_early(backups->members))
		return; /* the first plan decides the node's stage and sets the time scale */
	if (!known || moved) {
		slots_settle_late(backups->members, m);
		backups->members->has_unrecorded_nodes = true;
		/* The slots are recorded before the key: if the record has a node's key, a
		 * controller that resumes the run does not set the node's slots again. */
		record_late_nodes(backups->members);
	}
	if (!known)
		resume_save(backups->members);
	members_welcome(backups->members);
	resume_member(backups->members, m);
	if (backups->run->phase == PHASE_GATHERING && backups->run->resumed)
		return;
	if (m->is_marked)
		member_apply(backups->run, m, EVENT_BAR, "marked failed");
	else
		join_or_keep(backups->members, m);
}

void members_ready(struct members *members, struct member *m, const struct msg_ready *r)
{
	if (m->assigned.number == 0) /* the message answers an order of an earlier controller */
		return;
	if (r->assignment != m->assigned.number || !member_alive(m) || member_is_replica(m))
		return;
	m->compute.corpus_hash = r->corpus_hash;
	if (r->stage == 0 && !agreement_check_corpus(members, m))
		return;
	members->run->progress += m->state == MEMBER_RESTORING;
	member_apply(members->run, m, EVENT_HAS_STAGE, NULL);
	m->assigned.ready_sequence = m->assigned.message_sequence;
	m->weights.iterations = r->iteration;
	m->weights.hash = r->hash;
	m->weights.hash_agrees = true;
	if (!agreement_check_joiner(members, m))
		return;
	m->compute.forward_s = r->forward_s;
	m->compute.backward_s = r->backward_s;
	m->compute.loss_s = r->loss_s;
	/* Other agents of the machine may have slowed this measurement down. Without other agents,
	 * a forward pass takes alone_forward_s for each unit of work. If the new forward time is
	 * longer, the measured time of the loss is reduced in the same ratio. */
	if (m->compute.alone_forward_s > 0 && r->loss_s > 0 && r->forward_s > 0)
		m->compute.alone_loss_s =
			r->loss_s *
			fmin(m->compute.alone_forward_s * member_work(members->run, m) /
				     r->forward_s, 1);
	m->shown.is_stale = true;
}

/* ---- receiving ---- */

static void learn_clock(struct run *run, struct member *m, const struct msg_heartbeat *h)
{
	int64_t round_trip, offset;

	if (!is_clock(h->now_us) || !is_clock(h->echo_us) || !is_clock(h->echo_age_us))
		return;
	if (h->echo_us == 0) {
		if (m->clock.round_trip_us == 0)
			m->clock.offset_us = run->now_us - h->now_us;
		return;
	}
	round_trip = run->now_us - h->echo_us - h->echo_age_us;
	if (round_trip < 0)
		return;
	timeout_round(&m->heard.rounds, round_trip ? round_trip : 1);
	offset = run->now_us - h->now_us - round_trip / 2;
	if (m->clock.round_trip_us != 0 && round_trip > m->clock.round_trip_us &&
	    run->now_us - m->clock.sampled_us < OFFSET_AGE_US)
		return;
	m->clock.round_trip_us = round_trip ? round_trip : 1;
	m->clock.offset_us = offset;
	m->clock.sampled_us = run->now_us;
}

static void heard_again(struct backups *backups, struct member *m)
{
	note(backups->run, NOTE_EVENT, m->id, 0, "n%02u is heard again", m->id);
	member_apply(backups->run, m, EVENT_RETURN, "");
	restore_look_again(backups);
	join_or_keep(backups->members, m);
}

void members_heartbeat(struct iteration *it, struct member *m, const struct msg_heartbeat *h)
{
	if (m->state == MEMBER_LEFT || !failure_detector_hear(it->run, m, h))
		return; /* a newer heartbeat has overtaken this one */
	if (m->beat.slots != h->slots || m->beat.running != h->running ||
	    m->beat.queued != h->queued || memcmp(&m->beat.gpu, &h->gpu, sizeof(h->gpu)) != 0)
		m->shown.is_stale = true;
	m->beat = *h;
	m->beat.stuck = NULL; /* the array belongs to the message */
	gpu_reports_hear(it->run, m);
	shared_machines_hear(it->members, m);
	link_failures_hear(it->members, m, h);
	stall_note_heartbeat(it->run, m);
	learn_clock(it->run, m, h);
	if (m->state != MEMBER_DEAD)
		member_apply(it->run, m, EVENT_HEARD, "");
	else if (m->is_marked)
		member_apply(it->run, m, EVENT_BAR, "marked failed");
	else if (it->run->phase == PHASE_GATHERING && member_stage(it->run, m) < 0)
		member_apply(it->run, m, EVENT_RETURN, "");
	else if (!iteration_readmit(it, m) && link_failures_healed(it->run, m))
		heard_again(it->backups, m);
	drain_hear(it->members, m);
	/* Every heartbeat reports the hash of the node's weights, and a differing hash in a replica
	 * is an error. Messages can overtake each other. A heartbeat may arrive before the agent's
	 * report of the commit. A heartbeat sent earlier may arrive after the agent's report of
	 * newly loaded weights. Such heartbeats are not compared. */
	if (member_is_replica(m) && m->assigned.message_sequence >= m->assigned.ready_sequence &&
	    h->committed == it->run->committed && m->weights.iterations == it->run->committed &&
	    m->weights.hash != 0 && h->hash != m->weights.hash && h->hash != 0 &&
	    m->weights.hash_agrees)
		agreement_weights_changed(it->members, m);
}

/* Returns true if the quota allows another journal line with an agent's text. The quota allows a
 * burst of lines at once, and one line a minute after the burst. The first line after a gap
 * reports how many lines were dropped. */
static bool may_note(struct run *run, struct member *m, struct rate_limit *quota,
		     enum note_kind kind, const char *what)
{
	uint32_t n_dropped = quota->n_dropped;

	if (!rate_limit_take(quota, 1, TROUBLES, troubles_per_s, run->now_us)) {
		quota->n_dropped++;
		return false;
	}
	quota->n_dropped = 0;
	if (n_dropped > 0)
		note(run, kind, m->id, 0, "n%02u reported %u more %s", m->id, n_dropped, what);
	return true;
}

void members_log(struct run *run, struct member *m, const struct msg_log *l)
{
	struct rate_limit *quota = &m->quota.log_lines;

	quota->n_dropped += l->dropped;
	if (may_note(run, m, quota, NOTE_AGENT, "warnings or errors in its log"))
		note(run, NOTE_AGENT, m->id, 0, "n%02u %s: %s", m->id,
		     l->level >= LOG_ERROR ? "error" : "warning", l->text);
}

static void note_trouble(struct run *run, struct member *m, const struct msg_trouble *t)
{
	if (!may_note(run, m, &m->quota.troubles, NOTE_WARNING, "errors"))
		return;
	note(run, t->fatal ? NOTE_ALERT : NOTE_WARNING, m->id, 0, "n%02u: %.160s", m->id, t->text);
}

void members_trouble(struct members *members, struct member *m, const struct msg_trouble *t)
{
	bool names = t->refused_node >= 0 && (uint32_t)t->refused_node < members->n;
	struct member *refused =
		names && member_is_replica(m) ? &members->list[t->refused_node] : NULL;

	/* Several agents may report wrong data from the same node. The first report excludes that
	 * node. */
	if (!names || t->fatal || (refused && member_is_replica(refused)))
		note_trouble(members->run, m, t);
	if (refused)
		exclude_for_number(members, refused, t->epoch,
				   "sent numbers that no computation gives");
	if (members->run->phase == PHASE_GATHERING && !members->run->resumed && t->fatal &&
	    strncmp(t->text, "leaving:", 8) != 0)
		controller_finish(members, 1, t->text);
	else if (t->fatal && member_alive(m))
		member_apply(members->run, m, EVENT_LOST, "gave up");
}

/* Enters a reported link into the table of links. The latency is always entered, and the bandwidth
 * if it was measured. */
static void learn_link(struct members *members, const struct member *m, const struct msg_link *l)
{
	struct link_seen *s = members->links && l->to != m->id
				      ? link_table_at(members->links, m->id, l->to)
				      : NULL;

	if (!s || !(l->latency_s > 0))
		return;
	/* the report shows that the link works now, for example because a port was opened */
	if (s->unreachable) {
		link_table_reached(members->links, m->id, l->to);
		return;
	}
	s->estimated = false;
	s->latency_s = l->latency_s;
	s->spread_s = l->spread_s;
	if (l->bandwidth_bytes_per_s > 0)
		s->bandwidth = (double)l->bandwidth_bytes_per_s;
}

/* Copies the first report about each link into the array `out` (MSG_NODES entries). Returns the
 * number of copied reports. */
static uint32_t one_each(const struct members *members, const struct msg_links *l,
			 struct msg_link *out)
{
	bool seen[MSG_NODES] = { false };
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->n_links; i++) {
		uint16_t to = l->links[i].to;

		if (to >= members->n || seen[to])
			continue;
		seen[to] = true;
		out[n++] = l->links[i];
	}
	return n;
}

/* Returns a time that a host reported; 0: the time is impossible. */
static double host_time_s(float s)
{
	return s > 0 && s < HOST_MOST_S ? (double)s : 0;
}

void members_links(struct planning *planning, struct member *m, const struct msg_links *reports)
{
	struct msg_link links[MSG_NODES];
	struct msg_links each = { one_each(planning->members, reports, links), links,
				  reports->wire, 0, 0 };

	/* An agent that has not begun this iteration has measured its transfers in the previous
	 * format. */
	for (uint32_t i = 0; i < each.n_links; i++)
		if (reports->wire != planning->run->cluster->formats.wire)
			links[i].measured_delay_s = 0;

	m->links.encode_s = host_time_s(reports->encode_s);
	m->links.decode_s = host_time_s(reports->decode_s);
	if (!planning->members->links)
		drift_links(planning, m, &each);
	for (uint32_t i = 0; i < each.n_links; i++) {
		struct observed_link *s = observed_link(m, links[i].to);

		learn_link(planning->members, m, &links[i]);
		s->link = links[i];
		s->link.from = m->id;
		if (s->link.measured_delay_s > 0)
			s->took_s = s->link.measured_delay_s;
		if (!(planning->members->links && planning->run->phase == PHASE_GATHERING))
			drift_link(planning, s);
		planning->run->stream.links_changed = true;
	}
}

static bool source_lost(const struct members *members, const struct member *m)
{
	const struct member *source = &members->list[m->assigned.source];

	if (m->copy.stage < 0 || m->copy.state != COPY_FETCHING)
		return false;
	return link_failures_between(members, m->id, m->assigned.source) ||
	       (!(member_is_replica(source) &&
		  member_stage(members->run, source) == m->copy.stage) &&
		!copy_whole(source, m->copy.stage) &&
		!copy_of_excluded(members, source, m->copy.stage));
}

/* Returns the time at which a node should try again to fetch weights. The delay doubles with each
 * failed attempt. */
static int64_t again_us(const struct member *m)
{
	int64_t last =
		m->assigned.at_us > m->copy.refused_us ? m->assigned.at_us : m->copy.refused_us;

	return last + ((int64_t)JOIN_AGAIN_US << (m->copy.n_refused < 6 ? m->copy.n_refused : 6));
}

/* Restarts the fetch of a joiner whose weights belong to an older iteration, or whose source has
 * left. */
static void check_joiner(struct backups *backups, struct member *m)
{
	bool late = backups->run->now_us - m->assigned.at_us > ASSIGN_PATIENCE_US;

	if (backups->run->phase == PHASE_GATHERING || m->is_marked || !member_alive(m) ||
	    member_is_restoring(m) || (m->weights.differ && backups->run->committed == 0) ||
	    restoring_goes_back(backups->restore.state))
		return;
	if (member_is_replica(m)) {
		if (source_lost(backups->members, m))
			copies_release(backups->members, m);
		return;
	}
	if (copy_needed(backups->members, m) && m->copy.stage != member_stage(backups->run, m))
		return;
	/* Nothing has to be fetched: the member's copy lacks only the newest commit, and the
	 * announcement of this commit is still on its way to the member. */
	if (m->copy.state != COPY_FETCHING && m->copy.stage == member_stage(backups->run, m) &&
	    m->copy.iterations < backups->run->committed &&
	    m->copy.last_commit_sent == backups->run->committed && !late)
		return;
	if (m->state == MEMBER_JOINING && backups->run->now_us > again_us(m))
		members_assign(backups->members, m, member_stage(backups->run, m),
			       backups->run->committed > 0);
	else if ((m->state == MEMBER_READY && (m->weights.iterations < backups->run->committed ||
					       source_lost(backups->members, m))) ||
		 (m->state == MEMBER_SYNCING &&
		  (source_lost(backups->members, m) ||
		   (late && (m->copy.state != COPY_FETCHING || m->copy.stage < 0)))))
		members_assign(backups->members, m, member_stage(backups->run, m),
			       backups->run->committed > 0);
}

static void ping_all(struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (member_alive(&members->list[i]))
			member_ping(members->run, &members->list[i]);
}

bool members_due(const struct members *members)
{
	return members->run->now_us >= members->membership.next_look_us;
}

void members_hear_silence(struct members *members)
{
	int64_t gap = members->run->now_us - members->membership.next_look_us;

	failure_detector_check(members,
			       members->membership.next_look_us != 0 && gap > 100000 ? gap : 0);
	members->membership.next_look_us = members->run->now_us + 20000;
}

void members_check_joiners(struct backups *backups)
{
	for (uint32_t i = 0; i < backups->members->n; i++)
		check_joiner(backups, &backups->members->list[i]);
}

void members_ping(struct members *members)
{
	if (members->run->now_us < members->membership.next_ping_us)
		return;
	ping_all(members);
	members->membership.next_ping_us = members->run->now_us + PING_EVERY_US;
}
