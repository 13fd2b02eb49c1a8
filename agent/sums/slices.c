/* slices.c - stores the parts and sums of a stage's gradient, and adds the parts of one slice.
 *
 * Parts are added in ascending order of their nodes, not in order of arrival. Float addition is not
 * associative, and all replicas must get the same bits. An arriving piece is copied to its place at
 * once. `struct spans` records the bytes received, so that no byte is stored twice.
 */
#include "agent/sums/slices.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/hash.h"
#include "model/squares.h"
#include "model/stage.h"

/* Limit of the ranges in a struct spans. Pieces arrive nearly in order, so a correct sender needs
 * few. */
enum { SPANS_MOST = 256 };

/* Number of bytes that a thread hashes at a time, a multiple of the size of a leaf in the hash
 * tree. */
#define HASH_UNIT ((size_t)16 * HASH_BATCH)
/* Number of floats whose squares a thread adds at a time, a multiple of the size of a block. */
#define SQUARES_UNIT ((size_t)256 * SQUARES_BLOCK)

/* The bytes of an encoded slice that have arrived: ascending ranges that do not touch. */
struct spans {
	struct span {
		size_t from, to;
	} *list;
	uint32_t n, room;
};

struct slices {
	uint64_t iteration;
	uint32_t attempt;
	uint32_t n, mine;
	size_t floats;        /* number of parameters P */
	struct sum_codec codec;
	float *staging;       /* the decoded sums, P floats */
	/* The encoded sums of all slices; in fp32 this is the staging buffer itself. */
	unsigned char *sums;
	/* The n + 1 offsets in `sums`: where each slice's sum begins, and where the last sum
	 * ends. */
	size_t *sum_at;
	/* The n nodes' encoded parts of this node's slice, in order of node. Each part has the
	 * bytes of an encoded slice. */
	unsigned char *parts;
	/* For each of the n nodes, the bytes of its part that have arrived. */
	struct spans *part_spans;
	/* For each of the n slices, the bytes of its sum that have arrived. */
	struct spans *sum_spans;
	/* For each of the n nodes, true if its whole part has arrived. */
	bool *part_in;
	/* For each of the n slices, true if its whole sum has arrived. */
	bool *sum_in;
	uint32_t n_parts, n_sums;
	uint64_t *hashes;     /* hashes of the n slices' sums */
	uint16_t nodes[];     /* the n replicas, ascending */
};

static uint32_t index_of(const struct slices *r, uint16_t node)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (r->nodes[i] == node)
			return i;
	return UINT32_MAX;
}

static bool is_fp32(const struct slices *r)
{
	return r->codec.format == FORMAT_FP32;
}

/* Allocates the buffers of the sums. -ENOMEM. */
static int make_sums(struct slices *r)
{
	size_t from, floats;

	r->sum_at = alloc_array(r->n + 1, sizeof(r->sum_at[0]));
	for (uint32_t j = 0; j < r->n; j++) {
		slices_range(r, j, &from, &floats);
		r->sum_at[j + 1] = r->sum_at[j] + sum_codec_bytes(&r->codec, from, floats);
	}
	r->staging = malloc(r->floats * sizeof(float) + 1);
	r->sums = is_fp32(r) ? (unsigned char *)r->staging : malloc(r->sum_at[r->n] + 1);
	return r->staging && r->sums ? 0 : -ENOMEM;
}

/* Makes the slices of a reduction, but not the buffers for parts, which a standby copy does not
 * need. -EINVAL: the nodes do not ascend. */
static int make_slices(struct slices **out, uint64_t iteration, uint32_t attempt,
		       const uint16_t *nodes, uint32_t n, size_t floats,
		       const struct sum_codec *codec)
{
	struct slices *r;

	for (uint32_t i = 1; i < n; i++)
		if (nodes[i] <= nodes[i - 1])
			return -EINVAL;
	if (n == 0 || n > MSG_NODES)
		return -EINVAL;
	r = alloc_new(sizeof(*r) + n * sizeof(r->nodes[0]));
	r->iteration = iteration;
	r->attempt = attempt;
	r->n = n;
	r->floats = floats;
	r->codec = *codec;
	r->mine = UINT32_MAX;
	memcpy(r->nodes, nodes, n * sizeof(nodes[0]));
	r->part_in = alloc_array(n, sizeof(bool));
	r->sum_in = alloc_array(n, sizeof(bool));
	r->part_spans = alloc_array(n, sizeof(r->part_spans[0]));
	r->sum_spans = alloc_array(n, sizeof(r->sum_spans[0]));
	r->hashes = alloc_array(n, sizeof(r->hashes[0]));
	if (make_sums(r)) {
		slices_free(r);
		return -ENOMEM;
	}
	*out = r;
	return 0;
}

int slices_watch(struct slices **out, uint64_t iteration, uint32_t attempt,
		 const uint16_t *nodes, uint32_t n, size_t floats, const struct sum_codec *codec)
{
	return make_slices(out, iteration, attempt, nodes, n, floats, codec);
}

int slices_new(struct slices **out, uint64_t iteration, uint32_t attempt, const uint16_t *nodes,
	       uint32_t n, uint16_t me, size_t floats, const struct sum_codec *codec)
{
	struct slices *r;
	int rc = make_slices(&r, iteration, attempt, nodes, n, floats, codec);

	if (rc)
		return rc;
	r->mine = index_of(r, me);
	if (r->mine == UINT32_MAX) {
		slices_free(r);
		return -EINVAL;
	}
	r->parts = malloc(n * slices_bytes(r, r->mine) + 1);
	if (!r->parts) {
		slices_free(r);
		return -ENOMEM;
	}
	*out = r;
	return 0;
}

void slices_free(struct slices *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->n; i++) {
		free(r->part_spans[i].list);
		free(r->sum_spans[i].list);
	}
	free(r->part_spans);
	free(r->sum_spans);
	if (!is_fp32(r))
		free(r->sums);
	free(r->staging);
	free(r->sum_at);
	free(r->parts);
	free(r->part_in);
	free(r->sum_in);
	free(r->hashes);
	free(r);
}

enum tensor_format slices_format(const struct slices *r)
{
	return r->codec.format;
}

uint64_t slices_iteration(const struct slices *r)
{
	return r->iteration;
}

uint32_t slices_attempt(const struct slices *r)
{
	return r->attempt;
}

uint32_t slices_count(const struct slices *r)
{
	return r->n;
}

uint32_t slices_mine(const struct slices *r)
{
	return r->mine;
}

uint16_t slices_owner(const struct slices *r, uint32_t slice)
{
	assert(slice < r->n);
	return r->nodes[slice];
}

void slices_range(const struct slices *r, uint32_t slice, size_t *from, size_t *floats)
{
	assert(slice < r->n);
	sum_codec_slice(r->floats, r->n, slice, from, floats);
}

size_t slices_bytes(const struct slices *r, uint32_t slice)
{
	assert(slice < r->n);
	return r->sum_at[slice + 1] - r->sum_at[slice];
}

/* ---- work in blocks, by several threads ---- */

/* Work that several threads share. The work has n units. Each thread takes the unit `next` and
 * increments `next`. */
struct work {
	void (*unit)(struct work *w, size_t unit, float *scratch);
	size_t n;
	atomic_size_t next;
	struct slices *r;
	struct codec codec;
	const struct sum_block *blocks;
	size_t from;           /* first float of the slice */
	const float *gradient; /* encoding: the floats to encode */
	unsigned char *bytes;  /* encoding: the result; decoding: the input */
	unsigned char *digests;
	/* The sum of the squares of each block of the staging buffer; there are squares_blocks
	 * blocks. */
	double *squares;
	size_t n_squares;      /* number of units that compute `squares`; the other units hash */
};

static void take_units(void *work, uint32_t part, uint32_t parts)
{
	struct work *w = work;
	float scratch[SUM_BLOCK];

	(void)part;
	(void)parts;
	for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->n;)
		w->unit(w, i, scratch);
}

static void do_work(struct work *w, struct pool *pool)
{
	if (pool)
		pool_run(pool, take_units, w);
	else
		take_units(w, 0, 1);
}

/* Runs w->unit for each block of a slice. If pool is NULL, the caller's thread runs all of
 * them. */
static void do_blocks(struct work *w, uint32_t slice, struct pool *pool)
{
	struct sum_block *blocks;
	size_t floats;

	slices_range(w->r, slice, &w->from, &floats);
	w->n = sum_codec_cut(&w->r->codec, w->from, floats, SUM_BLOCK, &blocks);
	w->blocks = blocks;
	w->codec = codec_of_sum(&w->r->codec);
	atomic_init(&w->next, 0);
	do_work(w, pool);
	free(blocks);
}

static void encode_block(struct work *w, size_t unit, float *scratch)
{
	const struct sum_block *b = &w->blocks[unit];

	(void)scratch;
	codec_encode(&w->codec, w->bytes + b->at, w->gradient + b->from, b->n);
}

void slices_encode(const struct slices *r, uint32_t slice, void *to, const float *gradient,
		   struct pool *pool)
{
	struct work w = { .unit = encode_block, .r = (struct slices *)(uintptr_t)r,
			  .gradient = gradient, .bytes = to };

	do_blocks(&w, slice, pool);
}

int slices_encode_on(const struct slices *r, uint32_t slice, void *to, struct stage *s)
{
	size_t from, n;

	slices_range(r, slice, &from, &n);
	return stage_encode_gradient(s, &r->codec, from, n, to);
}

void *slices_own_part(struct slices *r)
{
	return r->parts + r->mine * slices_bytes(r, r->mine);
}

int slices_own_part_in(struct slices *r)
{
	if (r->part_in[r->mine])
		return -EALREADY;
	r->part_in[r->mine] = true;
	r->n_parts++;
	return 0;
}

/* ---- pieces ---- */

static int insert_span(struct spans *s, uint32_t at, size_t from, size_t to)
{
	uint32_t room = s->room ? 2 * s->room : 4;

	if (s->n == SPANS_MOST)
		return -EINVAL;
	if (s->n == s->room) {
		s->list = alloc_resize(s->list, room, sizeof(s->list[0]));
		s->room = room;
	}
	memmove(s->list + at + 1, s->list + at, (s->n - at) * sizeof(s->list[0]));
	s->list[at] = (struct span){ from, to };
	s->n++;
	return 0;
}

/* Records that the bytes [from, to) have arrived. Merges the range with the spans that it
 * touches. -EALREADY: all these bytes were recorded before. -EINVAL: only some of these bytes
 * were recorded before, or there are too many spans. */
static int add_span(struct spans *s, size_t from, size_t to)
{
	uint32_t at = s->n; /* the first span that begins after `from` */
	bool left, right;

	while (at > 0 && s->list[at - 1].from > from)
		at--;
	if (at > 0 && s->list[at - 1].to >= to)
		return -EALREADY;
	if ((at > 0 && s->list[at - 1].to > from) || (at < s->n && s->list[at].from < to))
		return at < s->n && s->list[at].from == from && s->list[at].to >= to ? -EALREADY
										       : -EINVAL;
	left = at > 0 && s->list[at - 1].to == from;
	right = at < s->n && s->list[at].from == to;
	if (!left && !right)
		return insert_span(s, at, from, to);
	if (left)
		s->list[at - 1].to = right ? s->list[at].to : to;
	else
		s->list[at].from = from;
	if (left && right) {
		s->n--;
		memmove(s->list + at, s->list + at + 1, (s->n - at) * sizeof(s->list[0]));
	}
	return 0;
}

/* Returns the unit for pieces of a slice. The offset and the length of a piece must be multiples
 * of the unit. In fp32 the unit is a float, so that the caller can check the floats of each
 * piece. */
static size_t unit_of(const struct slices *r)
{
	return is_fp32(r) ? sizeof(float) : 1;
}

/* Copies a piece of an encoded slice into its place. Sets *all to true if the slice is now
 * complete. */
static int put_piece(const struct slices *r, struct spans *s, unsigned char *to, uint32_t slice,
		     uint64_t offset, const void *body, size_t bytes, bool *all)
{
	size_t room = slices_bytes(r, slice);
	int rc;

	*all = room == 0;
	if (bytes % unit_of(r) || offset % unit_of(r) || offset > room || bytes > room - offset ||
	    (bytes == 0 && room))
		return -EINVAL;
	rc = bytes ? add_span(s, (size_t)offset, (size_t)offset + bytes) : 0;
	if (rc)
		return rc;
	if (bytes)
		memcpy(to + offset, body, bytes);
	*all = room == 0 || (s->n == 1 && s->list[0].from == 0 && s->list[0].to == room);
	return 0;
}

/* Checks the scales in an encoded slice that has arrived completely. If no correct computation
 * gives these scales, drops the received bytes. The slice can then be sent again. */
static int check_slice(const struct slices *r, struct spans *s, const unsigned char *encoded,
		       uint32_t slice)
{
	size_t from, floats;

	slices_range(r, slice, &from, &floats);
	if (is_fp32(r) || sum_codec_is_plausible(&r->codec, encoded, from, floats))
		return 0;
	s->n = 0;
	return -EBADMSG;
}

int slices_put_part(struct slices *r, uint16_t from, uint32_t slice, uint64_t offset,
		    const void *body, size_t bytes)
{
	uint32_t i = index_of(r, from);
	unsigned char *part;
	bool all;
	int rc;

	if (i == UINT32_MAX || slice != r->mine)
		return -EINVAL;
	if (r->part_in[i])
		return -EALREADY;
	part = r->parts + i * slices_bytes(r, slice);
	rc = put_piece(r, &r->part_spans[i], part, slice, offset, body, bytes, &all);
	if (rc == 0 && all && i != r->mine)
		rc = check_slice(r, &r->part_spans[i], part, slice);
	if (rc == 0 && all) {
		r->part_in[i] = true;
		r->n_parts++;
	}
	return rc;
}

bool slices_parts_in(const struct slices *r)
{
	return r->n_parts == r->n;
}

/* Adds all replicas' parts of one block, and encodes the sum. A block is small enough to stay in
 * the cache. */
static void sum_block(struct work *w, size_t unit, float *scratch)
{
	const struct slices *r = w->r;
	const struct sum_block *b = &w->blocks[unit];
	size_t bytes = slices_bytes(r, r->mine);
	float *sum = r->staging + b->from;

	codec_decode(&w->codec, sum, r->parts + b->at, b->n);
	for (uint32_t i = 1; i < r->n; i++) {
		const unsigned char *part = r->parts + i * bytes + b->at;

		if (!is_fp32(r))
			codec_decode(&w->codec, scratch, part, b->n);
		stage_add(sum, is_fp32(r) ? (const float *)(const void *)part : scratch, b->n);
	}
	if (!is_fp32(r))
		codec_encode(&w->codec, r->sums + r->sum_at[r->mine] + b->at, sum, b->n);
}

void slices_sum(struct slices *r, struct pool *pool)
{
	struct work w = { .unit = sum_block, .r = r };

	assert(slices_parts_in(r));
	do_blocks(&w, r->mine, pool);
}

int slices_sum_on(struct slices *r, struct stage *s)
{
	const void **parts = alloc_array(r->n, sizeof(parts[0]));
	size_t from, n;
	int rc;

	assert(slices_parts_in(r));
	slices_range(r, r->mine, &from, &n);
	for (uint32_t i = 0; i < r->n; i++)
		parts[i] = i == r->mine ? NULL : r->parts + i * slices_bytes(r, r->mine);
	rc = stage_add_parts(s, &r->codec, from, n, parts, r->n, r->sums + r->sum_at[r->mine]);
	free(parts);
	return rc;
}

const void *slices_own_sum(const struct slices *r)
{
	return r->sums + r->sum_at[r->mine];
}

void slices_summed(struct slices *r)
{
	assert(!r->sum_in[r->mine]);
	r->sum_in[r->mine] = true;
	r->n_sums++;
}

int slices_put_sum(struct slices *r, uint16_t from, uint32_t slice, uint64_t offset,
		   const void *body, size_t bytes)
{
	unsigned char *sum;
	bool all;
	int rc;

	if (slice >= r->n || slice == r->mine || r->nodes[slice] != from)
		return -EINVAL;
	if (r->sum_in[slice])
		return -EALREADY;
	sum = r->sums + r->sum_at[slice];
	rc = put_piece(r, &r->sum_spans[slice], sum, slice, offset, body, bytes, &all);
	/* The node checks the scales only if it is a replica. The holder of a standby copy need
	 * not check them, because the replicas report a sum that is not finite. */
	if (rc == 0 && all && r->mine != UINT32_MAX)
		rc = check_slice(r, &r->sum_spans[slice], sum, slice);
	if (rc == 0 && all) {
		r->sum_in[slice] = true;
		r->n_sums++;
	}
	return rc;
}

bool slices_complete(const struct slices *r)
{
	return r->n_sums == r->n;
}

static void decode_block(struct work *w, size_t unit, float *scratch)
{
	const struct sum_block *b = &w->blocks[unit];

	(void)scratch;
	codec_decode(&w->codec, w->r->staging + b->from, w->bytes + b->at, b->n);
}

void slices_decode(struct slices *r, struct pool *pool)
{
	assert(slices_complete(r));
	for (uint32_t j = 0; !is_fp32(r) && j < r->n; j++) {
		struct work w = { .unit = decode_block, .r = r, .bytes = r->sums + r->sum_at[j] };

		do_blocks(&w, j, pool);
	}
}

int slices_check_on(struct slices *r, struct stage *s, double *squares)
{
	size_t from, n;
	int rc = 0;

	assert(slices_complete(r));
	for (uint32_t j = 0; rc == 0 && j < r->n; j++) {
		slices_range(r, j, &from, &n);
		/* slices_sum_on keeps the numbers of this node's slice on the device. */
		if (j != r->mine)
			rc = stage_put_sum(s, &r->codec, from, n, r->sums + r->sum_at[j]);
	}
	return rc ? rc : stage_check_sum(s, r->n, r->hashes, squares);
}

int slices_awaits(const struct slices *r)
{
	const bool *in = r->parts && !slices_parts_in(r) ? r->part_in : r->sum_in;

	for (uint32_t i = 0; i < r->n; i++)
		if (!in[i] && i != r->mine)
			return r->nodes[i];
	return -1;
}

/* Returns the number of units (HASH_UNIT) in which a slice is hashed. */
static size_t hash_units(const struct slices *r, uint32_t slice)
{
	size_t from, n;

	slices_range(r, slice, &from, &n);
	return (n * sizeof(float) + HASH_UNIT - 1) / HASH_UNIT;
}

/* Returns the bytes of the digests of all leaves of a slice. */
static size_t digests_bytes(const struct slices *r, uint32_t slice)
{
	size_t from, n;

	slices_range(r, slice, &from, &n);
	return hash_leaves(n * sizeof(float)) * HASH_DIGEST;
}

static void add_squares(struct work *w, size_t unit)
{
	size_t at = unit * SQUARES_UNIT, left = w->r->floats - at;

	squares_of_blocks(w->squares + at / SQUARES_BLOCK, w->r->staging + at,
			  left < SQUARES_UNIT ? left : SQUARES_UNIT);
}

/* Adds the squares of a unit, or hashes the leaves of a unit. */
static void hash_unit(struct work *w, size_t unit, float *scratch)
{
	const struct slices *r = w->r;
	unsigned char *digests = w->digests;
	size_t from, n, at;
	uint32_t j = 0;

	(void)scratch;
	if (unit < w->n_squares) {
		add_squares(w, unit);
		return;
	}
	for (unit -= w->n_squares; unit >= hash_units(r, j); j++) {
		unit -= hash_units(r, j);
		digests += digests_bytes(r, j);
	}
	slices_range(r, j, &from, &n);
	at = unit * HASH_UNIT;
	n = n * sizeof(float) - at < HASH_UNIT ? n * sizeof(float) - at : HASH_UNIT;
	hash_digests(digests + at / HASH_LEAF * HASH_DIGEST,
		     (const unsigned char *)(r->staging + from) + at, n);
}

double slices_hash(struct slices *r, struct pool *pool)
{
	struct work w = { .unit = hash_unit, .r = r,
			  .n_squares = (r->floats + SQUARES_UNIT - 1) / SQUARES_UNIT };
	size_t from, n, bytes = 0, blocks = squares_blocks(r->floats);
	unsigned char *digests;
	double sum;

	assert(slices_complete(r));
	w.n = w.n_squares;
	for (uint32_t j = 0; j < r->n; j++) {
		w.n += hash_units(r, j);
		bytes += digests_bytes(r, j);
	}
	digests = w.digests = alloc_new(bytes + 1);
	w.squares = alloc_array(blocks + 1, sizeof(w.squares[0]));
	do_work(&w, pool);
	for (uint32_t j = 0; j < r->n; j++) {
		slices_range(r, j, &from, &n);
		r->hashes[j] = hash_root(digests, n * sizeof(float));
		digests += digests_bytes(r, j);
	}
	sum = squares_total(w.squares, blocks);
	free(w.squares);
	free(w.digests);
	return sum;
}

const uint64_t *slices_hashes(const struct slices *r)
{
	return r->hashes;
}

const float *slices_staging(const struct slices *r)
{
	return r->staging;
}
