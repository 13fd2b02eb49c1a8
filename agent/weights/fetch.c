/* fetch.c - decides which pieces of a stage to request next, and stores the pieces that arrive. The
 * caller sends the requests, so tests need no network. */
#include "agent/weights/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/msg.h"

enum {
	/* If nothing arrives for SILENCE_US, all requested pieces are requested again. If
	 * SILENCE_TIMES times the transfer time of a piece is longer than SILENCE_US, the longer
	 * time is used. */
	SILENCE_US = 5000000,
	SILENCE_TIMES = 3,
	/* Until the first piece has arrived, this time replaces SILENCE_US. It is short, because
	 * the source may have sent the first piece to an earlier process of this node. */
	FIRST_SILENCE_US = 1000000,
	/* While nothing arrives, each repetition of the requests doubles the time before the next
	 * repetition, up to this limit. */
	SILENCE_MOST_US = 40000000,
	/* A piece that arrived but could not be stored is requested again after this pause. */
	FETCH_AGAIN_US = 20000,
	WINDOW_LEAST = 2,
	/* Limit of the requested bytes, enough for 1 Gbit/s and a round trip of 200 ms. */
	WINDOW_BYTES = 24 << 20,
	/* Limits of queueing. The queueing of a piece is its transfer time minus the transfer time
	 * of the fastest piece. The window grows while the queueing is below the longer of two
	 * times: QUEUE_LITTLE_US, and half of the fastest piece's transfer time. The window
	 * shrinks when the queueing exceeds both QUEUE_MUCH_US and the fastest piece's transfer
	 * time. */
	QUEUE_LITTLE_US = 100000,
	QUEUE_MUCH_US = 200000
};

size_t fetch_piece_floats(size_t parameters)
{
	size_t n = (parameters + FETCH_PARTS - 1) / FETCH_PARTS;

	if (n < FETCH_LEAST)
		return FETCH_LEAST;
	return n < MSG_PIECE_FLOATS ? n : MSG_PIECE_FLOATS;
}

bool fetch_piece(size_t parameters, uint32_t i, size_t *from, size_t *floats)
{
	size_t n = fetch_piece_floats(parameters);

	*from = i * n;
	if (*from >= parameters)
		return false;
	*floats = parameters - *from < n ? parameters - *from : n;
	return true;
}

int fetch_begin(struct fetch *f, uint16_t source, uint8_t stage, size_t parameters,
		int64_t now_us)
{
	size_t floats = fetch_piece_floats(parameters);
	uint32_t n = (uint32_t)((parameters + floats - 1) / floats);

	fetch_end(f);
	f->source = source;
	f->stage = stage;
	f->parameters = parameters;
	f->state = malloc(3 * parameters * sizeof(float));
	if (!f->state) {
		fetch_end(f);
		return -ENOMEM;
	}
	f->held = alloc_array(n, sizeof(f->held[0]));
	f->fresh = alloc_array(n, sizeof(f->fresh[0]));
	f->of = alloc_array(n, sizeof(f->of[0]));
	f->asked_us = alloc_array(n, sizeof(f->asked_us[0]));
	f->n = n;
	f->window = WINDOW_LEAST;
	f->most_window = (uint32_t)(WINDOW_BYTES / (3 * floats * sizeof(float)));
	if (f->most_window > FETCH_WINDOW)
		f->most_window = FETCH_WINDOW;
	f->least_us = INT64_MAX;
	f->heard_us = now_us;
	f->patience_us = FIRST_SILENCE_US;
	return 0;
}

void fetch_expect(struct fetch *f, int64_t piece_us)
{
	if (f->patience_us < WINDOW_LEAST * piece_us)
		f->patience_us = WINDOW_LEAST * piece_us;
}

void fetch_end(struct fetch *f)
{
	free(f->state);
	free(f->held);
	free(f->fresh);
	free(f->of);
	free(f->asked_us);
	memset(f, 0, sizeof(*f));
}

void fetch_void(struct fetch *f)
{
	memset(f->held, 0, f->n * sizeof(f->held[0]));
	memset(f->fresh, 0, f->n * sizeof(f->fresh[0]));
	f->n_held = 0;
}

static void forget_asked(struct fetch *f)
{
	memset(f->asked_us, 0, f->n * sizeof(f->asked_us[0]));
	f->n_asked = 0;
}

int fetch_next(struct fetch *f, int64_t now_us, uint32_t *piece)
{
	if (f->n_asked > 0 && now_us - f->heard_us > f->patience_us) {
		forget_asked(f);
		f->patience_us = 2 * f->patience_us < SILENCE_MOST_US ? 2 * f->patience_us
								      : SILENCE_MOST_US;
		f->heard_us = now_us;
	}
	if (f->n_asked >= f->window || f->n_held + f->n_asked >= f->n ||
	    now_us < f->next_request_us)
		return -EAGAIN;
	for (uint32_t i = 0; i < f->n; i++)
		if (!f->held[i] && !f->asked_us[i]) {
			if (f->n_asked == 0)
				f->heard_us = now_us;
			f->asked_us[i] = now_us;
			f->n_asked++;
			*piece = i;
			return 0;
		}
	return -EAGAIN;
}

uint64_t fetch_hash(const float *body, size_t floats)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	uint32_t word;

	for (size_t i = 0; i < floats; i++) {
		memcpy(&word, (const char *)body + i * sizeof(word), sizeof(word));
		h = (h ^ word) * UINT64_C(0x100000001b3);
	}
	return h;
}

void fetch_refuse(struct fetch *f, uint32_t piece, int64_t now_us)
{
	f->next_request_us = now_us + FETCH_AGAIN_US;
	if (piece >= f->n || !f->asked_us[piece])
		return;
	f->asked_us[piece] = 0;
	f->n_asked--;
}

static int64_t take_larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void adapt_window(struct fetch *f, int64_t took_us)
{
	f->took_us += f->took_us ? (took_us - f->took_us) / 4 : took_us;
	if (took_us < f->least_us)
		f->least_us = took_us;
	if (took_us < f->least_us + take_larger(QUEUE_LITTLE_US, f->least_us / 2) &&
	    f->window < f->most_window)
		f->window++;
	else if (took_us > f->least_us + take_larger(QUEUE_MUCH_US, f->least_us) &&
		 f->window > WINDOW_LEAST)
		f->window--;
}

int fetch_take(struct fetch *f, uint32_t piece, uint64_t iteration, const void *body,
	       size_t bytes, int64_t now_us)
{
	size_t from, floats;

	if (piece >= f->n || !fetch_piece(f->parameters, piece, &from, &floats) ||
	    bytes != 3 * floats * sizeof(float))
		return -EINVAL;
	f->heard_us = now_us;
	f->patience_us = take_larger(SILENCE_US, SILENCE_TIMES * f->took_us);
	if (f->held[piece])
		return -EALREADY;
	if (f->n_held == 0 && iteration > f->iteration)
		f->iteration = iteration;
	if (iteration < f->iteration) {
		/* A commit has passed since this piece was sent, so the piece is too old. The next
		 * request is for one piece alone, which waits behind no other piece and arrives
		 * sooner. */
		f->window = 1;
		fetch_refuse(f, piece, now_us);
		return -ESTALE;
	}
	if (f->asked_us[piece]) {
		adapt_window(f, now_us - f->asked_us[piece]);
		f->asked_us[piece] = 0;
		f->n_asked--;
	}
	for (size_t k = 0; k < 3; k++)
		memcpy(f->state + k * f->parameters + from,
		       (const char *)body + k * floats * sizeof(float), floats * sizeof(float));
	f->held[piece] = f->fresh[piece] = true;
	f->of[piece] = iteration;
	f->n_held++;
	return 0;
}

bool fetch_fits(const struct fetch *f, uint32_t piece)
{
	return f->fresh[piece] && f->of[piece] <= f->iteration;
}

bool fetch_whole(const struct fetch *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (!f->held[i] || (f->fresh[i] && f->of[i] > f->iteration))
			return false;
	return f->n > 0;
}

int64_t fetch_deadline_us(const struct fetch *f)
{
	if (f->n == 0 || f->n_held == f->n)
		return INT64_MAX;
	if (f->n_asked < f->window && f->n_held + f->n_asked < f->n)
		return f->next_request_us;
	return f->heard_us + f->patience_us;
}
