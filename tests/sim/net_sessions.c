/* net_sessions.c - sessions between posts: how they begin, end and continue. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/net.h"

/* Adds an event that post_receive gives from this time on. */
static void add_event(struct post *p, struct post_message m, int64_t at_us)
{
	if (p->n_events == PEERS)
		return;
	p->events[p->n_events++] = (struct event){ m, at_us };
	sim_wake(p->process, at_us);
}

void net_unjoin(struct peer *r)
{
	struct peer *s = r->other;

	if (!s)
		return;
	net_lose_parcels(r);
	net_lose_parcels(s);
	r->other = s->other = NULL;
	r->silent_us = s->silent_us = sim.now_us;
}

void net_go_down(struct peer *r, enum link_reason reason)
{
	if (!r->up)
		return;
	r->up = false;
	sim_note("%s: peer %u is down: %s", sim_name(r->post->process), r->id,
		 link_reason_text(reason));
	add_event(r->post,
		  (struct post_message){ .kind = POST_DOWN, .peer = r->id, .reason = reason },
		  sim.now_us);
}

void net_connect_soon(struct peer *r, int64_t in_us)
{
	if (!r->dialed)
		return;
	r->connect_us = sim.now_us + in_us;
	sim_wake(r->post->process, r->connect_us);
}

struct post *net_listener_at(const char *address)
{
	for (int i = 0; i < POSTS; i++)
		if (net.posts[i] && strcmp(net.posts[i]->bound, address) == 0)
			return net.posts[i];
	return NULL;
}

struct peer *net_peer_find(const struct post *p, post_peer_id id)
{
	const struct peer *r = id ? &p->peers[id & 0xffff] : NULL;

	return r && (id & 0xffff) < PEERS && r->id == id ? (struct peer *)r : NULL;
}

struct peer *net_peer_new(struct post *p, bool dialed)
{
	for (uint32_t i = 0; i < PEERS; i++) {
		struct peer *r = &p->peers[i];

		if (r->id)
			continue;
		*r = (struct peer){ .id = (uint32_t)++p->uses << 16 | i,
				    .post = p,
				    .dialed = dialed,
				    .connect_us = INT64_MAX,
				    .silent_us = INT64_MAX,
				    .pong_us = { INT64_MAX, INT64_MAX } };
		r->info.dialed = dialed;
		r->own_instance = rng_next(&sim.rng);
		for (int k = 0; k < POST_CLASSES; k++)
			r->out[k].end = &r->out[k].first;
		return r;
	}
	return NULL;
}

void net_peer_free(struct peer *r)
{
	net_unjoin(r);
	net_drop_parcels(r);
	net_list_free(&r->lossy);
	net_list_free(&r->left);
	r->id = 0;
}

/* Returns the listening post's peer for a dialing post. Each key has one peer, but each console has
 * a peer of its own. */
static struct peer *listening_peer(struct post *p, const struct keys_entry *e, uint64_t instance)
{
	bool many =
		((POST_EPHEMERAL_ROLES | p->options.shared_roles) & KEYS_ROLE_BIT(e->role)) != 0;

	for (uint32_t i = 0; i < PEERS; i++) {
		struct peer *r = &p->peers[i];

		if (r->id && !r->dialed && keys_equal(&r->info.key, &e->key) &&
		    (!many || r->instance == instance))
			return r;
	}
	return net_peer_new(p, false);
}

/* Begins a session at one end. */
static void begin_session(struct peer *r, uint64_t instance, uint32_t process, bool same,
			  int64_t at_us)
{
	bool was_up = r->up, restarted = r->known && !same;
	uint64_t lost = 0;

	r->up = r->known = true;
	r->instance = r->info.incarnation = instance;
	r->process = process;
	r->since_us = at_us;
	r->connect_us = r->silent_us = INT64_MAX;
	r->info.heard_us = net_local(r->post, at_us);
	memset(r->info.carried, 0, sizeof(r->info.carried));
	net_list_free(&r->left);
	if (restarted)
		lost = net_drop_parcels(r);
	if (lost > 0)
		add_event(r->post,
			  (struct post_message){ .kind = POST_LOST, .peer = r->id, .lost = lost },
			  at_us);
	if (!was_up || restarted)
		add_event(r->post,
			  (struct post_message){
				  .kind = POST_UP, .peer = r->id, .restarted = restarted },
			  at_us);
}

/* Acknowledges the messages that the previous session has delivered, and sends the other messages
 * again. */
static void send_again(struct peer *r)
{
	for (int k = 0; k < POST_CLASSES; k++)
		for (struct parcel *x = r->out[k].first; x; x = x->next)
			if (x->delivered)
				x->acked_us = sim.now_us + net_delay(r);
			else
				net_dispatch(r, x);
}

static void join(struct peer *d, struct post *p, const struct keys_entry *e)
{
	struct peer *l = listening_peer(p, e, d->own_instance);
	bool same;

	if (!l)
		return;
	same = l->known && l->instance == d->own_instance;
	if (l->other && l->other != d) {
		struct peer *old = l->other;

		net_unjoin(l);
		net_go_down(old, LINK_SUPERSEDED);
		net_connect_soon(old, sim_draw(200000, 1000000));
	}
	net_unjoin(l);
	net_unjoin(d);
	if (!same && l->known)
		l->own_instance = rng_next(&sim.rng);
	l->info.key = e->key;
	l->info.role = e->role;
	snprintf(l->info.name, sizeof(l->info.name), "%s", e->name);
	l->ephemeral = (POST_EPHEMERAL_ROLES & KEYS_ROLE_BIT(e->role)) != 0;
	sim_note("%s: session with %s, %s", sim_name(d->post->process), sim_name(p->process),
		 !d->known				     ? "the first" :
		 same && d->instance == l->own_instance ? "the same" :
							  "a new process");
	begin_session(l, d->own_instance, d->post->process, same,
		      sim.now_us + sim_delay(net_delay(d)));
	begin_session(d, l->own_instance, p->process, d->instance == l->own_instance, sim.now_us);
	l->other = d;
	d->other = l;
	send_again(d);
	send_again(l);
}

static void try_to_connect(struct peer *d)
{
	struct post *p = net_listener_at(d->address);
	const struct keys_entry *e;

	d->connect_us = INT64_MAX;
	if (!p || net_is_cut(d->post->process, p->process) ||
	    sim.processes[p->process].asleep_us > sim.now_us ||
	    !keys_equal(keys_public_of(p->options.identity), &d->info.key)) {
		net_connect_soon(d, sim_draw(100000, 300000));
		return;
	}
	e = keys_list_find(p->options.admitted, keys_public_of(d->post->options.identity));
	if (!e || (p->options.roles && !(p->options.roles & KEYS_ROLE_BIT(e->role)))) {
		enum link_reason why = e ? LINK_ROLE : LINK_NOT_ADMITTED;

		p->counters.link.refused[why]++;
		add_event(d->post,
			  (struct post_message){
				  .kind = POST_REFUSED, .peer = d->id, .reason = why },
			  sim.now_us);
		net_connect_soon(d, sim_draw(300000, 1000000));
		return;
	}
	join(d, p, e);
}

void net_tick_peer(struct peer *r)
{
	net_take_acks(r);
	for (int large = 0; large < 2; large++) {
		if (r->pong_us[large] > sim.now_us)
			continue;
		r->info.heard_us = net_local(r->post, r->pong_us[large]);
		r->info.least_round_trip_us = r->pong_us[large] - r->ping_us[large];
		r->pong_us[large] = INT64_MAX;
		if (large)
			r->info.large_passed_us = net_local(r->post, r->ping_us[large]);
	}
	if (r->other && r->silent_us != INT64_MAX && !net_is_cut(r->post->process, r->process))
		r->silent_us = INT64_MAX; /* the cut has ended */
	if (r->up && r->silent_us != INT64_MAX && r->silent_us + SILENT_US <= sim.now_us) {
		net_unjoin(r);
		net_go_down(r, LINK_SILENT);
		r->post->counters.link.refused[LINK_SILENT]++;
		net_connect_soon(r, sim_draw(1000, 100000));
	}
	if (r->connect_us <= sim.now_us)
		try_to_connect(r);
}

void net_look_at_keys(struct post *p)
{
	if (!p->options.admitted || keys_list_version(p->options.admitted) == p->keys_seen)
		return;
	p->keys_seen = keys_list_version(p->options.admitted);
	for (int i = 0; i < PEERS; i++) {
		struct peer *r = &p->peers[i], *s = r->id ? r->other : NULL;

		if (!r->id || r->dialed || !r->up ||
		    keys_list_find(p->options.admitted, &r->info.key))
			continue;
		net_unjoin(r);
		net_go_down(r, LINK_NOT_ADMITTED);
		if (s) {
			net_go_down(s, LINK_NOT_ADMITTED);
			net_connect_soon(s, sim_draw(1000, 100000));
		}
	}
}
