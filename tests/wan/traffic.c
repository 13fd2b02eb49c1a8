/* traffic.c - computes when packets arrive in a network of links with bandwidths, latencies and
 * losses.
 *
 * When a packet is sent, its times on the uplink and on the link are known. Its arrival at the end
 * of the link is computed at once, and each link has a list of packets in the order of these
 * arrivals. The time on the downlink is not known yet, because packets of other links may arrive
 * earlier. If the receiver's downlink is limited, a packet at the end of its link enters a second
 * list: that of the downlink. A heap contains all lists that are not empty, ordered by the time of
 * their first packet.
 */
#include "tests/wan/traffic.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"

#define SLAB 256 /* number of packets that are allocated together */

struct list {
	struct traffic_packet *first, *last;
	int64_t last_due_ns; /* due time of the packet that entered the list last */
	/* Time at which the link or downlink can begin to send another packet. */
	int64_t free_ns;
	size_t at;           /* index of the list in the heap, if the list is not empty */
	bool is_downlink;    /* true: the list of a node's downlink; false: the list of a link */
};

struct direction {
	struct traffic_link link;
	struct list list;
	struct rng rng;
};

struct place {
	struct traffic_node node;
	int64_t up_free_ns;
	struct list down;
};

struct slab {
	struct slab *next;
	struct traffic_packet packets[SLAB];
};

struct traffic {
	struct traffic_options options;
	int64_t queue_ns;
	struct direction *directions; /* (n_nodes, n_nodes) links, from row to column */
	struct place *places; /* the n_nodes nodes */
	struct list **heap;   /* the n_heap lists that are not empty */
	size_t n_heap, held;
	struct slab *slabs;
	struct traffic_packet *unused;
};

static int64_t nanoseconds(double s)
{
	return (int64_t)(s * 1e9 + 0.5);
}

struct traffic *traffic_new(const struct traffic_options *o)
{
	size_t n = o->n_nodes, pairs = n * n;
	struct traffic *t = alloc_new(sizeof(*t));

	t->options = *o;
	t->queue_ns = nanoseconds(o->queue_s);
	t->directions = alloc_array(pairs, sizeof(*t->directions));
	t->places = alloc_array(n, sizeof(*t->places));
	t->heap = alloc_array(pairs + n, sizeof(*t->heap));
	for (size_t i = 0; i < pairs; i++) {
		t->directions[i].link.latency_s = -1;
		rng_init_stream(&t->directions[i].rng, o->seed, i);
	}
	for (size_t i = 0; i < n; i++)
		t->places[i].down.is_downlink = true;
	return t;
}

void traffic_free(struct traffic *t)
{
	if (!t)
		return;
	while (t->slabs) {
		struct slab *next = t->slabs->next;

		free(t->slabs);
		t->slabs = next;
	}
	free(t->directions);
	free(t->places);
	free(t->heap);
	free(t);
}

static struct direction *direction_of(struct traffic *t, uint32_t from, uint32_t to)
{
	return &t->directions[(size_t)from * t->options.n_nodes + to];
}

struct traffic_link *traffic_link(struct traffic *t, uint32_t from, uint32_t to)
{
	return &direction_of(t, from, to)->link;
}

struct traffic_node *traffic_node(struct traffic *t, uint32_t node)
{
	return &t->places[node].node;
}

size_t traffic_held(const struct traffic *t)
{
	return t->held;
}

/* ---- packets ---- */

struct traffic_packet *traffic_packet_new(struct traffic *t)
{
	struct traffic_packet *p;

	if (!t->unused) {
		struct slab *s = alloc_new(sizeof(*s));

		s->next = t->slabs;
		t->slabs = s;
		for (int i = 0; i < SLAB; i++) {
			s->packets[i].next = t->unused;
			t->unused = &s->packets[i];
		}
	}
	p = t->unused;
	t->unused = p->next;
	return p;
}

void traffic_packet_free(struct traffic *t, struct traffic_packet *p)
{
	p->next = t->unused;
	t->unused = p;
}

/* ---- lists and the heap of lists ---- */

static int64_t due_of(const struct list *l)
{
	return l->first->due_ns;
}

static void put_list(struct traffic *t, struct list *l, size_t at)
{
	t->heap[at] = l;
	l->at = at;
}

static void raise_list(struct traffic *t, struct list *l, size_t at)
{
	while (at > 0 && due_of(t->heap[(at - 1) / 2]) > due_of(l)) {
		put_list(t, t->heap[(at - 1) / 2], at);
		at = (at - 1) / 2;
	}
	put_list(t, l, at);
}

static void sink_list(struct traffic *t, struct list *l, size_t at)
{
	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < t->n_heap && due_of(t->heap[child + 1]) < due_of(t->heap[child]))
			child++;
		if (child >= t->n_heap || due_of(t->heap[child]) >= due_of(l))
			break;
		put_list(t, t->heap[child], at);
		at = child;
	}
	put_list(t, l, at);
}

static void append_packet(struct traffic *t, struct list *l, struct traffic_packet *p,
			  int64_t due_ns)
{
	p->due_ns = l->last_due_ns = due_ns > l->last_due_ns ? due_ns : l->last_due_ns;
	p->next = NULL;
	if (l->first) {
		l->last->next = p;
		l->last = p;
		return;
	}
	l->first = l->last = p;
	raise_list(t, l, t->n_heap++);
}

/* Removes the packet with the earliest due time in any of the lists, and returns this packet. */
static struct traffic_packet *take_packet(struct traffic *t)
{
	struct list *l = t->heap[0];
	struct traffic_packet *p = l->first;

	l->first = p->next;
	if (l->first)
		sink_list(t, l, 0);
	else if (--t->n_heap > 0)
		sink_list(t, t->heap[t->n_heap], 0);
	return p;
}

/* ---- transit ---- */

/* Sends a packet of `size` bytes through a queue with this bandwidth. *free_ns: time at which the
 * queue is empty. Returns the time at which the packet's last byte has been sent, or
 * TRAFFIC_NEVER if the packet would wait too long. A bandwidth of 0 means no limit. */
static int64_t queue_packet(const struct traffic *t, int64_t *free_ns, double bytes_per_s,
			    size_t size, int64_t now_ns)
{
	int64_t start_ns = *free_ns > now_ns ? *free_ns : now_ns;

	if (bytes_per_s <= 0)
		return now_ns;
	if (start_ns - now_ns > t->queue_ns)
		return TRAFFIC_NEVER;
	*free_ns = start_ns + nanoseconds((double)size / bytes_per_s);
	return *free_ns;
}

static bool is_connected(struct traffic *t, const struct traffic_packet *p)
{
	const struct traffic_link *l = traffic_link(t, p->from, p->to);

	return l->latency_s >= 0 && l->bandwidth_bytes_per_s > 0 && !l->cut &&
	       !t->places[p->from].node.away && !t->places[p->to].node.away;
}

static void drop_packet(struct traffic *t, struct traffic_packet *p, uint64_t *count)
{
	(*count)++;
	traffic_packet_free(t, p);
}

/* Draws two random numbers for every packet, even if the packet needs only one number. A change
 * of a link's loss therefore does not change the random numbers of later packets. */
void traffic_send(struct traffic *t, struct traffic_packet *p, int64_t now_ns)
{
	struct direction *direction = direction_of(t, p->from, p->to);
	struct traffic_link *l = &direction->link;
	struct place *place = &t->places[p->from];
	double lost = rng_uniform(&direction->rng), late = 2 * rng_uniform(&direction->rng) - 1;
	int64_t at_ns;

	l->sent_packets++;
	l->sent_bytes += p->size;
	if (!is_connected(t, p)) {
		drop_packet(t, p, &l->cut_off);
		return;
	}
	if (lost < l->loss) {
		drop_packet(t, p, &l->lost);
		return;
	}
	at_ns = TRAFFIC_NEVER;
	if (t->held < t->options.held_max)
		at_ns = queue_packet(t, &place->up_free_ns, place->node.up_bytes_per_s, p->size,
				     now_ns);
	if (at_ns != TRAFFIC_NEVER)
		at_ns = queue_packet(t, &direction->list.free_ns, l->bandwidth_bytes_per_s, p->size,
				     at_ns);
	if (at_ns == TRAFFIC_NEVER) {
		drop_packet(t, p, &l->overflowed);
		return;
	}
	t->held++;
	append_packet(t, &direction->list, p,
		      at_ns + nanoseconds(l->latency_s * (1 + l->jitter * late)));
}

int64_t traffic_next_ns(const struct traffic *t)
{
	return t->n_heap ? due_of(t->heap[0]) : TRAFFIC_NEVER;
}

/* Puts a packet that comes from a link into the downlink of the receiver, if the downlink is
 * limited or still has packets. Otherwise the packet has arrived, and the result is false. */
static bool enter_downlink(struct traffic *t, struct traffic_packet *p)
{
	struct place *place = &t->places[p->to];
	int64_t at_ns;

	if (place->node.down_bytes_per_s <= 0 && !place->down.first)
		return false;
	at_ns = queue_packet(t, &place->down.free_ns, place->node.down_bytes_per_s, p->size,
			     p->due_ns);
	if (at_ns == TRAFFIC_NEVER) {
		t->held--;
		drop_packet(t, p, &traffic_link(t, p->from, p->to)->overflowed);
	} else {
		append_packet(t, &place->down, p, at_ns);
	}
	return true;
}

struct traffic_packet *traffic_arrive(struct traffic *t, int64_t now_ns)
{
	while (traffic_next_ns(t) <= now_ns) {
		bool is_downlink = t->heap[0]->is_downlink;
		struct traffic_packet *p = take_packet(t);
		struct traffic_link *l = traffic_link(t, p->from, p->to);

		if (is_connected(t, p) && !is_downlink && enter_downlink(t, p))
			continue;
		t->held--;
		if (!is_connected(t, p)) {
			drop_packet(t, p, &l->cut_off);
			continue;
		}
		l->arrived_packets++;
		l->arrived_bytes += p->size;
		return p;
	}
	return NULL;
}
