/* queue.c - decides which task a node runs next, by the rules of the execution model.
 *
 * The table of microbatches is an array indexed by number: 8192 small entries need no hash table.
 * Few tasks wait at a time (a node's share of one iteration), so a linear scan finds the best task.
 *
 * Invariant: a microbatch holds a slot from the start of its F to the end of its B on this node.
 * If the microbatch restarts earlier and none of its tasks is running, the slot becomes free at
 * once. If one of its tasks is running, the slot becomes free when this task ends.
 */
#include "agent/execution/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { KINDS = 3, NO_SLOT = -1 };

struct entry {
	bool known;
	uint32_t attempt; /* the microbatch's newest attempt */
	uint8_t arrived;  /* a bit for each kind of task that has arrived in the newest attempt */
	/* A bit for each kind of task that has ended since the microbatch's last restart. */
	uint8_t ended;
	/* A bit for each kind of task whose gradient was counted, in any attempt. */
	uint8_t counted;
	int slot;
};

struct slot {
	uint32_t holder; /* microbatch that holds the slot; QUEUE_NOBODY: none */
	int64_t since_us;
};

struct queue {
	struct entry entries[MSG_MICROBATCHES];
	/* Index of each task in the node's priority list; UINT32_MAX: none. */
	uint32_t ranks[KINDS][MSG_MICROBATCHES];
	struct task **waiting;
	size_t n_waiting, room;
	struct task *running;
	/* Microbatch of the running task; if no task runs, of the task that ran last. */
	uint32_t last;
	uint32_t n_slots, held, counts;
	struct slot slots[];
};

void task_free(struct task *t)
{
	if (!t)
		return;
	body_drop(t->owner);
	free(t);
}

static void forget_entries(struct queue *q)
{
	memset(q->entries, 0, sizeof(q->entries));
	for (uint32_t i = 0; i < MSG_MICROBATCHES; i++)
		q->entries[i].slot = NO_SLOT;
	memset(q->ranks, 0xff, sizeof(q->ranks));
}

int queue_new(struct queue **out, uint32_t slots)
{
	struct queue *q = calloc(1, sizeof(*q) + slots * sizeof(q->slots[0]));

	if (!q)
		return -ENOMEM;
	q->n_slots = slots;
	q->last = QUEUE_NOBODY;
	for (uint32_t i = 0; i < slots; i++)
		q->slots[i].holder = QUEUE_NOBODY;
	forget_entries(q);
	*out = q;
	return 0;
}

void queue_free(struct queue *q)
{
	if (!q)
		return;
	for (size_t i = 0; i < q->n_waiting; i++)
		task_free(q->waiting[i]);
	task_free(q->running);
	free(q->waiting);
	free(q);
}

static void release_slot(struct queue *q, int slot)
{
	if (slot == NO_SLOT)
		return;
	assert(q->slots[slot].holder != QUEUE_NOBODY);
	q->slots[slot].holder = QUEUE_NOBODY;
	q->held--;
}

/* Drops the waiting tasks of one microbatch, or of all microbatches (QUEUE_NOBODY). If `evaluate`
 * is true, drops only tasks of evaluations, otherwise only other tasks. */
static void drop_waiting(struct queue *q, uint32_t microbatch, bool evaluate)
{
	size_t kept = 0;

	for (size_t i = 0; i < q->n_waiting; i++) {
		struct task *t = q->waiting[i];

		if (t->evaluate == evaluate &&
		    (microbatch == QUEUE_NOBODY || t->route.microbatch == microbatch))
			task_free(t);
		else
			q->waiting[kept++] = t;
	}
	q->n_waiting = kept;
}

void queue_clear(struct queue *q)
{
	int kept = NO_SLOT;

	drop_waiting(q, QUEUE_NOBODY, false);
	if (q->running && !q->running->evaluate) {
		q->running->stale = true;
		kept = q->running->slot;
	}
	for (uint32_t i = 0; i < q->n_slots; i++)
		if (q->slots[i].holder != QUEUE_NOBODY && (int)i != kept)
			release_slot(q, (int)i);
	q->last = QUEUE_NOBODY;
	forget_entries(q);
}

void queue_clear_evaluations(struct queue *q)
{
	drop_waiting(q, QUEUE_NOBODY, true);
	if (q->running && q->running->evaluate)
		q->running->stale = true;
}

void queue_rank(struct queue *q, const struct msg_rank *ranks, size_t n)
{
	memset(q->ranks, 0xff, sizeof(q->ranks));
	for (size_t i = 0; i < n; i++) {
		uint8_t kind = ranks[i].kind;

		if (ranks[i].microbatch >= MSG_MICROBATCHES || kind >= KINDS)
			continue;
		if (q->ranks[kind][ranks[i].microbatch] == UINT32_MAX)
			q->ranks[kind][ranks[i].microbatch] = (uint32_t)i;
	}
}

bool queue_supersede(struct queue *q, uint32_t microbatch, uint32_t attempt)
{
	struct entry *e = &q->entries[microbatch];

	if (e->known && attempt <= e->attempt)
		return false;
	if (e->known) {
		drop_waiting(q, microbatch, false);
		/* A running task keeps its slot until it ends. */
		if (q->running && !q->running->evaluate && !q->running->stale &&
		    q->running->route.microbatch == microbatch)
			q->running->stale = true;
		else
			release_slot(q, e->slot);
	}
	e->known = true;
	e->attempt = attempt;
	e->arrived = e->ended = 0;
	e->slot = NO_SLOT;
	return true;
}

static void take_route(struct task *t, const struct route *r)
{
	if (!t->evaluate && !t->stale && t->route.microbatch == r->microbatch)
		t->route = *r;
}

bool queue_continue(struct queue *q, const struct route *r)
{
	struct entry *e = &q->entries[r->microbatch];

	if (!e->known || r->attempt <= e->attempt)
		return false;
	e->attempt = r->attempt;
	for (size_t i = 0; i < q->n_waiting; i++)
		take_route(q->waiting[i], r);
	if (q->running)
		take_route(q->running, r);
	return true;
}

static enum queue_verdict judge_task(const struct queue *q, const struct task *t)
{
	const struct entry *e = &q->entries[t->route.microbatch];
	enum task_kind kind = route_kind(&t->route, t->position);
	bool newer = !e->known || t->route.attempt > e->attempt;

	if (t->evaluate)
		return q->n_waiting >= 2 * MSG_MICROBATCHES ? QUEUE_FULL : QUEUE_TAKEN;
	if (!newer && t->route.attempt < e->attempt)
		return QUEUE_OLD;
	if (!newer && e->arrived >> kind & 1)
		return QUEUE_TWICE;
	if (kind != TASK_FORWARD && newer)
		return QUEUE_ORPHAN;
	return QUEUE_TAKEN;
}

enum queue_verdict queue_arrive(struct queue *q, struct task *t)
{
	enum queue_verdict verdict = judge_task(q, t);

	if (verdict != QUEUE_TAKEN)
		return verdict;
	if (q->n_waiting == q->room) {
		q->room = q->room ? 2 * q->room : 64;
		q->waiting = alloc_resize(q->waiting, q->room, sizeof(struct task *));
	}
	t->attempt = t->route.attempt;
	t->kind = route_kind(&t->route, t->position);
	t->blocker = QUEUE_NOBODY;
	t->announced = t->first || t->evaluate;
	t->slot = NO_SLOT;
	t->count = t->stale = false;
	if (!t->evaluate) {
		queue_supersede(q, t->route.microbatch, t->route.attempt);
		q->entries[t->route.microbatch].arrived |= (uint8_t)(1u << t->kind);
	}
	q->waiting[q->n_waiting++] = t;
	return QUEUE_TAKEN;
}

static bool needs_slot(const struct task *t)
{
	return !t->evaluate && t->kind == TASK_FORWARD;
}

/* Returns true if the task may start now. An F needs a free slot. An L or B needs the slot that
 * its microbatch gets when its F starts. On a substitute node, the input of an L or B may arrive
 * before the F starts. A data node's B also waits for the L, because the end of the B frees the
 * slot. */
static bool may_start(const struct queue *q, const struct task *t)
{
	const struct entry *e = &q->entries[t->route.microbatch];

	if (needs_slot(t))
		return q->held < q->n_slots;
	if (t->evaluate)
		return true;
	return e->slot != NO_SLOT &&
	       (t->kind != TASK_BACKWARD || t->position < 2 * t->route.n_hops ||
		e->ended >> TASK_LOSS & 1);
}

/* Assumes that both tasks may start. Returns true if task a must run before task b. */
static bool comes_before(const struct queue *q, const struct task *a, const struct task *b)
{
	uint32_t ra = a->evaluate ? UINT32_MAX : q->ranks[a->kind][a->route.microbatch];
	uint32_t rb = b->evaluate ? UINT32_MAX : q->ranks[b->kind][b->route.microbatch];

	if (a->route.attempt != b->route.attempt && !a->evaluate && !b->evaluate)
		return a->route.attempt > b->route.attempt;
	if (ra != rb)
		return ra < rb;
	if (a->arrived_us != b->arrived_us)
		return a->arrived_us < b->arrived_us;
	return a->route.microbatch < b->route.microbatch;
}

static size_t find_best(const struct queue *q)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < q->n_waiting; i++)
		if (may_start(q, q->waiting[i]) &&
		    (found == SIZE_MAX || comes_before(q, q->waiting[i], q->waiting[found])))
			found = i;
	return found;
}

static int take_slot(struct queue *q, uint32_t microbatch, int64_t now_us)
{
	int i = 0;

	while (q->slots[i].holder != QUEUE_NOBODY)
		i++;
	q->slots[i].holder = microbatch;
	q->slots[i].since_us = now_us;
	q->held++;
	return i;
}

struct task *queue_start(struct queue *q, int64_t now_us)
{
	struct task *t;
	struct entry *e;
	size_t i;

	if (q->running || (i = find_best(q)) == SIZE_MAX)
		return NULL;
	t = q->waiting[i];
	q->waiting[i] = q->waiting[--q->n_waiting];
	q->running = t;
	if (t->evaluate)
		return t;
	q->last = t->route.microbatch;
	e = &q->entries[t->route.microbatch];
	if (needs_slot(t)) {
		e->slot = take_slot(q, t->route.microbatch, now_us);
	} else if (!(e->counted >> t->kind & 1)) {
		/* The gradient counts from the start of the task, because a running task is never
		 * interrupted. */
		t->count = true;
		e->counted |= (uint8_t)(1u << t->kind);
		q->counts++;
	}
	t->slot = e->slot;
	return t;
}

const struct task *queue_next(const struct queue *q)
{
	size_t i = find_best(q);

	return i == SIZE_MAX ? NULL : q->waiting[i];
}

struct task *queue_end(struct queue *q)
{
	struct task *t = q->running;

	assert(t);
	q->running = NULL;
	if (t->evaluate)
		return t;
	if (!t->stale)
		q->entries[t->route.microbatch].ended |= (uint8_t)(1u << t->kind);
	if (t->stale) {
		release_slot(q, t->slot);
	} else if (t->kind == TASK_BACKWARD) {
		release_slot(q, t->slot);
		q->entries[t->route.microbatch].slot = NO_SLOT;
	}
	return t;
}

const struct task *queue_running(const struct queue *q)
{
	return q->running;
}

static uint32_t longest_holder(const struct queue *q)
{
	const struct slot *found = NULL;

	for (uint32_t i = 0; i < q->n_slots; i++)
		if (q->slots[i].holder != QUEUE_NOBODY &&
		    (!found || q->slots[i].since_us < found->since_us))
			found = &q->slots[i];
	return found ? found->holder : QUEUE_NOBODY;
}

/* Returns true if the task waits only for a task of its own microbatch. On a substitute node the
 * gradient can arrive before the F has run. In this case no other microbatch blocks the B. */
static bool waits_for_itself(const struct queue *q, const struct task *t)
{
	bool runs = q->running && q->running->route.microbatch == t->route.microbatch;

	return !needs_slot(t) && (runs || !may_start(q, t));
}

const struct task *queue_announce_waiter(struct queue *q)
{
	for (size_t i = 0; i < q->n_waiting; i++) {
		struct task *t = q->waiting[i];

		if (t->announced || waits_for_itself(q, t))
			continue;
		t->announced = true;
		t->blocker = may_start(q, t) ? q->last : longest_holder(q);
		return t;
	}
	return NULL;
}

bool queue_counted(const struct queue *q, uint32_t microbatch, enum task_kind kind)
{
	return q->entries[microbatch].counted >> kind & 1;
}

uint32_t queue_counts(const struct queue *q)
{
	return q->counts;
}

uint32_t queue_waiting(const struct queue *q)
{
	return (uint32_t)q->n_waiting;
}

uint32_t queue_slots_held(const struct queue *q)
{
	return q->held;
}

bool queue_blocked(const struct queue *q)
{
	return q->n_waiting > 0 && !q->running && find_best(q) == SIZE_MAX;
}
