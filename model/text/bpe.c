/* Implements byte-level BPE. Most words occur again and again, so the tokens of each word are
 * cached. A word that is not in the cache is merged with a heap of pairs, in n log n steps for n
 * bytes. A slower algorithm would not do, because text without spaces is one long word. */
#include "model/text/bpe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <unistr.h>

#include "base/alloc.h"
#include "base/array.h"
#include "model/text/added.h"

enum {
	CACHE = 1 << 16, /* number of words in the cache */
	WORD_MOST = 27,  /* longest word that is cached, in bytes */
	KEPT_MOST = 8,   /* limit of tokens of a cached word */
	NONE = -1,
};

struct merge {
	uint64_t pair; /* the two tokens of the pair: left << 32 | right */
	uint32_t rank;
	int32_t joined; /* the joined token; NONE: this entry is empty */
};

struct token {
	char *bytes;
	uint32_t size;
	bool is_special, exists;
};

struct cached {
	uint8_t size, n;
	char word[WORD_MOST];
	int32_t tokens[KEPT_MOST];
};

/* A token of a word that is being merged, stored at the index of its first byte. */
struct symbol {
	int32_t id; /* token of the symbol; NONE: joined to the previous symbol */
	uint32_t before, after;
};

struct candidate {
	uint32_t rank, at;
	int32_t joined;
};

struct bpe {
	struct bpe_rules rules;
	int32_t begin;    /* token that begins a text; NONE: there is none */
	int32_t document; /* token that begins a document in a corpus; NONE: there is none */
	int32_t end;      /* token that ends a text; NONE: there is none */
	struct characters *characters;
	struct token *tokens; /* the n tokens by number */
	uint32_t n;
	int32_t bytes[256]; /* token of each single byte, or NONE */
	struct merge *merges;
	size_t n_merges, merges_room; /* hash table of merges; merges_room is a power of two */
	/* hash table with words_room entries, which are token ids; a token is found by its
	 * bytes */
	int32_t *words;
	size_t words_room;
	/* Added tokens that are searched for before normalisation, and after it. */
	struct added_set early, late;
	struct cached *cache;         /* (CACHE) cached words */
	struct symbol *symbols;
	struct candidate *heap;
	size_t symbols_room, heap_room, heap_n;
};

struct output {
	int32_t *tokens;
	size_t n, room;
	int rc; /* error code of the first failure */
	/* byte of the given text that has no token; NULL: there is none, or the byte is only in the
	 * normalised text */
	const char *lacking;
};

/* ---- tables ---- */

static uint64_t hash_pair(uint64_t pair)
{
	pair *= 0x9e3779b97f4a7c15u;
	return pair ^ pair >> 32;
}

static uint64_t hash_word(const char *word, size_t size)
{
	uint64_t h = size, part;

	for (; size >= 8; word += 8, size -= 8) {
		memcpy(&part, word, 8);
		h = hash_pair(h ^ part);
	}
	part = 0;
	memcpy(&part, word, size);
	return hash_pair(h ^ part);
}

static struct merge *place_of_merge(const struct bpe *b, uint64_t pair)
{
	size_t mask = b->merges_room - 1, at = hash_pair(pair) & mask;

	while (b->merges[at].joined != NONE && b->merges[at].pair != pair)
		at = (at + 1) & mask;
	return &b->merges[at];
}

static const struct merge *find_merge(const struct bpe *b, int32_t left, int32_t right)
{
	const struct merge *m = place_of_merge(b, (uint64_t)left << 32 | (uint32_t)right);

	return m->joined == NONE ? NULL : m;
}

static int32_t *place_of_word(const struct bpe *b, const char *word, size_t size)
{
	size_t mask = b->words_room - 1, at = hash_word(word, size) & mask;

	for (; b->words[at] != NONE; at = (at + 1) & mask) {
		const struct token *t = &b->tokens[b->words[at]];

		if (t->size == size && memcmp(t->bytes, word, size) == 0)
			break;
	}
	return &b->words[at];
}

/* ---- building ---- */

static void fill_none(int32_t *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = NONE;
}

static void grow_merges(struct bpe *b)
{
	struct merge *old = b->merges;
	size_t n = b->merges_room;

	b->merges_room = n ? 2 * n : 1024;
	b->merges = alloc_array(b->merges_room, sizeof(*b->merges));
	for (size_t i = 0; i < b->merges_room; i++)
		b->merges[i].joined = NONE;
	for (size_t i = 0; i < n; i++)
		if (old[i].joined != NONE)
			*place_of_merge(b, old[i].pair) = old[i];
	free(old);
}

struct bpe *bpe_new(uint32_t tokens)
{
	struct bpe *b = alloc_new(sizeof(*b));

	b->n = tokens;
	b->begin = b->document = b->end = NONE;
	b->tokens = alloc_array(tokens + 1, sizeof(*b->tokens));
	fill_none(b->bytes, 256);
	for (b->words_room = 1024; b->words_room < 2 * (size_t)tokens;)
		b->words_room *= 2;
	b->words = alloc_array(b->words_room, sizeof(*b->words));
	fill_none(b->words, b->words_room);
	b->cache = alloc_array(CACHE, sizeof(*b->cache));
	grow_merges(b);
	return b;
}

void bpe_free(struct bpe *b)
{
	if (!b)
		return;
	for (uint32_t i = 0; i < b->n; i++)
		free(b->tokens[i].bytes);
	added_set_fini(&b->early);
	added_set_fini(&b->late);
	free(b->tokens);
	free(b->merges);
	free(b->words);
	free(b->cache);
	free(b->symbols);
	free(b->heap);
	characters_free(b->characters);
	free(b);
}

void bpe_set_rules(struct bpe *b, const struct bpe_rules *rules)
{
	characters_free(b->characters);
	b->rules = *rules;
	b->characters = characters_new(rules->split->marks);
}

/* Returns the byte that a character of GPT-2's alphabet represents, or NONE. Printable characters
 * of Latin-1 represent themselves. The characters from U+0100 on represent the other bytes, in
 * ascending order.
 */
static int byte_of(ucs4_t c)
{
	if ((c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255))
		return (int)c;
	if (c < 256 || c > 323)
		return NONE;
	c -= 256;
	return (int)(c <= 32 ? c : c <= 66 ? c - 33 + 127 : 173);
}

int bpe_add_token(struct bpe *b, uint32_t id, const char *name)
{
	struct token *t = &b->tokens[id];
	size_t size = strlen(name), n = 0;
	bool of_bytes = size > 0;

	if (t->exists)
		return -EEXIST;
	t->exists = true;
	t->bytes = alloc_new(size + 1);
	for (size_t at = 0; at < size && of_bytes;) {
		ucs4_t c;
		int byte;

		at += (size_t)u8_mbtouc(&c, (const uint8_t *)name + at, size - at);
		byte = byte_of(c);
		of_bytes = byte != NONE;
		t->bytes[n++] = (char)byte;
	}
	if (!of_bytes) {
		memcpy(t->bytes, name, size);
		t->size = (uint32_t)size;
		return 0;
	}
	t->size = (uint32_t)n;
	if (n == 1)
		b->bytes[(unsigned char)t->bytes[0]] = (int32_t)id;
	*place_of_word(b, t->bytes, n) = (int32_t)id;
	return 0;
}

void bpe_add_merge(struct bpe *b, uint32_t rank, uint32_t left, uint32_t right, uint32_t joined)
{
	if (2 * (b->n_merges + 1) > b->merges_room)
		grow_merges(b);
	b->n_merges++;
	*place_of_merge(b, (uint64_t)left << 32 | right) = (struct merge){
		.pair = (uint64_t)left << 32 | right, .rank = rank, .joined = (int32_t)joined
	};
}

void bpe_add_added(struct bpe *b, const struct bpe_added *a)
{
	struct token *t = &b->tokens[a->id];
	size_t size = strlen(a->content);
	char *content = alloc_string(a->content);

	if (!t->exists) {
		t->bytes = alloc_string(a->content);
		t->size = (uint32_t)size;
		t->exists = true;
	}
	t->is_special = a->special;
	if (a->normalized && b->rules.nfc) {
		free(content);
		content = characters_normal(b->characters, a->content, size, &size);
		if (!content)
			alloc_failed(1, size);
	}
	added_set_add(a->normalized ? &b->late : &b->early, content, size, (int32_t)a->id,
		      a->lstrip, a->rstrip);
}

uint32_t bpe_vocab(const struct bpe *b)
{
	return b->n;
}

int32_t bpe_begin(const struct bpe *b)
{
	return b->begin;
}

bool bpe_is_bytes(const struct bpe *b)
{
	bool same = b->n == 256 && b->n_merges == 0 && !b->rules.nfc && !b->rules.prefix_space &&
		    b->early.n + b->late.n == 0 && b->document == NONE;

	for (int i = 0; i < 256 && same; i++)
		same = b->bytes[i] == i;
	return same;
}

int32_t bpe_document(const struct bpe *b)
{
	return b->document;
}

void bpe_set_begin(struct bpe *b, int32_t id)
{
	b->begin = id;
}

int32_t bpe_end(const struct bpe *b)
{
	return b->end;
}

void bpe_set_end(struct bpe *b, int32_t id)
{
	b->end = id;
}

void bpe_set_document(struct bpe *b, int32_t id)
{
	b->document = id;
}

/* ---- words to tokens ---- */

static void put_tokens(struct output *out, const int32_t *tokens, size_t n)
{
	if (out->rc)
		return;
	if (out->n + n > out->room &&
	    !array_grow(&out->tokens, &out->room, out->n + n, sizeof(*tokens))) {
		out->rc = -ENOMEM;
		return;
	}
	memcpy(out->tokens + out->n, tokens, n * sizeof(*tokens));
	out->n += n;
}

static bool comes_first(const struct candidate *x, const struct candidate *y)
{
	return x->rank < y->rank || (x->rank == y->rank && x->at < y->at);
}

static void push_candidate(struct bpe *b, struct candidate c)
{
	size_t at = b->heap_n++;

	for (; at > 0 && comes_first(&c, &b->heap[(at - 1) / 2]); at = (at - 1) / 2)
		b->heap[at] = b->heap[(at - 1) / 2];
	b->heap[at] = c;
}

static struct candidate pop_candidate(struct bpe *b)
{
	struct candidate first = b->heap[0], last = b->heap[--b->heap_n];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < b->heap_n) {
		if (child + 1 < b->heap_n && comes_first(&b->heap[child + 1], &b->heap[child]))
			child++;
		if (!comes_first(&b->heap[child], &last))
			break;
		b->heap[at] = b->heap[child];
		at = child;
	}
	b->heap[at] = last;
	return first;
}

/* Adds the pair of the symbol at `at` and its successor to the heap, if the pair has a rank. */
static void consider_pair(struct bpe *b, uint32_t at, uint32_t size)
{
	uint32_t after = b->symbols[at].after;
	const struct merge *m;

	if (after >= size)
		return;
	m = find_merge(b, b->symbols[at].id, b->symbols[after].id);
	if (m)
		push_candidate(b, (struct candidate){ m->rank, at, m->joined });
}

/* Joins pairs in the order of their ranks. After a join, the heap still has candidates with one of
 * the joined symbols. Such a candidate is recognised and skipped, because the symbols at its place
 * no longer give the candidate's token. */
static void merge_symbols(struct bpe *b, uint32_t size)
{
	b->heap_n = 0;
	for (uint32_t i = 0; i + 1 < size; i++)
		consider_pair(b, i, size);
	while (b->heap_n > 0) {
		struct candidate c = pop_candidate(b);
		struct symbol *s = &b->symbols[c.at], *after;
		const struct merge *m;

		if (s->id == NONE || s->after >= size)
			continue;
		after = &b->symbols[s->after];
		m = find_merge(b, s->id, after->id);
		if (!m || m->joined != c.joined)
			continue;
		s->id = c.joined;
		s->after = after->after;
		after->id = NONE;
		if (s->after < size)
			b->symbols[s->after].before = c.at;
		if (c.at > 0)
			consider_pair(b, s->before, size);
		consider_pair(b, c.at, size);
	}
}

/* Makes room for the symbols and the heap of a word of `size` bytes. The word has at most size - 1
 * pairs at first, and each join adds at most two. */
static bool make_room(struct bpe *b, size_t size)
{
	return array_grow(&b->symbols, &b->symbols_room, size, sizeof(*b->symbols)) &&
	       array_grow(&b->heap, &b->heap_room, 3 * size, sizeof(*b->heap));
}

static void merge_word(struct bpe *b, struct output *out, const char *word, size_t size)
{
	if (size >= UINT32_MAX || !make_room(b, size)) {
		out->rc = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < size; i++) {
		int32_t id = b->bytes[(unsigned char)word[i]];

		if (id == NONE) {
			out->rc = -EINVAL;
			out->lacking = &word[i];
			return;
		}
		b->symbols[i] = (struct symbol){ id, i - 1, i + 1 };
	}
	merge_symbols(b, (uint32_t)size);
	for (uint32_t i = 0; i < size && !out->rc; i = b->symbols[i].after)
		put_tokens(out, &b->symbols[i].id, 1);
}

static void encode_word(struct bpe *b, struct output *out, const char *word, size_t size)
{
	struct cached *c = &b->cache[hash_word(word, size) % CACHE];
	size_t from = out->n;
	int32_t id;

	if (c->size == size && memcmp(c->word, word, size) == 0) {
		put_tokens(out, c->tokens, c->n);
		return;
	}
	id = b->rules.ignore_merges ? *place_of_word(b, word, size) : NONE;
	if (id != NONE)
		put_tokens(out, &id, 1);
	else
		merge_word(b, out, word, size);
	if (out->rc || size > WORD_MOST || out->n - from > KEPT_MOST)
		return;
	c->size = (uint8_t)size;
	c->n = (uint8_t)(out->n - from);
	memcpy(c->word, word, size);
	memcpy(c->tokens, out->tokens + from, c->n * sizeof(*c->tokens));
}

/* ---- text to words ---- */

static void encode_words(struct bpe *b, struct output *out, const char *text, size_t size)
{
	while (size > 0 && !out->rc) {
		size_t n = split_word(b->rules.split, b->characters, text, size);

		encode_word(b, out, text, n);
		text += n;
		size -= n;
	}
}

/* Returns the length in bytes of the run of digits (numbers = true) or of other characters with
 * which the text begins. With BPE_EACH_DIGIT, a run of digits is a single digit. */
static size_t run_of_numbers(const struct bpe *b, const char *text, size_t size, bool numbers)
{
	size_t at = 0, n;

	while (at < size && numbers == (characters_class(b->characters, text + at, &n) ==
					CHARACTER_NUMBER)) {
		at += n;
		if (numbers && b->rules.digits == BPE_EACH_DIGIT)
			break;
	}
	return at;
}

static void encode_without_added(struct bpe *b, struct output *out, const char *text, size_t size)
{
	char *spaced = NULL;

	if (b->rules.prefix_space && text[0] != ' ') {
		spaced = malloc(size + 1);
		if (!spaced) {
			out->rc = -ENOMEM;
			return;
		}
		spaced[0] = ' ';
		memcpy(spaced + 1, text, size++);
		text = spaced;
	}
	if (b->rules.digits == BPE_NO_DIGITS)
		encode_words(b, out, text, size);
	for (size_t at = 0, n; b->rules.digits != BPE_NO_DIGITS && at < size && !out->rc; at += n) {
		n = run_of_numbers(b, text + at, size - at, false);
		if (n == 0)
			n = run_of_numbers(b, text + at, size - at, true);
		encode_words(b, out, text + at, n);
	}
	free(spaced);
}

typedef void encode_part(struct bpe *b, struct output *out, const char *text, size_t size);

/* Emits the added tokens of the text, and passes the text between them to `rest`. */
static void cut_at_added(struct bpe *b, const struct added_set *set, struct output *out,
			 const char *text, size_t size, encode_part *rest)
{
	struct added_walk walk = { .text = text, .size = size };
	struct added_part part;

	while (!out->rc && added_walk_next(&walk, set, b->characters, &part)) {
		if (part.from < part.to)
			rest(b, out, text + part.from, part.to - part.from);
		if (part.id >= 0)
			put_tokens(out, &part.id, 1);
	}
}

static const char *find_lacking(const struct bpe *b, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (b->bytes[(unsigned char)text[i]] == NONE)
			return &text[i];
	return NULL;
}

static void encode_normal(struct bpe *b, struct output *out, const char *text, size_t size)
{
	const char *given = text;
	size_t given_size = size;
	char *normal = NULL;

	if (b->rules.nfc) {
		text = normal = characters_normal(b->characters, text, size, &size);
		if (!normal) {
			out->rc = -ENOMEM;
			return;
		}
	}
	cut_at_added(b, &b->late, out, text, size, encode_without_added);
	if (normal && out->rc)
		out->lacking = find_lacking(b, given, given_size);
	free(normal);
}

int bpe_encode(struct bpe *b, const char *text, size_t size, int32_t **tokens, size_t *n)
{
	struct output out = { .room = 0 };
	const uint8_t *bad = u8_check((const uint8_t *)text, size);

	if (bad) {
		*n = (size_t)((const char *)bad - text);
		return -EINVAL;
	}
	if (!array_grow(&out.tokens, &out.room, size / 4 + 16, sizeof(*out.tokens)))
		return -ENOMEM;
	cut_at_added(b, &b->early, &out, text, size, encode_normal);
	if (out.rc) {
		free(out.tokens);
		*n = out.lacking ? (size_t)(out.lacking - text) : size;
		return out.rc;
	}
	*tokens = out.tokens;
	*n = out.n;
	return 0;
}

int bpe_decode(const struct bpe *b, const int32_t *tokens, size_t n, char **text, size_t *size)
{
	size_t all = 0, at = 0;

	for (size_t i = 0; i < n; i++) {
		if (tokens[i] < 0 || (uint32_t)tokens[i] >= b->n)
			return -EINVAL;
		all += b->tokens[tokens[i]].size;
	}
	*text = malloc(all + 1);
	if (!*text)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct token *t = &b->tokens[tokens[i]];

		if (t->is_special || !t->exists)
			continue;
		memcpy(*text + at, t->bytes, t->size);
		at += t->size;
	}
	(*text)[at] = 0;
	*size = at;
	return 0;
}
