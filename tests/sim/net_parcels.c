/* net_parcels.c - messages in transit: when they arrive, when they are acknowledged, and which are
 * lost. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/sim/net.h"

void net_parcel_free(struct parcel *x)
{
	if (!x)
		return;
	free(x->data);
	free(x);
}

void net_list_free(struct parcel **list)
{
	while (*list) {
		struct parcel *x = *list;

		*list = x->next;
		net_parcel_free(x);
	}
}

struct parcel *net_parcel_new(const struct post_part *parts, size_t n)
{
	struct parcel *x = alloc_new(sizeof(*x));
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		x->size += parts[i].size;
	x->data = alloc_new(x->size);
	for (size_t i = 0; i < n; at += parts[i++].size)
		if (parts[i].size)
			memcpy(x->data + at, parts[i].data, parts[i].size);
	x->queued_us = sim.now_us;
	x->arrives_us = x->acked_us = INT64_MAX;
	return x;
}

size_t net_retained_bytes(const struct peer *r)
{
	size_t bytes = 0;

	for (int k = 0; k < POST_CLASSES; k++)
		for (const struct parcel *x = r->out[k].first; x; x = x->next)
			bytes += x->size;
	return bytes;
}

void net_dispatch(struct peer *from, struct parcel *x)
{
	struct channel *c = &from->out[x->class];
	int64_t at_us = sim.now_us + sim.ahead_us + sim_delay(net_delay(from)), cut_us;

	if (!from->other)
		return;
	cut_us = net.cut_us[from->post->process][from->process];
	if (x->class != POST_CLASS_CONTROL &&
	    net.narrow_us[from->post->process][from->process] > cut_us)
		cut_us = net.narrow_us[from->post->process][from->process];
	if (cut_us > sim.now_us)
		at_us = cut_us + sim_draw(1, RESENT_US);
	else if (sim_chance(net.loss))
		at_us += sim_draw(net_delay(from), RESENT_US);
	if (at_us <= c->last_us)
		at_us = c->last_us + 1;
	if (at_us < from->other->since_us)
		at_us = from->other->since_us;
	c->last_us = x->arrives_us = at_us;
	sim_wake(from->process, at_us);
}

void net_lose_parcels(struct peer *from)
{
	net_list_free(&from->lossy);
	for (int k = 0; k < POST_CLASSES; k++) {
		from->out[k].last_us = 0;
		for (struct parcel *x = from->out[k].first; x; x = x->next)
			x->arrives_us = x->acked_us = INT64_MAX;
	}
}

uint64_t net_drop_parcels(struct peer *r)
{
	uint64_t n = 0;

	for (int k = 0; k < POST_CLASSES; k++) {
		struct channel *c = &r->out[k];

		for (struct parcel *x = c->first; x; x = x->next)
			n++;
		net_list_free(&c->first);
		c->end = &c->first;
		c->last_us = 0;
	}
	return n;
}

void net_leave_parcels(struct peer *from)
{
	struct peer *to = from->other;

	for (int k = 0; k < POST_CLASSES; k++) {
		struct channel *c = &from->out[k];
		int64_t until_us = sim_chance(0.5) ? INT64_MAX - 1 :
						     sim.now_us + sim_draw(0, net_delay(from));

		while (c->first) {
			struct parcel *x = c->first, **at = &to->left;

			c->first = x->next;
			if (x->delivered || x->arrives_us > until_us) {
				net_parcel_free(x);
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

struct parcel *net_first_to_come(struct post *p, struct peer **to, struct parcel ***of)
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

void net_take_acks(struct peer *r)
{
	for (int k = 0; k < POST_CLASSES; k++) {
		struct channel *c = &r->out[k];

		while (c->first && c->first->acked_us <= sim.now_us) {
			struct parcel *x = c->first;
			struct post *p = r->post;

			r->info.heard_us = net_local(p, x->acked_us);
			r->info.least_round_trip_us = 2 * net_delay(r);
			if (k != POST_CLASS_CONTROL)
				p->transfers[p->transfers_in++ % POST_TRANSFERS] =
					(struct post_transfer){
						.peer = r->id, .class = (enum post_class)k,
						.bytes = x->size,
						.queued_us = net_local(p, x->queued_us),
						.left_us = net_local(p, x->queued_us),
						.acked_us = net_local(p, x->acked_us) };
			r->info.carried[k] = true;
			c->moved_us = x->acked_us;
			c->first = x->next;
			if (!c->first)
				c->end = &c->first;
			net_parcel_free(x);
		}
	}
}
