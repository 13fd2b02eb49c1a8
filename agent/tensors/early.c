/* What peers send ahead of the controller's word that it belongs to: kept until that word comes.
 *
 * Each peer has a share, as much as it may rightly be ahead by: what it sends in two iterations. Sums are as
 * long as the stage, and may come when this node is busy for long: before the share is full they wait at their sender's.
 * What is above it is dropped, and is no accident (tensors_misfit). No peer can keep another one out: half of the room is anybody's, and of the rest each has its part.
 * What nobody asks for goes when its iteration is over (tensors_take).
 */
#include <stdlib.h>

#include "agent/state.h"

enum {
	PLACE_BYTES = 4096, /* a tensor counts for so many more: small ones must not be without number */
	SHARE_TENSORS = 8   /* activations that are in any share, */
};
#define SHARE_LEAST ((size_t)16 << 20) /* and bytes */

static size_t most_visits(const struct agent *a)
{
	uint32_t n = 0;

	for (int i = 0; i < 2; i++)
		if (a->plans[i].known && a->plans[i].visits > n)
			n = a->plans[i].visits;
	return n + a->evaluation.n;
}

/* A visit has two inputs, of which each comes from one peer; of a sum a part and a slice come from it. */
size_t early_share(const struct agent *a)
{
	size_t activation = links_activation_bytes(a) + PLACE_BYTES, slice = links_slice_bytes(a);
	size_t sum = a->parameters * sizeof(float);
	size_t share = 2 * (2 * most_visits(a) * activation + sum + (sum / slice + 2) * PLACE_BYTES);

	if (share < SHARE_TENSORS * activation)
		share = SHARE_TENSORS * activation;
	if (share < SHARE_LEAST)
		share = SHARE_LEAST;
	return share < EARLY_MOST_BYTES / 2 ? share : EARLY_MOST_BYTES / 2;
}

/* What nobody else can take. */
static size_t own_part(const struct agent *a)
{
	return EARLY_MOST_BYTES / 2 / (a->run.n_nodes ? a->run.n_nodes : 1);
}

static bool fits(const struct agent *a, uint16_t from, size_t bytes)
{
	size_t own = a->peers[from].early_bytes + bytes;

	return own <= early_share(a) && (a->early_bytes + bytes <= EARLY_MOST_BYTES / 2 || own <= own_part(a));
}

/* So that it is time to take no more sums from it. */
static bool crowded(const struct agent *a, uint16_t from)
{
	size_t own = a->peers[from].early_bytes;

	return own > early_share(a) / 2 || (own > own_part(a) / 2 && a->early_bytes > EARLY_MOST_BYTES / 4);
}

static void take_in(struct agent *a, struct peer *p, bool in)
{
	(void)post_defer(a->tensors, p->deferred, POST_CLASS_SUMS, !in);
	if (in)
		p->deferred = 0;
}

void early_let_in(struct agent *a, uint16_t node)
{
	if (a->peers[node].deferred)
		take_in(a, &a->peers[node], true);
}

static bool make_place(struct agent *a)
{
	size_t room = a->room_early ? 2 * a->room_early : 256;
	struct early *list;

	if (a->n_early < a->room_early)
		return true;
	list = realloc(a->early, room * sizeof(list[0]));
	if (!list)
		return false;
	a->early = list;
	a->room_early = room;
	return true;
}

void early_keep(struct agent *a, struct post_message *p, uint16_t from, bool plausible, int64_t now_us)
{
	size_t bytes = p->size + PLACE_BYTES;
	struct peer *peer = &a->peers[from];

	if (!fits(a, from, bytes) || !make_place(a)) {
		a->dropped++;
		tensors_misfit(a, from, now_us);
		return;
	}
	post_keep(a->tensors, p);
	a->early[a->n_early++] = (struct early){ *p, from, plausible };
	a->early_bytes += bytes;
	peer->early_bytes += bytes;
	if (peer->deferred || !crowded(a, from))
		return;
	peer->deferred = p->peer;
	take_in(a, peer, false);
}

static void drop(struct agent *a, struct early *e)
{
	size_t bytes = e->message.size + PLACE_BYTES;

	a->early_bytes -= bytes;
	a->peers[e->from].early_bytes -= bytes;
	post_release(&e->message);
}

static void let_in_who_has_room(struct agent *a)
{
	for (uint32_t i = 0; a->peers && i < a->run.n_nodes; i++)
		if (!crowded(a, (uint16_t)i))
			early_let_in(a, (uint16_t)i);
}

void early_look_again(struct agent *a, int64_t now_us)
{
	size_t kept = 0, n = a->n_early;
	enum fate fate;
	struct msg m;

	for (size_t i = 0; i < n; i++) {
		struct early *e = &a->early[i];

		fate = FATE_REFUSED;
		if (msg_decode(&m, e->message.data, e->message.size) == 0) { /* it did before */
			fate = tensors_take(a, &m, &e->plausible, now_us);
			msg_clear(&m);
		}
		if (fate == FATE_EARLY) {
			a->early[kept++] = *e;
			continue;
		}
		if (fate == FATE_REFUSED)
			tensors_misfit(a, e->from, now_us);
		drop(a, e);
	}
	a->n_early = kept;
	let_in_who_has_room(a);
}

/* Those that are not wanted by anything that stays. */
static void forget_where(struct agent *a, bool (*stays)(const struct agent *a, const struct early *e, uint16_t node),
			 uint16_t node)
{
	size_t kept = 0, n = a->n_early;

	for (size_t i = 0; i < n; i++) {
		if (stays(a, &a->early[i], node)) {
			a->early[kept++] = a->early[i];
			continue;
		}
		a->dropped++;
		drop(a, &a->early[i]);
	}
	a->n_early = kept;
	let_in_who_has_room(a);
}

/* It is not the copy that begins anew. */
static bool for_the_copy(const struct agent *a, const struct early *e, uint16_t node)
{
	struct msg m;
	bool wanted = false;

	(void)node;
	if (msg_decode(&m, e->message.data, e->message.size) == 0) {
		wanted = standby_wants(a, &m.u.tensor);
		msg_clear(&m);
	}
	return wanted;
}

void early_forget(struct agent *a)
{
	forget_where(a, for_the_copy, 0);
}

static bool of_another(const struct agent *a, const struct early *e, uint16_t node)
{
	(void)a;
	return e->from != node;
}

void early_forget_peer(struct agent *a, uint16_t node)
{
	forget_where(a, of_another, node);
}
