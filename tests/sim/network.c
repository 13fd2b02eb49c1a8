/* Posts in memory, with the promises of wire/post.h, in place of wire/post*.c.
 *
 * A session joins two peers, the dialing post's and the listening one's, by `other`. What is sent is kept in the
 * sender's channel of its class until it was delivered and that is known; it arrives in the order sent within
 * its class and whenever it likes among classes and peers. A session that ends loses what is on its way; the next
 * one of the same two processes sends it again, one of another process drops it (POST_LOST). Who dies leaves behind
 * what had left it by then. There are no frames, windows or bandwidths: they have tests of their own.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"
#include "wire/msg.h"
#include "wire/post.h"

enum {
	POSTS = 2 * SIM_PROCESSES, PEERS = 64,
	SILENT_US = 5000000,    /* as post_options has it */
	KEEP_ALIVE_US = 1250000,
	UNKNOWN_RTO_US = 1000000,
	RESENT_US = 200000      /* after a cut, or a lost packet */
};
#define RATE_BYTES_PER_S 50000000

struct parcel {
	struct parcel *next;
	enum post_class class;
	bool lossy, delivered;
	size_t size;
	uint8_t *data;
	int64_t queued_us, arrives_us, acked_us; /* world; INT64_MAX not yet known */
};

struct channel {
	struct parcel *first, **end; /* sent, and not known to have come */
	int64_t last_us;             /* the last one's arrival */
};

struct peer {
	post_peer_id id; /* 0: free */
	struct post *post;
	struct peer *other; /* whom the session joins; NULL there is nobody at its other end */
	bool dialed, up, known, ephemeral;
	char address[LINK_ADDRESS_SIZE]; /* dialed */
	struct post_peer_info info;
	uint64_t own_instance, instance; /* the records' numbers here and there: the same two go on where they were */
	uint32_t process;                /* at the other end, once up */
	bool deferred[POST_CLASSES];
	struct channel out[POST_CLASSES];
	struct parcel *lossy;    /* under way to the other end */
	struct parcel *left;     /* of one that died, under way to here, in order of arrival */
	int64_t since_us;        /* the session's beginning here */
	int64_t connect_us;      /* dialed: the next try; INT64_MAX none */
	int64_t silent_us;       /* nothing has come since the other end died or was cut off; INT64_MAX it has */
	int64_t pong_us, ping_us; /* a probe is answered, and when it left; INT64_MAX none */
};

struct event {
	struct post_message what;
	int64_t at_us;
};

struct post {
	uint32_t process;
	struct post_options options;
	char bound[LINK_ADDRESS_SIZE]; /* "" does not listen */
	struct peer peers[PEERS];
	uint16_t uses;
	struct event events[PEERS];
	uint32_t n_events;
	struct post_transfer transfers[POST_TRANSFERS];
	uint64_t transfers_in, transfers_told;
	uint8_t *lent;
	post_peer_id leaving;
	uint64_t keys_seen, broken;
	struct post_counters counters;
};

static struct {
	struct post *posts[POSTS];
	int64_t way_us[SIM_PROCESSES][SIM_PROCESSES], cut_us[SIM_PROCESSES][SIM_PROCESSES];
	double loss;
	uint32_t ports;
	bool silently[SIM_PROCESSES]; /* it dies so */
	bool flip[SIM_PROCESSES]; /* a bit, in the next tensor that suits */
} net;

/* ---- the world's side ---- */

void network_begin(int64_t usual_us, double loss)
{
	memset(&net, 0, sizeof(net));
	net.loss = loss;
	for (uint32_t i = 0; i < SIM_PROCESSES; i++)
		for (uint32_t k = 0; k <= i; k++)
			net.way_us[i][k] = net.way_us[k][i] = sim_draw(usual_us / 4, usual_us * 2);
}

static bool is_cut(uint32_t a, uint32_t b)
{
	return net.cut_us[a][b] > sim.now_us;
}

void network_flip(uint32_t process)
{
	net.flip[process] = true;
}

static int64_t local(const struct post *p, int64_t world_us)
{
	return world_us == INT64_MAX ? INT64_MAX : world_us + sim.processes[p->process].clock_offset_us;
}

static int64_t way(const struct peer *from)
{
	return net.way_us[from->post->process][from->process];
}

/* ---- parcels ---- */

static void parcel_free(struct parcel *x)
{
	if (!x)
		return;
	free(x->data);
	free(x);
}

static void list_free(struct parcel **list)
{
	while (*list) {
		struct parcel *x = *list;

		*list = x->next;
		parcel_free(x);
	}
}

static struct parcel *parcel_new(const struct post_part *parts, size_t n)
{
	struct parcel *x = calloc(1, sizeof(*x));
	size_t at = 0;

	if (!x)
		return NULL;
	for (size_t i = 0; i < n; i++)
		x->size += parts[i].size;
	x->data = malloc(x->size + 1);
	if (!x->data) {
		free(x);
		return NULL;
	}
	for (size_t i = 0; i < n; at += parts[i++].size)
		if (parts[i].size)
			memcpy(x->data + at, parts[i].data, parts[i].size);
	x->queued_us = sim.now_us;
	x->arrives_us = x->acked_us = INT64_MAX;
	return x;
}

static size_t retained_bytes(const struct peer *r)
{
	size_t bytes = 0;

	for (int k = 0; k < POST_CLASSES; k++)
		for (const struct parcel *x = r->out[k].first; x; x = x->next)
			bytes += x->size;
	return bytes;
}

/* On its way, if there is one: after what left before in its class, and after what keeps it. */
static void dispatch(struct peer *from, struct parcel *x)
{
	struct channel *c = &from->out[x->class];
	int64_t at_us = sim.now_us + sim.ahead_us + sim_delay(way(from)), cut_us;

	if (!from->other)
		return;
	cut_us = net.cut_us[from->post->process][from->process];
	if (cut_us > sim.now_us)
		at_us = cut_us + sim_draw(1, RESENT_US);
	else if (sim_chance(net.loss))
		at_us += sim_draw(way(from), RESENT_US);
	if (at_us <= c->last_us)
		at_us = c->last_us + 1;
	if (at_us < from->other->since_us)
		at_us = from->other->since_us;
	c->last_us = x->arrives_us = at_us;
	sim_wake(from->process, at_us);
}

/* ---- sessions ---- */

static void tell(struct post *p, struct post_message m, int64_t at_us)
{
	if (p->n_events == PEERS)
		return;
	p->events[p->n_events++] = (struct event){ m, at_us };
	sim_wake(p->process, at_us);
}

/* What was under way from here is not; what has come is known there, though not yet here. */
static void lose_parcels(struct peer *from)
{
	list_free(&from->lossy);
	for (int k = 0; k < POST_CLASSES; k++) {
		from->out[k].last_us = 0;
		for (struct parcel *x = from->out[k].first; x; x = x->next)
			x->arrives_us = x->acked_us = INT64_MAX;
	}
}

static uint64_t drop_parcels(struct peer *r)
{
	uint64_t n = 0;

	for (int k = 0; k < POST_CLASSES; k++) {
		struct channel *c = &r->out[k];

		for (struct parcel *x = c->first; x; x = x->next)
			n++;
		list_free(&c->first);
		c->end = &c->first;
		c->last_us = 0;
	}
	return n;
}

static void unjoin(struct peer *r)
{
	struct peer *s = r->other;

	if (!s)
		return;
	lose_parcels(r);
	lose_parcels(s);
	r->other = s->other = NULL;
	r->silent_us = s->silent_us = sim.now_us;
}

static void go_down(struct peer *r, enum link_reason reason)
{
	if (!r->up)
		return;
	r->up = false;
	sim_note("%s: peer %u is down: %s", sim_name(r->post->process), r->id, link_reason_text(reason));
	tell(r->post, (struct post_message){ .kind = POST_DOWN, .peer = r->id, .reason = reason }, sim.now_us);
}

static void connect_soon(struct peer *r, int64_t in_us)
{
	if (!r->dialed)
		return;
	r->connect_us = sim.now_us + in_us;
	sim_wake(r->post->process, r->connect_us);
}

static struct post *listener_at(const char *address)
{
	for (int i = 0; i < POSTS; i++)
		if (net.posts[i] && strcmp(net.posts[i]->bound, address) == 0)
			return net.posts[i];
	return NULL;
}

static struct peer *peer_find(const struct post *p, post_peer_id id)
{
	const struct peer *r = id ? &p->peers[id & 0xffff] : NULL;

	return r && (id & 0xffff) < PEERS && r->id == id ? (struct peer *)r : NULL;
}

static struct peer *peer_new(struct post *p, bool dialed)
{
	for (uint32_t i = 0; i < PEERS; i++) {
		struct peer *r = &p->peers[i];

		if (r->id)
			continue;
		*r = (struct peer){ .id = (uint32_t)++p->uses << 16 | i, .post = p, .dialed = dialed,
				    .connect_us = INT64_MAX, .silent_us = INT64_MAX, .pong_us = INT64_MAX };
		r->info.dialed = dialed;
		r->own_instance = rng_next(&sim.rng);
		for (int k = 0; k < POST_CLASSES; k++)
			r->out[k].end = &r->out[k].first;
		return r;
	}
	return NULL;
}

static void peer_free(struct peer *r)
{
	unjoin(r);
	drop_parcels(r);
	list_free(&r->lossy);
	list_free(&r->left);
	r->id = 0;
}

/* The listening post's record of who dials: a key has one, but for consoles. */
static struct peer *record_of(struct post *p, const struct keys_entry *e, uint64_t instance)
{
	bool many = e->role == KEYS_CONSOLE || e->role == KEYS_WATCHER;

	for (uint32_t i = 0; i < PEERS; i++) {
		struct peer *r = &p->peers[i];

		if (r->id && !r->dialed && keys_equal(&r->info.key, &e->key) && (!many || r->instance == instance))
			return r;
	}
	return peer_new(p, false);
}

/* One end of a new session. */
static void begin_session(struct peer *r, uint64_t instance, uint32_t process, bool same, int64_t at_us)
{
	bool was_up = r->up, restarted = r->known && !same;
	uint64_t lost = 0;

	r->up = r->known = true;
	r->instance = r->info.incarnation = instance;
	r->process = process;
	r->since_us = at_us;
	r->connect_us = r->silent_us = INT64_MAX;
	r->info.heard_us = local(r->post, at_us);
	list_free(&r->left);
	if (restarted)
		lost = drop_parcels(r);
	if (lost > 0)
		tell(r->post, (struct post_message){ .kind = POST_LOST, .peer = r->id, .lost = lost }, at_us);
	if (!was_up || restarted)
		tell(r->post, (struct post_message){ .kind = POST_UP, .peer = r->id, .restarted = restarted }, at_us);
}

/* What came is known at last; the rest leaves again. */
static void send_again(struct peer *r)
{
	for (int k = 0; k < POST_CLASSES; k++)
		for (struct parcel *x = r->out[k].first; x; x = x->next)
			if (x->delivered)
				x->acked_us = sim.now_us + way(r);
			else
				dispatch(r, x);
}

static void join(struct peer *d, struct post *p, const struct keys_entry *e)
{
	struct peer *l = record_of(p, e, d->own_instance);
	bool same;

	if (!l)
		return;
	same = l->known && l->instance == d->own_instance;
	if (l->other && l->other != d) {
		struct peer *old = l->other;

		unjoin(l);
		go_down(old, LINK_SUPERSEDED);
		connect_soon(old, sim_draw(200000, 1000000));
	}
	unjoin(l);
	unjoin(d);
	if (!same && l->known)
		l->own_instance = rng_next(&sim.rng);
	l->info.key = e->key;
	l->info.role = e->role;
	snprintf(l->info.name, sizeof(l->info.name), "%s", e->name);
	l->ephemeral = e->role == KEYS_CONSOLE || e->role == KEYS_WATCHER;
	sim_note("%s: session with %s, %s", sim_name(d->post->process), sim_name(p->process),
		 !d->known ? "the first" : same && d->instance == l->own_instance ? "the same" : "a new process");
	begin_session(l, d->own_instance, d->post->process, same, sim.now_us + sim_delay(way(d)));
	begin_session(d, l->own_instance, p->process, d->instance == l->own_instance, sim.now_us);
	l->other = d;
	d->other = l;
	send_again(d);
	send_again(l);
}

static void try_to_connect(struct peer *d)
{
	struct post *p = listener_at(d->address);
	const struct keys_entry *e;

	d->connect_us = INT64_MAX;
	if (!p || is_cut(d->post->process, p->process) || sim.processes[p->process].asleep_us > sim.now_us ||
	    !keys_equal(keys_public_of(p->options.identity), &d->info.key)) {
		connect_soon(d, sim_draw(100000, 300000));
		return;
	}
	e = keys_list_find(p->options.admitted, keys_public_of(d->post->options.identity));
	if (!e || (p->options.roles && !(p->options.roles & KEYS_ROLE_BIT(e->role)))) {
		enum link_reason why = e ? LINK_ROLE : LINK_NOT_ADMITTED;

		p->counters.link.refused[why]++;
		tell(d->post, (struct post_message){ .kind = POST_REFUSED, .peer = d->id, .reason = why }, sim.now_us);
		connect_soon(d, sim_draw(300000, 1000000));
		return;
	}
	join(d, p, e);
}

void network_cut(uint32_t a, uint32_t b, int64_t until_us)
{
	net.cut_us[a][b] = net.cut_us[b][a] = until_us;
	for (int i = 0; i < POSTS; i++)
		for (int k = 0; net.posts[i] && k < PEERS; k++) {
			struct peer *r = &net.posts[i]->peers[k];

			if (r->id && r->up && r->other && r->silent_us == INT64_MAX && is_cut(r->post->process, r->process))
				r->silent_us = sim.now_us;
		}
}

void network_reset(uint32_t a, uint32_t b)
{
	for (int i = 0; i < POSTS; i++)
		for (int k = 0; net.posts[i] && k < PEERS; k++) {
			struct peer *r = &net.posts[i]->peers[k];

			if (!r->id || !r->dialed || !r->other ||
			    !((r->post->process == a && r->process == b) || (r->post->process == b && r->process == a)))
				continue;
			r->other->post->broken++;
			unjoin(r);
			connect_soon(r, sim_draw(1000, 300000));
		}
}

void network_dies(uint32_t process, bool silently)
{
	net.silently[process] = silently;
}

/* What had left of a dying process still comes: of each class up to some moment. */
static void leave_parcels(struct peer *from)
{
	struct peer *to = from->other;

	for (int k = 0; k < POST_CLASSES; k++) {
		struct channel *c = &from->out[k];
		int64_t until_us = sim_chance(0.5) ? INT64_MAX - 1 : sim.now_us + sim_draw(0, way(from));

		while (c->first) {
			struct parcel *x = c->first, **at = &to->left;

			c->first = x->next;
			if (x->delivered || x->arrives_us > until_us) {
				parcel_free(x);
				continue;
			}
			while (*at && (*at)->arrives_us <= x->arrives_us)
				at = &(*at)->next;
			x->next = *at;
			*at = x;
		}
		c->end = &c->first;
	}
}

/* ---- opening and closing ---- */

int post_open(struct post **out, const struct post_options *options, struct error *err)
{
	int i = 0;

	while (i < POSTS && net.posts[i])
		i++;
	if (i == POSTS || !(net.posts[i] = calloc(1, sizeof(*net.posts[i]))))
		return error_set(err, -ENOMEM, "no memory for a post");
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
			leave_parcels(r);
			unjoin(r);
			s->post->broken += !net.silently[p->process];
			connect_soon(s, sim_draw(50000, 300000));
		}
		if (r->id)
			peer_free(r);
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
		snprintf(p->bound, sizeof(p->bound), "%.*s:%u", (int)(n - 2), address, 20000 + ++net.ports % 10000);
	else if (listener_at(address))
		return error_set(err, -EADDRINUSE, "%s: in use", address);
	else
		snprintf(p->bound, sizeof(p->bound), "%s", address);
	if (bound)
		memcpy(bound, p->bound, sizeof(p->bound));
	return 0;
}

int post_dial(struct post *p, const char *address, const struct keys_public *key, post_peer_id *peer,
	      struct error *err)
{
	struct peer *r = peer_new(p, true);

	if (!r)
		return error_set(err, -ENOSPC, "no room for another peer");
	snprintf(r->address, sizeof(r->address), "%s", address);
	r->info.key = *key;
	connect_soon(r, sim_delay(3000));
	*peer = r->id;
	return 0;
}

int post_forget(struct post *p, post_peer_id id)
{
	struct peer *r = peer_find(p, id), *s = r ? r->other : NULL;
	uint32_t n = 0;

	if (!r)
		return -ENOENT;
	if (s) {
		unjoin(r);
		if (s->dialed) { /* it learns that nobody knows its session */
			go_down(s, LINK_UNKNOWN_SESSION);
			connect_soon(s, sim_draw(1000, 100000));
		}
	}
	peer_free(r);
	for (uint32_t i = 0; i < p->n_events; i++)
		if (p->events[i].what.peer != id)
			p->events[n++] = p->events[i];
	p->n_events = n;
	return 0;
}

/* ---- time ---- */

static bool is_coming(const struct parcel *x)
{
	return x && x->arrives_us != INT64_MAX;
}

static struct parcel *next_of(struct peer *from, int class)
{
	struct parcel *x = from->out[class].first;

	while (x && x->delivered)
		x = x->next;
	return x;
}

/* Of all that is under way to a post what comes first: whose it is (*of: a list it is taken from, or NULL). */
static struct parcel *first_to_come(struct post *p, struct peer **to, struct parcel ***of)
{
	struct parcel *best = NULL;

	for (int i = 0; i < PEERS; i++) {
		struct peer *r = &p->peers[i];

		if (!r->id)
			continue;
		if (is_coming(r->left) && (!best || r->left->arrives_us < best->arrives_us)) {
			best = r->left;
			*to = r;
			*of = &r->left;
		}
		if (!r->other)
			continue;
		for (struct parcel **at = &r->other->lossy; *at; at = &(*at)->next)
			if (!best || (*at)->arrives_us < best->arrives_us) {
				best = *at;
				*to = r;
				*of = at;
			}
		for (int k = 0; k < POST_CLASSES; k++) {
			struct parcel *x = r->deferred[k] ? NULL : next_of(r->other, k);

			if (is_coming(x) && (!best || x->arrives_us < best->arrives_us)) {
				best = x;
				*to = r;
				*of = NULL;
			}
		}
	}
	return best;
}

int64_t post_deadline_us(const struct post *p)
{
	struct peer *to;
	struct parcel **of, *x = first_to_come((struct post *)p, &to, &of);
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
		if (r->pong_us < at_us)
			at_us = r->pong_us;
		if (r->up && r->silent_us != INT64_MAX && r->silent_us + SILENT_US < at_us)
			at_us = r->silent_us + SILENT_US;
	}
	return local(p, at_us);
}

/* What is known to have come is kept no more. */
static void take_acks(struct peer *r)
{
	for (int k = 0; k < POST_CLASSES; k++) {
		struct channel *c = &r->out[k];

		while (c->first && c->first->acked_us <= sim.now_us) {
			struct parcel *x = c->first;
			struct post *p = r->post;

			r->info.heard_us = local(p, x->acked_us);
			r->info.least_round_trip_us = 2 * way(r);
			if (k != POST_CLASS_CONTROL)
				p->transfers[p->transfers_in++ % POST_TRANSFERS] = (struct post_transfer){
					.peer = r->id, .class = (enum post_class)k, .bytes = x->size,
					.queued_us = local(p, x->queued_us), .left_us = local(p, x->queued_us),
					.acked_us = local(p, x->acked_us) };
			c->first = x->next;
			if (!c->first)
				c->end = &c->first;
			parcel_free(x);
		}
	}
}

static void tick_peer(struct peer *r)
{
	take_acks(r);
	if (r->pong_us <= sim.now_us) {
		r->info.heard_us = local(r->post, r->pong_us);
		r->info.least_round_trip_us = r->pong_us - r->ping_us;
		r->pong_us = INT64_MAX;
	}
	if (r->other && r->silent_us != INT64_MAX && !is_cut(r->post->process, r->process))
		r->silent_us = INT64_MAX; /* it was cut, and is no more */
	if (r->up && r->silent_us != INT64_MAX && r->silent_us + SILENT_US <= sim.now_us) {
		unjoin(r);
		go_down(r, LINK_SILENT);
		r->post->counters.link.refused[LINK_SILENT]++;
		connect_soon(r, sim_draw(1000, 100000));
	}
	if (r->connect_us <= sim.now_us)
		try_to_connect(r);
}

static void look_at_keys(struct post *p)
{
	if (!p->options.admitted || keys_list_version(p->options.admitted) == p->keys_seen)
		return;
	p->keys_seen = keys_list_version(p->options.admitted);
	for (int i = 0; i < PEERS; i++) {
		struct peer *r = &p->peers[i], *s = r->id ? r->other : NULL;

		if (!r->id || r->dialed || !r->up || keys_list_find(p->options.admitted, &r->info.key))
			continue;
		unjoin(r);
		go_down(r, LINK_NOT_ADMITTED);
		if (s) {
			go_down(s, LINK_NOT_ADMITTED);
			connect_soon(s, sim_draw(1000, 100000));
		}
	}
}

void post_tick(struct post *p, int64_t now_us)
{
	(void)now_us;
	look_at_keys(p);
	for (int i = 0; i < PEERS; i++)
		if (p->peers[i].id)
			tick_peer(&p->peers[i]);
}

int post_fd(const struct post *p)
{
	(void)p;
	return -1;
}

/* ---- sending ---- */

int post_send(struct post *p, post_peer_id id, const struct post_part *parts, size_t n, enum post_flags flags,
	      int64_t now_us)
{
	struct peer *r = peer_find(p, id);
	bool lossy = flags & POST_LOSSY;
	struct parcel *x;

	(void)now_us;
	if (!r)
		return -ENOENT;
	if (lossy && !r->up) {
		p->counters.lossy_dropped++;
		return -ENOTCONN;
	}
	x = parcel_new(parts, n);
	if (!x)
		return -ENOMEM;
	r->info.sent_messages++;
	r->info.sent_bytes += x->size;
	p->counters.sent_messages++;
	p->counters.sent_bytes += x->size;
	sim_sends(p->process, x->data, x->size);
	x->lossy = lossy;
	x->class = (enum post_class)((unsigned)flags >> 1);
	if (!lossy) {
		*r->out[x->class].end = x;
		r->out[x->class].end = &x->next;
		dispatch(r, x);
	} else if (!r->other || is_cut(p->process, r->process) || sim_chance(net.loss)) {
		parcel_free(x);
	} else {
		x->arrives_us = sim.now_us + sim_delay(way(r));
		if (x->arrives_us < r->other->since_us)
			x->arrives_us = r->other->since_us;
		x->next = r->lossy;
		r->lossy = x;
		sim_wake(r->process, x->arrives_us);
	}
	return 0;
}

size_t post_class_room(const struct post *p, post_peer_id id, enum post_class class)
{
	const struct peer *r = peer_find(p, id);
	size_t most = p->options.retained_most_bytes ? p->options.retained_most_bytes : (size_t)256 << 20;

	(void)class;
	return !r || retained_bytes(r) > most ? 0 : most - retained_bytes(r);
}

size_t post_room(const struct post *p, post_peer_id id)
{
	return post_class_room(p, id, POST_CLASS_CONTROL);
}

bool post_idle(const struct post *p, post_peer_id id)
{
	for (int i = 0; i < PEERS; i++) {
		const struct peer *r = &p->peers[i];

		if (r->id && (!id || r->id == id) && retained_bytes(r) > 0)
			return false;
	}
	return true;
}

int post_probe(struct post *p, post_peer_id id, int64_t now_us)
{
	struct peer *r = peer_find(p, id);

	(void)now_us;
	if (!r)
		return -ENOENT;
	if (!r->up)
		return -ENOTCONN;
	if (r->other && !is_cut(p->process, r->process) && !sim_chance(net.loss) && r->pong_us == INT64_MAX) {
		r->ping_us = sim.now_us;
		r->pong_us = sim.now_us + sim_delay(2 * way(r));
	}
	return 0;
}

/* ---- receiving ---- */

static bool next_event(struct post *p, struct post_message *out)
{
	for (uint32_t i = 0; i < p->n_events; i++) {
		const struct peer *r = peer_find(p, p->events[i].what.peer);

		if (p->events[i].at_us > sim.now_us)
			continue;
		*out = p->events[i].what;
		memmove(&p->events[i], &p->events[i + 1], (--p->n_events - i) * sizeof(p->events[0]));
		if (out->kind == POST_DOWN && r && r->ephemeral)
			p->leaving = out->peer;
		return true;
	}
	return false;
}

/* What a machine says of itself is another each time; all else is in the hash. */
static void note_parcel(const struct post *p, const struct peer *from, const struct parcel *x)
{
	enum msg_type type = (enum msg_type)(x->size >= 8 ? x->data[4] | x->data[5] << 8 : 0); /* as in wire/msg.c's envelope */

	sim.delivered++;
	sim_note("%s < %s: %s, %zu bytes, class %d%s", sim_name(p->process), sim_name(from->process), msg_name(type),
		 x->size, x->class, x->lossy ? ", lossy" : "");
	if (type != MSG_HELLO && type != MSG_HEARTBEAT && type != MSG_WELCOME /* the corpus's path */)
		sim_mix(x->data, x->size);
}

static void give(struct post *p, struct peer *to, struct parcel *x, struct parcel **of, struct post_message *out)
{
	note_parcel(p, to, x);
	*out = (struct post_message){ .kind = POST_DATA, .peer = to->id, .size = x->size, .lossy = x->lossy };
	if (of) {
		*of = x->next;
		p->lent = x->data;
		free(x);
	} else { /* a copy: the sender keeps it until it knows */
		p->lent = malloc(x->size + 1);
		if (!p->lent)
			abort();
		memcpy(p->lent, x->data, x->size);
		x->delivered = true;
		x->acked_us = sim.now_us + sim_delay(way(to));
	}
	if (net.flip[p->process] && flip_tensor(p->lent, out->size)) {
		net.flip[p->process] = false;
		sim_note("%s: a bit of that has flipped", sim_name(p->process));
	}
	out->data = out->owner = p->lent;
	to->info.heard_us = local(p, sim.now_us);
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
	if (p->leaving && peer_find(p, p->leaving) && !peer_find(p, p->leaving)->up)
		post_forget(p, p->leaving);
	p->leaving = 0;
	if (next_event(p, out))
		return 0;
	x = first_to_come(p, &to, &of);
	if (!x || x->arrives_us > sim.now_us)
		return -EAGAIN;
	give(p, to, x, of, out);
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

int post_defer(struct post *p, post_peer_id id, enum post_class class, bool deferred)
{
	struct peer *r = peer_find(p, id);

	if (!r)
		return -ENOENT;
	r->deferred[class] = deferred;
	return 0;
}

/* ---- looking ---- */

int post_peer(const struct post *p, post_peer_id id, struct post_peer_info *out)
{
	struct peer *r = peer_find(p, id);
	int64_t alive_us;

	if (!r)
		return -ENOENT;
	take_acks(r);
	if (r->other && !is_cut(p->process, r->process) && sim.processes[r->process].asleep_us <= sim.now_us) {
		alive_us = local(p, sim.now_us - sim.now_us % KEEP_ALIVE_US); /* between which nothing may be said */
		if (alive_us > r->info.heard_us && sim.now_us - r->since_us > KEEP_ALIVE_US)
			r->info.heard_us = alive_us;
	}
	*out = r->info;
	out->up = r->up;
	out->round_trip_us = out->least_round_trip_us;
	out->round_trip_var_us = out->least_round_trip_us / 4;
	out->rto_us = out->least_round_trip_us ? 2 * out->least_round_trip_us + 10000 : UNKNOWN_RTO_US;
	out->delivery_bytes_per_s = out->least_round_trip_us ? RATE_BYTES_PER_S : 0;
	out->delivery_limited = true;
	out->retained_bytes = out->under_way_bytes = retained_bytes(r);
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
			take_acks(&p->peers[i]);
	if (p->transfers_in - p->transfers_told > POST_TRANSFERS)
		p->transfers_told = p->transfers_in - POST_TRANSFERS;
	if (p->transfers_told == p->transfers_in)
		return -EAGAIN;
	*out = p->transfers[p->transfers_told++ % POST_TRANSFERS];
	return 0;
}

void post_count(const struct post *p, struct post_counters *out)
{
	*out = p->counters;
	out->link.broken = p->broken;
	for (int i = 0; i < PEERS; i++) {
		out->peers += p->peers[i].id != 0;
		out->peers_up += p->peers[i].id && p->peers[i].up;
		out->retained_bytes += p->peers[i].id ? retained_bytes(&p->peers[i]) : 0;
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
