/* fetch.h - receives a stage's weights and moments from another node, piece by piece.
 *
 * The receiver requests a window of pieces at a time. The source therefore sends only what the
 * receiver waits for. After an interruption only the missing pieces are requested again. Pieces
 * are small parts of the stage, because a piece must arrive before the next commit changes the
 * weights, even over a slow link. The window grows as long as the link has room. The window
 * shrinks when pieces queue up for longer than 0.2 s and for longer than the transfer time of the
 * fastest piece.
 *
 * Each piece carries its iteration. With every commit, the unfinished standby copy makes the step
 * too, element by element (standby.c). A piece of a later iteration than the copy waits until the
 * copy reaches that iteration. A piece of a past iteration is dropped and requested again.
 *
 * This module only keeps records and memory. The caller sends the messages and steps the copy.
 */
#ifndef AGENT_FETCH_H
#define AGENT_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FETCH_WINDOW = 64, /* largest number of pieces requested at a time */
	/* A stage has about FETCH_PARTS pieces. A small stage has fewer, each with FETCH_LEAST
	 * floats of each array. A large stage has more, each with MSG_PIECE_FLOATS. A piece has a
	 * sixteenth of the bytes of a gradient's sum in the format q6. Therefore a link that
	 * carries a part of each sum in time can carry pieces too. */
	FETCH_PARTS = 256,
	FETCH_LEAST = 1024
};

/* Returns the length of a piece, as the number of floats in each of the three arrays. The last
 * piece may be shorter. */
size_t fetch_piece_floats(size_t parameters);
/* Gives the first float and the length of piece i of a stage with this number of parameters.
 * Returns false if there is no such piece. */
bool fetch_piece(size_t parameters, uint32_t i, size_t *from, size_t *floats);

/* Returns the FNV-1a hash of a piece's floats, taken as 32-bit words. A wrong hash reveals damage
 * in memory or on a disk. */
uint64_t fetch_hash(const float *body, size_t floats);

struct fetch {
	uint16_t source;
	uint8_t stage;
	size_t parameters; /* P, the number of parameters of the stage */
	uint32_t n;        /* number of pieces; 0: no fetch is under way */
	uint32_t n_held, n_asked;
	/* Limit of the number of pieces that are requested at a time, and the largest value that
	 * this limit has had. */
	uint32_t window, most_window;
	/* transfer time of the fastest piece, from request to arrival */
	int64_t least_us;
	/* Running average of the pieces' transfer times; 0: no piece has arrived. */
	int64_t took_us;
	/* Iteration of the arrived pieces; a piece of a later iteration waits until the copy
	 * reaches that later iteration. */
	uint64_t iteration;
	float *state;       /* received weights and moments, shape (3, P) */
	/* Two flags for each of the n pieces. `held`: the piece has arrived. `fresh`: the piece
	 * has arrived and is not yet in the standby copy. */
	bool *held, *fresh;
	/* Iteration of each of the n pieces, used only if the piece is `fresh`. */
	uint64_t *of;
	/* For each of the n pieces, the time at which it was requested; 0: not requested, or
	 * arrived. */
	int64_t *asked_us;
	int64_t next_request_us; /* no piece is requested before this time */
	/* Time at which the newest piece arrived; if no piece has arrived, time at which the
	 * requests began. */
	int64_t heard_us;
	/* If no piece arrives for this time, the requested pieces are requested again. */
	int64_t patience_us;
};

/* Begins a fetch of a stage with P parameters. After fetch_end, and in a zeroed struct, no fetch
 * is under way. -ENOMEM: no memory for the weights and moments. */
int fetch_begin(struct fetch *f, uint16_t source, uint8_t stage, size_t parameters,
		int64_t now_us);
/* If the link is slow, raises patience_us, which limits the wait for the first piece. piece_us:
 * expected transfer time of a piece. */
void fetch_expect(struct fetch *f, int64_t piece_us);
void fetch_end(struct fetch *f);
/* Drops all pieces that have arrived, because they are of a past iteration. All pieces are
 * requested again. */
void fetch_void(struct fetch *f);
/* Gives the next piece to request. -EAGAIN: there is nothing to request now. If nothing has
 * arrived for patience_us, all requested pieces are requested again. The patience is 1 s before
 * the first piece. After the first piece the patience is 5 s or three times the transfer time of
 * a piece, whichever is longer. Each time that nothing arrives, the patience doubles.
 */
int fetch_next(struct fetch *f, int64_t now_us, uint32_t *piece);
/* Stores a piece that has arrived. -EALREADY: the piece was stored before. -EINVAL: no such piece,
 * or a wrong size. -ESTALE: the piece's iteration is past, so the piece will be requested again
 * soon. */
int fetch_take(struct fetch *f, uint32_t piece, uint64_t iteration, const void *body,
	       size_t bytes, int64_t now_us);
/* Lets a piece be requested again soon, because it arrived when the caller could not store it. */
void fetch_refuse(struct fetch *f, uint32_t piece, int64_t now_us);
/* Returns true if all pieces have arrived, and none is of a later iteration than the standby
 * copy. */
bool fetch_whole(const struct fetch *f);
/* Returns true if the piece has arrived and can be stored in the standby copy now. */
bool fetch_fits(const struct fetch *f, uint32_t piece);
/* Returns the time at which the next piece is to be requested, for the first time or again. */
int64_t fetch_deadline_us(const struct fetch *f);

#endif
