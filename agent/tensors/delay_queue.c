/* delay_queue.c - a binary heap of tensors, ordered by their time of departure. The queue
 * emulates the delays of a network on one machine. */
#include "agent/tensors/delay_queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"

struct place {
	struct parcel *parcel;
	/* Number of parcels that were added before this parcel. If two parcels have equal times,
	 * the parcel with the lower number leaves first. */
	uint64_t number;
};

struct delay_queue {
	struct place *heap;
	size_t n, room;
	uint64_t next;
};

void parcel_free(struct parcel *p)
{
	body_drop(p->body);
	p->body = NULL;
}

size_t parcel_bytes(const struct parcel *p)
{
	return p->body ? p->body->bytes : 0;
}

/* Returns the time from which the parcel may leave the queue; INT64_MAX: the parcel's body is not
 * ready, so the time is not known yet. */
static int64_t leaves_us(const struct parcel *p)
{
	return p->body && !p->body->ready ? INT64_MAX : p->due_us;
}

struct delay_queue *delay_queue_new(void)
{
	struct delay_queue *h = alloc_new(sizeof(*h));

	return h;
}

void delay_queue_free(struct delay_queue *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n; i++) {
		parcel_free(h->heap[i].parcel);
		free(h->heap[i].parcel);
	}
	free(h->heap);
	free(h);
}

static bool sooner(const struct place *a, const struct place *b)
{
	if (leaves_us(a->parcel) != leaves_us(b->parcel))
		return leaves_us(a->parcel) < leaves_us(b->parcel);
	return a->number < b->number;
}

static void swap(struct place *a, struct place *b)
{
	struct place t = *a;

	*a = *b;
	*b = t;
}

static void rise(struct delay_queue *h, size_t i)
{
	while (i > 0 && sooner(&h->heap[i], &h->heap[(i - 1) / 2])) {
		swap(&h->heap[i], &h->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
}

static void sink(struct delay_queue *h, size_t i)
{
	for (;;) {
		size_t least = i, child = 2 * i + 1;

		if (child < h->n && sooner(&h->heap[child], &h->heap[least]))
			least = child;
		if (child + 1 < h->n && sooner(&h->heap[child + 1], &h->heap[least]))
			least = child + 1;
		if (least == i)
			return;
		swap(&h->heap[i], &h->heap[least]);
		i = least;
	}
}

int delay_queue_add(struct delay_queue *h, const struct parcel *p)
{
	struct parcel *own = malloc(sizeof(*own));

	if (!own || !array_grow(&h->heap, &h->room, h->n + 1, sizeof(*h->heap))) {
		struct parcel lost = *p;

		free(own);
		parcel_free(&lost);
		return -ENOMEM;
	}
	*own = *p;
	h->heap[h->n].parcel = own;
	h->heap[h->n].number = h->next++;
	rise(h, h->n++);
	return 0;
}

int64_t delay_queue_deadline_us(const struct delay_queue *h)
{
	return h->n ? leaves_us(h->heap[0].parcel) : INT64_MAX;
}

static void heapify(struct delay_queue *h)
{
	for (size_t i = h->n / 2 + 1; i-- > 0;)
		sink(h, i);
}

void delay_queue_ready(struct delay_queue *h, const struct body *body)
{
	assert(body->ready);
	heapify(h);
}

int delay_queue_take(struct delay_queue *h, int64_t now_us, struct parcel *p)
{
	if (h->n == 0 || leaves_us(h->heap[0].parcel) > now_us)
		return -EAGAIN;
	*p = *h->heap[0].parcel;
	free(h->heap[0].parcel);
	h->heap[0] = h->heap[--h->n];
	sink(h, 0);
	return 0;
}

size_t delay_queue_drop(struct delay_queue *h,
			bool (*unwanted)(const struct parcel *p, const void *context),
			const void *context)
{
	size_t kept = 0, n = h->n;

	for (size_t i = 0; i < n; i++) {
		if (unwanted(h->heap[i].parcel, context)) {
			parcel_free(h->heap[i].parcel);
			free(h->heap[i].parcel);
		} else {
			h->heap[kept++] = h->heap[i];
		}
	}
	h->n = kept;
	heapify(h);
	return n - kept;
}

bool delay_queue_any(const struct delay_queue *h,
		     bool (*wanted)(const struct parcel *p, const void *context),
		     const void *context)
{
	for (size_t i = 0; i < h->n; i++)
		if (wanted(h->heap[i].parcel, context))
			return true;
	return false;
}

size_t delay_queue_count(const struct delay_queue *h)
{
	return h->n;
}
