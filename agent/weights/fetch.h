/* fetch.h - a stage's weights and moments on their way from another node, piece by piece.
 *
 * The one who wants them asks for pieces, a window of them at a time: nothing is sent that
 * nobody waits for, and after a break only what is missing is asked for again. The window
 * follows the time a piece takes: it grows while the link has room, and shrinks when pieces
 * queue up, by a fifth of a second or, on a long way, as long as one takes. Each piece says of which iteration it is. The copy that is being made is stepped with
 * every commit, element by element (standby.c); a piece that is ahead of it waits here until the
 * copy has come so far, and a piece of an iteration that is past is dropped and asked for again.
 *
 * Bookkeeping and memory only: messages and stepping are the caller's.
 */
#ifndef AGENT_FETCH_H
#define AGENT_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FETCH_WINDOW = 16 }; /* most pieces under way: 24 MiB, 1 Gbit/s over 200 ms */

/* Piece i of P floats: false when there is none. */
bool fetch_piece(size_t parameters, uint32_t i, size_t *from, size_t *floats);

/* Of a piece's floats, FNV-1a over their 32-bit words: what memory and disks do to it is seen.
 */
uint64_t fetch_hash(const float *body, size_t floats);

struct fetch {
	uint16_t source;
	uint8_t stage;
	size_t parameters; /* P */
	uint32_t n;        /* pieces; 0: no fetch is under way */
	uint32_t n_held, n_asked;
	uint32_t window;    /* pieces that may be under way now */
	int64_t least_us;   /* that a piece took from being asked for, */
	int64_t took_us;    /* and what they take lately; 0: none has come */
	uint64_t iteration; /* of what is held and not ahead */
	float *state;       /* (3, P) */
	bool *held, *fresh; /* (n) fresh: not yet in the copy */
	uint64_t *of;       /* (n) the iteration of a fresh piece */
	int64_t *asked_us;  /* (n) 0: not under way */
	int64_t ask_us;     /* not before this */
	int64_t heard_us;   /* the last piece, or the beginning */
	int64_t patience_us; /* short until the first piece is here */
};

/* A zeroed struct is an ended fetch. -ENOMEM. */
int fetch_begin(struct fetch *f, uint16_t source, uint8_t stage, size_t parameters,
		int64_t now_us);
/* How long a piece takes on this link, as far as that is known: the first may take no less. */
void fetch_expect(struct fetch *f, int64_t piece_us);
void fetch_end(struct fetch *f);
/* What is held is of an iteration that is past: all of it is wanted again. */
void fetch_void(struct fetch *f);
/* The next piece to ask for, once: -EAGAIN none now. After patience_us without a piece all that is
 * under way is asked for again: 1 s before the first, then 5, or thrice as long as pieces take; where
 * nothing comes, each time twice as long. */
int fetch_next(struct fetch *f, int64_t now_us, uint32_t *piece);
/* A piece has come. 0: it is held; -EALREADY it was; -EINVAL the wrong size, or nobody's;
 * -ESTALE of an iteration before what is held: it will be asked for again soon. */
int fetch_take(struct fetch *f, uint32_t piece, uint64_t iteration, const void *body,
	       size_t bytes, int64_t now_us);
/* A piece came at the wrong moment: asked for again soon. */
void fetch_refuse(struct fetch *f, uint32_t piece, int64_t now_us);
bool fetch_whole(const struct fetch *f); /* every piece is held, and none is ahead */
/* Whether the fresh piece fits the copy as it is. */
bool fetch_fits(const struct fetch *f, uint32_t piece);
int64_t fetch_deadline_us(const struct fetch *f);

#endif
