/* net_post.c - implements the functions of wire/post.h over the simulated network. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/sim/net.h"
#include "wire/msg.h"

enum { KEEP_ALIVE_US = 1250000, UNKNOWN_RTO_US = 1000000 };
#define RATE_BYTES_PER_S 50000000

/* ---- opening and closing ---- */

int post_open(struct post **out, const struct post_options *options, struct error *err)
{
	int i = 0;

	while (i < POSTS && net.posts[i])
		i++;
	if (i == POSTS)
		return error_set(err, -ENOSPC, "no room for another post");
	net.posts[i] = alloc_new(sizeof(*net.posts[i]));
	net.posts[i]->process = sim.self;
	net.posts[i]->options = *options;
	*out = net.posts[i];
	return 0;
}

void post_close(struct post *p)
{
	if (!p)
		return;
	for (int i = 0; i < PEERS; i++) {
		struct peer *r = &p->peers[i], *s = r->id ? r->other : NULL;

		if (s) {
			net_leave_parcels(r);
			net_unjoin(r);
			s->post->broken += !net.dies_silently[p->process];
			net_connect_soon(s, sim_draw(50000, 300000));
		}
		if (r->id)
			net_peer_free(r);
	}
	free(p->lent);
	for (int i = 0; i < POSTS; i++)
		if (net.posts[i] == p)
			net.posts[i] = NULL;
	free(p);
}

int post_listen(struct post *p, const char *address, char *bound, struct error *err)
{
	size_t n = strlen(address);

	if (n > 2 && strcmp(address + n - 2, ":0") == 0)
		snprintf(p->bound, sizeof(p->bound), "%.*s:%u", (int)(n - 2), address,
			 20000 + ++net.ports % 10000);
	else if (net_listener_at(address))
		return error_set(err, -EADDRINUSE, "%s: in use", address);
	else
		snprintf(p->bound, sizeof(p->bound), "%s", address);
	if (bound)
		memcpy(bound, p->bound, sizeof(p->bound));
	return 0;
}

int post_dial(struct post *p, const char *address, const struct keys_public *key,
	      post_peer_id *peer, struct error *err)
{
	struct peer *r = net_peer_new(p, true);

	if (!r)
		return error_set(err, -ENOSPC, "no room for another peer");
	snprintf(r->address, sizeof(r->address), "%s", address);
	r->info.key = *key;
	net_connect_soon(r, sim_delay(3000));
	*peer = r->id;
	return 0;
}

int post_forget(struct post *p, post_peer_id id)
{
	struct peer *r = net_peer_find(p, id), *s = r ? r->other : NULL;
	uint32_t n = 0;

	if (!r)
		return -ENOENT;
	if (s) {
		net_unjoin(r);
		if (s->dialed) { /* the dialer learns that the listener does not know the session */
			net_go_down(s, LINK_UNKNOWN_SESSION);
			net_connect_soon(s, sim_draw(1000, 100000));
		}
	}
	net_peer_free(r);
	for (uint32_t i = 0; i < p->n_events; i++)
		if (p->events[i].what.peer != id)
			p->events[n++] = p->events[i];
	p->n_events = n;
	return 0;
}

/* ---- time ---- */

int post_threads_fd(const struct post *p)
{
	(void)p;
	return -1;
}

bool post_waits_for_tick(const struct post *p)
{
	(void)p;
	return false;
}

int64_t post_deadline_us(const struct post *p)
{
	struct peer *to;
	struct parcel **of, *x = net_first_to_come((struct post *)p, &to, &of);
	int64_t at_us = x ? x->arrives_us : INT64_MAX;

	for (uint32_t i = 0; i < p->n_events; i++)
		if (p->events[i].at_us < at_us)
			at_us = p->events[i].at_us;
	for (int i = 0; i < PEERS; i++) {
		const struct peer *r = &p->peers[i];

		if (!r->id)
			continue;
		if (r->connect_us < at_us)
			at_us = r->connect_us;
		for (int large = 0; large < 2; large++)
			if (r->pong_us[large] < at_us)
				at_us = r->pong_us[large];
		if (r->up && r->silent_us != INT64_MAX && r->silent_us + SILENT_US < at_us)
			at_us = r->silent_us + SILENT_US;
	}
	return net_local(p, at_us);
}

void post_tick(struct post *p, int64_t now_us)
{
	(void)now_us;
	net_look_at_keys(p);
	for (int i = 0; i < PEERS; i++)
		if (p->peers[i].id)
			net_tick_peer(&p->peers[i]);
}

int post_fd(const struct post *p)
{
	(void)p;
	return -1;
}

/* ---- sending ---- */

int post_send(struct post *p, post_peer_id id, const struct post_part *parts, size_t n,
	      enum post_flags flags, int64_t now_us)
{
	struct peer *r = net_peer_find(p, id);
	bool lossy = flags & POST_LOSSY;
	struct parcel *x;

	(void)now_us;
	if (!r)
		return -ENOENT;
	if (lossy && !r->up)
		return -ENOTCONN;
	x = net_parcel_new(parts, n);
	r->info.sent_messages++;
	r->info.sent_bytes += x->size;
	p->counters.sent_messages++;
	p->counters.sent_bytes += x->size;
	sim_sends(p->process, x->data, x->size);
	x->lossy = lossy;
	x->class = (enum post_class)((unsigned)flags >> 1);
	if (!lossy) {
		if (!r->out[x->class].first)
			r->out[x->class].moved_us = sim.now_us;
		*r->out[x->class].end = x;
		r->out[x->class].end = &x->next;
		net_dispatch(r, x);
	} else if (!r->other || net_is_cut(p->process, r->process) || sim_chance(net.loss)) {
		net_parcel_free(x);
	} else {
		x->arrives_us = sim.now_us + sim_delay(net_delay(r));
		if (x->arrives_us < r->other->since_us)
			x->arrives_us = r->other->since_us;
		x->next = r->lossy;
		r->lossy = x;
		sim_wake(r->process, x->arrives_us);
	}
	return 0;
}

/* Copies the borrowed bytes and releases them at once, because the simulation borrows nothing. */
int post_lend(struct post *p, post_peer_id id, const struct post_part *head,
	      const struct post_loan *loan, enum post_flags class, int64_t now_us)
{
	const struct post_part parts[] = { *head, { loan->data, loan->size } };
	int rc = post_send(p, id, parts, 2, class, now_us);

	if (rc == 0)
		loan->release(loan->context);
	return rc;
}

size_t post_class_room(const struct post *p, post_peer_id id, enum post_class class)
{
	const struct peer *r = net_peer_find(p, id);
	size_t limit = p->options.retained_most_bytes ? p->options.retained_most_bytes :
							(size_t)256 << 20;

	(void)class;
	return !r || net_retained_bytes(r) > limit ? 0 : limit - net_retained_bytes(r);
}

size_t post_room(const struct post *p, post_peer_id id)
{
	return post_class_room(p, id, POST_CLASS_CONTROL);
}

bool post_idle(const struct post *p, post_peer_id id)
{
	for (int i = 0; i < PEERS; i++) {
		const struct peer *r = &p->peers[i];

		if (r->id && (!id || r->id == id) && net_retained_bytes(r) > 0)
			return false;
	}
	return true;
}

/* Each probe has an answer of its own. Only the earliest answer is kept. */
int post_probe(struct post *p, post_peer_id id, bool large, int64_t now_us)
{
	struct peer *r = net_peer_find(p, id);
	int64_t pong_us;

	(void)now_us;
	if (!r)
		return -ENOENT;
	if (!r->up)
		return -ENOTCONN;
	if (!r->other || net_is_cut(p->process, r->process) || sim_chance(net.loss) ||
	    (large && net_is_narrow(p->process, r->process)))
		return 0;
	pong_us = sim.now_us + sim_delay(2 * net_delay(r));
	if (pong_us < r->pong_us[large]) {
		r->ping_us[large] = sim.now_us;
		r->pong_us[large] = pong_us;
	}
	return 0;
}

/* ---- receiving ---- */

static bool next_event(struct post *p, struct post_message *out)
{
	for (uint32_t i = 0; i < p->n_events; i++) {
		const struct peer *r = net_peer_find(p, p->events[i].what.peer);

		if (p->events[i].at_us > sim.now_us)
			continue;
		*out = p->events[i].what;
		memmove(&p->events[i], &p->events[i + 1],
			(--p->n_events - i) * sizeof(p->events[0]));
		if (out->kind == POST_DOWN && r && r->ephemeral)
			p->leaving = out->peer;
		return true;
	}
	return false;
}

/* Returns true if messages of this type differ on each machine or in each test. They describe a
 * machine, or contain a path or a file's modification time. Their bytes are therefore not part of
 * the trace's hash. */
static bool is_of_machine(enum msg_type type)
{
	return type == MSG_HELLO || type == MSG_HEARTBEAT || type == MSG_WELCOME ||
	       type == MSG_LOG || type == MSG_FILE_PART;
}

/* Adds to the trace a message that is being delivered. */
static void note_parcel(const struct post *p, const struct peer *from, const struct parcel *x)
{
	/* Bytes 4 and 5 of the envelope are the type (wire/msg.c). */
	enum msg_type type = (enum msg_type)(x->size >= 8 ? x->data[4] | x->data[5] << 8 : 0);

	sim.delivered++;
	sim_note("%s < %s: %s, %zu bytes, class %d%s", sim_name(p->process),
		 sim_name(from->process), msg_name(type), x->size, x->class,
		 x->lossy ? ", lossy" : "");
	if (!is_of_machine(type))
		sim_mix(x->data, x->size);
}

static void deliver(struct post *p, struct peer *to, struct parcel *x, struct parcel **of,
		    struct post_message *out)
{
	note_parcel(p, to, x);
	*out = (struct post_message){ .kind = POST_DATA, .peer = to->id, .size = x->size,
				      .lossy = x->lossy };
	if (of) {
		*of = x->next;
		p->lent = x->data;
		free(x);
	} else { /* the sender keeps the message until it gets the acknowledgement */
		p->lent = alloc_copy(x->data, x->size);
		x->delivered = true;
		x->acked_us = sim.now_us + sim_delay(net_delay(to));
	}
	if (net.flips_bit[p->process] && flip_tensor(p->lent, out->size)) {
		net.flips_bit[p->process] = false;
		sim_note("%s: a bit of this message has flipped", sim_name(p->process));
	}
	out->data = out->owner = p->lent;
	to->info.heard_us = net_local(p, sim.now_us);
	to->info.received_messages++;
	to->info.received_bytes += out->size;
	p->counters.received_messages++;
	p->counters.received_bytes += out->size;
}

int post_receive(struct post *p, int64_t now_us, struct post_message *out)
{
	struct peer *to;
	struct parcel **of, *x;

	(void)now_us;
	free(p->lent);
	p->lent = NULL;
	if (p->leaving && net_peer_find(p, p->leaving) && !net_peer_find(p, p->leaving)->up)
		post_forget(p, p->leaving);
	p->leaving = 0;
	if (next_event(p, out))
		return 0;
	x = net_first_to_come(p, &to, &of);
	if (!x || x->arrives_us > sim.now_us)
		return -EAGAIN;
	deliver(p, to, x, of, out);
	return 0;
}

void post_keep(struct post *p, struct post_message *m)
{
	if (p->lent == m->owner)
		p->lent = NULL;
}

void post_release(struct post_message *m)
{
	free(m->owner);
	m->owner = NULL;
	m->data = NULL;
	m->size = 0;
}

int post_join(struct post *p, struct post_message *m)
{
	(void)p, (void)m; /* nothing to join: simulated messages are never in pieces */
	return 0;
}

int post_defer(struct post *p, post_peer_id id, enum post_class class, bool deferred)
{
	struct peer *r = net_peer_find(p, id);

	if (!r)
		return -ENOENT;
	r->deferred[class] = deferred;
	return 0;
}

/* ---- information ---- */

int post_peer(const struct post *p, post_peer_id id, struct post_peer_info *out)
{
	struct peer *r = net_peer_find(p, id);
	int64_t alive_us;

	if (!r)
		return -ENOENT;
	net_take_acks(r);
	if (r->other && !net_is_cut(p->process, r->process) &&
	    sim.processes[r->process].asleep_us <= sim.now_us) {
		/* The only frames that the other end has certainly sent are its keep-alive
		 * frames. */
		alive_us = net_local(p, sim.now_us - sim.now_us % KEEP_ALIVE_US);
		if (alive_us > r->info.heard_us && sim.now_us - r->since_us > KEEP_ALIVE_US)
			r->info.heard_us = alive_us;
	}
	*out = r->info;
	out->trouble = out->address = "";
	out->up = r->up;
	out->stalled_us = 0;
	for (int k = 0; k < POST_CLASSES; k++) {
		/* The other end refuses this class now, so the channel does not count as
		 * stalled. */
		if (r->other && r->other->deferred[k])
			r->out[k].moved_us = sim.now_us;
		if (r->out[k].first &&
		    (!out->stalled_us || net_local(p, r->out[k].moved_us) < out->stalled_us))
			out->stalled_us = net_local(p, r->out[k].moved_us);
	}
	out->round_trip_us = out->least_round_trip_us;
	out->round_trip_var_us = out->least_round_trip_us / 4;
	out->rto_us = out->least_round_trip_us ? 2 * out->least_round_trip_us + 10000 :
						 UNKNOWN_RTO_US;
	out->delivery_bytes_per_s = out->least_round_trip_us ? RATE_BYTES_PER_S : 0;
	out->delivery_limited = true;
	out->retained_bytes = out->under_way_bytes = net_retained_bytes(r);
	return 0;
}

post_peer_id post_next_peer(const struct post *p, post_peer_id after)
{
	for (uint32_t i = after ? (after & 0xffff) + 1 : 0; i < PEERS; i++)
		if (p->peers[i].id)
			return p->peers[i].id;
	return 0;
}

int post_transfer(struct post *p, struct post_transfer *out)
{
	for (int i = 0; i < PEERS; i++)
		if (p->peers[i].id)
			net_take_acks(&p->peers[i]);
	if (p->transfers_in - p->transfers_out > POST_TRANSFERS)
		p->transfers_out = p->transfers_in - POST_TRANSFERS;
	if (p->transfers_out == p->transfers_in)
		return -EAGAIN;
	*out = p->transfers[p->transfers_out++ % POST_TRANSFERS];
	return 0;
}

void post_count(const struct post *p, struct post_counters *out)
{
	*out = p->counters;
	out->link.broken = p->broken;
	for (int i = 0; i < PEERS; i++) {
		out->peers += p->peers[i].id != 0;
		out->peers_up += p->peers[i].id && p->peers[i].up;
		out->retained_bytes += p->peers[i].id ? net_retained_bytes(&p->peers[i]) : 0;
		out->link.connections += p->peers[i].id && p->peers[i].other;
	}
}

void post_charge(struct post *p, post_peer_id peer, double frames, int64_t now_us)
{
	(void)p;
	(void)peer;
	(void)frames;
	(void)now_us;
}

void post_limit(struct post *p, size_t message_most_bytes)
{
	(void)p;
	(void)message_most_bytes;
}
