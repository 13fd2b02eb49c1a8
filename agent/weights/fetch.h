/* fetch.h - receives a stage's weights and moments from another node, piece by piece.
 *
 * The receiver requests a window of pieces at a time. The source therefore sends only what the
 * receiver waits for, and after an interruption only the missing pieces are requested again. Pieces
 * are small parts of the stage, because a piece must arrive before the next commit changes the
 * weights, even over a slow link.
 * The window follows the time that a piece takes: it grows while the link has room, and shrinks
 * when pieces queue up for 0.2 s or, on a link with a long delay, for as long as the fastest piece
 * took.
 *
 * Each piece carries its iteration. The copy that is being made steps with every commit, element by
 * element (standby.c). A piece that is ahead of the copy waits until the copy reaches its
 * iteration. A piece of a past iteration is dropped and requested again.
 *
 * This module only keeps records and memory: the caller sends the messages and steps the copy.
 */
#ifndef AGENT_FETCH_H
#define AGENT_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FETCH_WINDOW = 64, /* largest number of pieces requested at a time */
	/* A stage has FETCH_PARTS pieces. A small stage has fewer, of FETCH_LEAST floats in each
	 * array; a large stage has more, of MSG_PIECE_FLOATS. A piece has a sixteenth of a sum's
	 * bytes in q6. Therefore a link that carries the sums in time can carry pieces too, even if
	 * it carries only a replica's part of each sum. */
	FETCH_PARTS = 256,
	FETCH_LEAST = 1024
};

/* Returns the number of floats of a piece, of each array. The last piece has the rest. */
size_t fetch_piece_floats(size_t parameters);
/* Gives the range of floats of piece i, for a stage of that many parameters. Returns false if there
 * is no such piece. */
bool fetch_piece(size_t parameters, uint32_t i, size_t *from, size_t *floats);

/* Returns FNV-1a over the 32-bit words of a piece's floats. It reveals damage in memory or on a
 * disk. */
uint64_t fetch_hash(const float *body, size_t floats);

struct fetch {
	uint16_t source;
	uint8_t stage;
	size_t parameters; /* number of parameters P of the stage */
	uint32_t n;        /* number of pieces; 0: no fetch is under way */
	uint32_t n_held, n_asked;
	/* number of pieces that may be requested at a time: at present, and the upper limit */
	uint32_t window, most_window;
	/* Transfer time of the fastest piece, from its request to its arrival. */
	int64_t least_us;
	int64_t took_us;    /* running average of the transfer times; 0: no piece has arrived */
	uint64_t iteration; /* iteration of the held pieces that are not ahead of the copy */
	float *state;       /* (3, P) received weights and moments */
	bool *held, *fresh; /* (n) the piece is held; the piece is not yet stored in the copy */
	uint64_t *of;       /* (n) iteration of each fresh piece */
	int64_t *asked_us;  /* (n) when each piece was requested; 0: not requested */
	int64_t next_request_us; /* no piece is requested before this time */
	int64_t heard_us;   /* when the last piece arrived, or the first request was sent */
	int64_t patience_us; /* the patience: silence after which pieces are requested again */
};

/* Begins a fetch of P parameters; a zeroed struct is an ended fetch. -ENOMEM: the state is too
 * large. */
int fetch_begin(struct fetch *f, uint16_t source, uint8_t stage, size_t parameters,
		int64_t now_us);
/* Raises the patience for the first piece to piece_us, the time that a piece is expected to
 * take. */
void fetch_expect(struct fetch *f, int64_t piece_us);
void fetch_end(struct fetch *f);
/* Drops all held pieces, because their iteration is past: all are needed again. */
void fetch_void(struct fetch *f);
/* Gives the next piece to request, each piece once. -EAGAIN: none now. After patience_us without
 * a piece, all requested pieces are requested again: after 1 s before the first piece, then after
 * 5 s or three times as long as pieces take. The patience doubles each time that nothing arrives.
 */
int fetch_next(struct fetch *f, int64_t now_us, uint32_t *piece);
/* Stores a piece that has arrived. -EALREADY: it is already held; -EINVAL: no such piece, or a
 * wrong size; -ESTALE: its iteration is older than that of the held pieces, so it is requested
 * again soon. */
int fetch_take(struct fetch *f, uint32_t piece, uint64_t iteration, const void *body,
	       size_t bytes, int64_t now_us);
/* Marks a piece that arrived at the wrong moment, so that it is requested again soon. */
void fetch_refuse(struct fetch *f, uint32_t piece, int64_t now_us);
/* Returns true if every piece is held and no piece is ahead of the copy. */
bool fetch_whole(const struct fetch *f);
/* Returns true if the piece is fresh and can be stored in the copy now. */
bool fetch_fits(const struct fetch *f, uint32_t piece);
/* Returns the time of the next request, new or repeated. */
int64_t fetch_deadline_us(const struct fetch *f);

#endif
