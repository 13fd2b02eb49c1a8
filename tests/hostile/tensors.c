/* tensors.c - attacks on other nodes. Messages try to fill their memory, waste their time or
 * falsify their sums. */
#include <string.h>

#include "agent/state.h"
#include "agent/sums/reduction.h"
#include "agent/sums/slices.h"
#include "tests/hostile/hostile.h"

enum {
	A_TURN = 32,         /* messages to each other node in a turn */
	NUMBERS_SENT = 300,  /* messages to each other node in an iteration */
	/* A post refuses a chunk this far ahead of the expected one (CHANNEL_AHEAD). */
	HALF_CHUNKS = 16384,
	HALVES = 256         /* incomplete messages to each other node */
};

/* Calls `send` for every other node that the agent knows. */
static void send_to_others(struct hostile *h, int64_t now_us,
			   bool (*send)(struct hostile *h, uint16_t to, int64_t now_us), int times)
{
	const struct agent *a = h->agent;

	for (uint32_t i = 0; i < a->run.welcome.n_nodes; i++)
		for (int k = 0; i != a->run.welcome.node && a->peers.list[i].known && k < times;
		     k++)
			if (!send(h, (uint16_t)i, now_us))
				break;
}

/* ---- tensors with absurd numbers ---- */

static bool send_absurd(struct hostile *h, uint16_t to, int64_t now_us)
{
	const struct slices *sum = reduction_slices(h->agent->modules.reduction);
	struct msg m = { .type = MSG_TENSOR };
	int stage = hostile_stage_of(h, to);

	m.u.tensor = (struct msg_tensor){ .kind = TENSOR_PART,
					  .from = h->agent->run.welcome.node,
					  .stage = (uint8_t)(stage < 0 ? 0 : stage),
					  .iteration = h->agent->held.committed + 1,
					  .attempt = sum ? slices_attempt(sum) : 1 };
	return hostile_send_tensor(h, to, &m, 1e30f, 1, now_us);
}

void numbers(struct hostile *h, int64_t now_us)
{
	if (h->iteration != h->agent->held.committed) {
		h->iteration = h->agent->held.committed;
		h->done = 0;
	}
	if (h->done >= NUMBERS_SENT)
		return;
	h->done += A_TURN;
	send_to_others(h, now_us, send_absurd, A_TURN);
}

/* ---- evaluations that the controller did not order ---- */

static bool send_evaluation(struct hostile *h, uint16_t to, int64_t now_us)
{
	const struct agent *a = h->agent;
	struct msg m = { .type = MSG_TENSOR };
	int theirs = hostile_stage_of(h, to), own = a->held.stage;
	struct route r = { .microbatch = (uint32_t)(h->next++ % MSG_MICROBATCHES),
			   .attempt = 1,
			   .n_hops = 2,
			   .nodes = { a->run.welcome.node, to },
			   .stages = { (uint8_t)own, (uint8_t)theirs } };
	uint32_t at = 1;

	if (theirs < 0 || own >= (int)a->run.limits.n_stages || theirs == own)
		return false;
	if (theirs == 0) { /* the receiver has stage 0: the path ends there with the loss */
		r.nodes[0] = to;
		r.nodes[1] = a->run.welcome.node;
		r.stages[0] = 0;
		r.stages[1] = (uint8_t)own;
		at = 2;
	} else if (own != 0) { /* neither node has stage 0: the path begins at another node */
		r.n_hops = 3;
		memmove(r.nodes + 1, r.nodes, 2 * sizeof(r.nodes[0]));
		memmove(r.stages + 1, r.stages, 2);
		r.stages[0] = 0;
		for (r.nodes[0] = 0; r.nodes[0] == to || r.nodes[0] == a->run.welcome.node;)
			r.nodes[0]++;
		at = 2;
	}
	m.u.tensor = (struct msg_tensor){ .kind = TENSOR_ACTIVATION,
					  .evaluate = 1,
					  .from = a->run.welcome.node,
					  .iteration = a->held.committed,
					  .index = at,
					  .n_routes = 1,
					  .routes = &r };
	return hostile_send_tensor(h, to, &m, 0, a->held.activation, now_us);
}

void evaluations(struct hostile *h, int64_t now_us)
{
	send_to_others(h, now_us, send_evaluation, A_TURN);
}

/* ---- tensors of later iterations ---- */

/* Sends small and large tensors for the next three iterations, and for an iteration that is never
 * reached. */
static bool send_early(struct hostile *h, uint16_t to, int64_t now_us)
{
	static const uint64_t ahead[] = { 1, 2, 3, UINT64_C(1) << 62 };
	const struct agent *a = h->agent;
	struct msg m = { .type = MSG_TENSOR };
	uint64_t n = h->next++;
	int stage = hostile_stage_of(h, to);

	m.u.tensor = (struct msg_tensor){ .kind = n & 4 ? TENSOR_SUM : TENSOR_PART,
					  .from = a->run.welcome.node,
					  .stage = (uint8_t)(stage < 0 ? 0 : stage),
					  .attempt = UINT32_MAX,
					  .iteration = a->held.committed + ahead[n % 4] };
	return hostile_send_tensor(h, to, &m, 0, n & 8 ? 1 : 1 << 18, now_us);
}

void early(struct hostile *h, int64_t now_us)
{
	send_to_others(h, now_us, send_early, A_TURN);
}

/* ---- messages that are never complete ---- */

/* Sends the first chunk of a message and no other. The messages are short at first, and the last is
 * as long as the longest tensor. */
static bool send_half(struct hostile *h, uint16_t to, int64_t now_us)
{
	const struct agent *a = h->agent;

	if (h->done == HALVES - 1)
		return announce_one(a->peers.post, a->peers.list[to].dial, 0, MSG_TENSOR_MOST,
				    HALF_CHUNKS / 2, now_us);
	return announce_one(a->peers.post, a->peers.list[to].dial, HALF_CHUNKS / 2 + 2u * h->done,
			    1 << 20, 2, now_us);
}

void announce(struct hostile *h, int64_t now_us)
{
	if (h->done >= HALVES)
		return;
	send_to_others(h, now_us, send_half, 1);
	h->done++;
}
