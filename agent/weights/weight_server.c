/* weight_server.c - sends pieces of this node's stage, or of its standby copy, to nodes that fetch
 * them.
 *
 * Only the worker may read the weights, so the pieces are cut from a snapshot. The worker copies
 * the part of the stage that has a requested piece. This part also has the pieces that are usually
 * requested next. Tasks run between two parts. A commit voids all parts. The memory of the
 * snapshot is kept for the next parts, and freed after some time without requests. This time is
 * longer than the longest recent pause between two requests.
 */
#include "agent/weights/weight_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shared/job.h"
#include "agent/weights/fetch.h"
#include "base/alloc.h"

enum {
	ASKED_MOST = 1024, /* limit of requests that are not answered yet */
	/* The snapshot is freed if it was not used for LINGER_US plus the longest recent pause
	 * between requests. A fetching node requests the next piece when a piece arrives. With a
	 * delay of 300 ms and 1 MB/s, the next request comes 2.2 s after the previous request. */
	LINGER_US = 3000000,
	PIECES_OF_TURN = 64,
	/* Largest number of parts of a snapshot; a part has at least STATE_PART floats of each
	 * array. */
	PARTS_MOST = 16
};

struct weight_server {
	struct msg_fetch asked[ASKED_MOST]; /* the n_asked requests in order of arrival */
	uint32_t n_asked;
	float *state;     /* the snapshot, shape (3, P); NULL: none, or the worker copies a part */
	uint32_t copied;  /* bit i: the snapshot has part i, of `iteration` */
	uint32_t copying; /* the part that the worker copies */
	uint8_t stage;
	uint64_t iteration;
	size_t parameters;
	int64_t used_us;
	/* Time at which the newest request arrived, and the longest recent pause between two
	 * requests. */
	int64_t asked_us, pause_us;
	struct weight_server_uses uses;
};

struct weight_server *weight_server_new(const struct weight_server_uses *uses)
{
	struct weight_server *x = alloc_new(sizeof(*x));

	x->uses = *uses;
	return x;
}

void weight_server_free(struct weight_server *x)
{
	if (!x)
		return;
	free(x->state);
	free(x);
}

void weight_server_forget(struct weight_server *s)
{
	free(s->state);
	*s = (struct weight_server){ .uses = s->uses };
}

/* Finds the weights of the stage on this node: in the node's own stage, or in its standby copy.
 * Returns false if the node does not have them. */
static bool find_held(const struct weight_server *s, uint8_t stage, bool *of_copy,
		      uint64_t *iteration, size_t *parameters)
{
	*of_copy = !(s->uses.held->standing == STAND_READY && s->uses.held->stage == stage);
	if (*of_copy && (!standby_holds(s->uses.standby, stage)))
		return false;
	*iteration = *of_copy ? standby_iteration(s->uses.standby) : s->uses.held->committed;
	*parameters = *of_copy ? standby_parameters(s->uses.standby) : s->uses.held->parameters;
	return true;
}

void weight_server_ask(struct weight_server *s, const struct msg_fetch *m, int64_t now_us)
{
	uint64_t iteration;
	size_t parameters;
	bool of_copy;

	if (!find_held(s, m->stage, &of_copy, &iteration, &parameters) ||
	    s->n_asked == ASKED_MOST) {
		s->uses.tell->tally.refused++; /* the requesting node will repeat the request */
		return;
	}
	for (uint32_t i = 0; i < s->n_asked; i++)
		if (memcmp(&s->asked[i], m, sizeof(*m)) == 0)
			return;
	if (s->asked_us && now_us - s->asked_us > s->pause_us)
		s->pause_us = now_us - s->asked_us;
	s->asked_us = now_us;
	s->asked[s->n_asked++] = *m;
}

/* Returns the size of a part, in floats of each array. A part has whole pieces. */
static size_t part_floats(size_t parameters)
{
	size_t piece = fetch_piece_floats(parameters);
	size_t n = (parameters + PARTS_MOST - 1) / PARTS_MOST;

	if (n < STATE_PART)
		n = STATE_PART;
	return (n + piece - 1) / piece * piece;
}

/* Returns the part that has a piece; 0 if there is no such piece. */
static uint32_t part_of(size_t parameters, uint32_t piece)
{
	size_t from, n;

	if (!fetch_piece(parameters, piece, &from, &n))
		return 0;
	return (uint32_t)(from / part_floats(parameters));
}

/* Returns true if the snapshot has the piece, and no commit has passed since. */
static bool has_piece(const struct weight_server *s, const struct msg_fetch *m)
{
	uint64_t iteration;
	size_t parameters;
	bool of_copy;

	return s->state && s->stage == m->stage &&
	       find_held(s, m->stage, &of_copy, &iteration, &parameters) &&
	       s->iteration == iteration && s->parameters == parameters &&
	       (s->copied >> part_of(parameters, m->piece) & 1);
}

bool weight_server_next_job(struct weight_server *s, struct job *job)
{
	const struct msg_fetch *m = &s->asked[0];
	uint64_t iteration;
	size_t parameters;
	bool of_copy;

	if (s->n_asked == 0 || has_piece(s, m) ||
	    !find_held(s, m->stage, &of_copy, &iteration, &parameters))
		return false;
	if (s->stage != m->stage || s->iteration != iteration || s->parameters != parameters)
		s->copied = 0;
	if (s->parameters != parameters) {
		free(s->state);
		s->state = NULL;
	}
	s->stage = m->stage;
	s->iteration = iteration;
	s->parameters = parameters;
	s->copying = part_of(parameters, m->piece);
	*job = (struct job){ .kind = JOB_STATE,
			     .of_copy = of_copy,
			     .state = { .most = part_floats(parameters),
					.copied = s->copying * part_floats(parameters) },
			     .out = s->state };
	s->state = NULL;
	return true;
}

void weight_server_job_done(struct weight_server *s, struct job *job, int64_t now_us)
{
	s->state = job->out;
	if (s->state)
		s->copied |= UINT32_C(1) << s->copying;
	else
		s->copied = 0;
	s->used_us = now_us;
	job->out = NULL;
}

static bool is_that_piece(const struct parcel *p, const void *context)
{
	const struct msg_fetch *m = context;

	return p->head.kind == TENSOR_STATE && p->to == m->from && p->head.stage == m->stage &&
	       p->head.index == m->piece;
}

static void send_piece(struct weight_server *s, const struct msg_fetch *m, int64_t now_us)
{
	struct msg_tensor head = { .kind = TENSOR_STATE,
				   .from = s->uses.run->welcome.node,
				   .stage = s->stage,
				   .iteration = s->iteration,
				   .index = m->piece };
	size_t from, n;
	float *body;

	if (!fetch_piece(s->parameters, m->piece, &from, &n)) {
		s->uses.tell->tally.refused++;
		return;
	}
	/* Ignores a request for a piece that was requested before and has not been sent yet. On a
	 * slow link, sending the piece twice would double the time. */
	if (delay_queue_any(s->uses.delay_queue, is_that_piece, m))
		return;
	body = malloc(3 * n * sizeof(float));
	if (!body) {
		s->uses.tell->tally.dropped++;
		return;
	}
	for (size_t k = 0; k < 3; k++)
		memcpy(body + k * n, s->state + k * s->parameters + from, n * sizeof(float));
	head.hash = fetch_hash(body, 3 * n);
	links_send_piece(s->uses.links, m->from, &head, body, 3 * n, s->parameters, now_us);
}

void weight_server_turn(struct weight_server *s, int64_t now_us)
{
	uint64_t iteration = 0;
	uint32_t done = 0, kept_back = 0;
	size_t parameters;
	bool of_copy;

	for (uint32_t i = 0; i < s->n_asked; i++) {
		if (done < PIECES_OF_TURN && has_piece(s, &s->asked[i])) {
			send_piece(s, &s->asked[i], now_us);
			s->used_us = now_us;
			done++;
		} else if (find_held(s, s->asked[i].stage, &of_copy, &iteration, &parameters)) {
			s->asked[kept_back++] = s->asked[i];
		}
	}
	s->n_asked = kept_back;
	if (s->state && now_us - s->used_us > LINGER_US + s->pause_us) {
		free(s->state);
		s->state = NULL;
		s->copied = 0;
		s->asked_us = s->pause_us = 0;
	}
}

bool weight_server_idle(const struct weight_server *s)
{
	return s->n_asked == 0 && !s->state;
}
