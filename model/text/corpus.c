/* Reads the corpus and finds its samples. Tokens are cut into groups of blocks. One block of each
 * group is held back for validation, so that training and validation both sample every region of
 * the text. A sample is a place in a block. The order of the samples is a keyed permutation, which
 * is computed and not stored. Every node therefore finds the same data by itself, at any
 * position. */
#include "model/text/corpus.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/process/installed.h"
#include "base/rng.h"
#include "model/hash.h"
#include "model/text/jsonl.h"
#include "model/text/shard.h"

enum {
	BLOCK = 4096,   /* number of tokens in a block */
	GROUP = 20,     /* number of blocks in a group; the last block is for validation */
	MOST = 1 << 30, /* limit of the bytes of a file */
};

struct corpus {
	unsigned char *data; /* the tokens: `size` of them, of `width` bytes each */
	size_t size;
	size_t width; /* bytes of a token: 1 for text; 2 or 4 for shards */
	uint32_t vocab;
	void *map; /* the mapped file that data points into, or NULL */
	size_t map_size;
	uint32_t sequence; /* length of a sequence, T */
	uint64_t seed;
	uint64_t hash;
	size_t block;          /* number of tokens in a block */
	/* Number of complete groups; blocks after the last complete group are for training. */
	size_t groups;
	size_t per_run;        /* number of samples in the training part of a group */
	size_t tail;           /* number of samples after the last complete group */
	size_t per_validation; /* number of samples in a validation block */
};

static int32_t token_at(const struct corpus *c, size_t i)
{
	return c->width == 1 ? c->data[i]
			     : (int32_t)shard_token(c->data + i * c->width, c->width);
}

/* ---- reading ---- */

static int append_text(struct corpus *c, const char *data, size_t size, size_t width,
		       struct error *err)
{
	size_t had = c->size * c->width;
	unsigned char *grown;

	if (c->size > 0 && c->width != width)
		return error_set(err, -EINVAL,
				 c->width == 1 || width == 1
					 ? "corpus: texts and token shards cannot be mixed"
					 : "corpus: shards of 16-bit and of 32-bit tokens cannot "
					   "be mixed");
	grown = realloc(c->data, had + size);
	if (!grown)
		return error_set(err, -ENOMEM, "no memory for %zu bytes of corpus", had + size);
	memcpy(grown + had, data, size);
	c->data = grown;
	c->width = width;
	c->size = (had + size) / width;
	return 0;
}

static int check_shard(const struct shard *shard, const char *path, size_t size,
		       struct error *err)
{
	size_t expected = SHARD_HEADER + (size_t)shard->tokens * shard->width;

	if (size != expected)
		return error_set(err, -EINVAL,
				 "%s: %s: %zu bytes where the header promises %" PRIu32 " tokens",
				 path, size < expected ? "cut short" : "too long", size,
				 shard->tokens);
	return 0;
}

static int append_file(struct corpus *c, const char *path, struct error *err)
{
	struct shard shard;
	char *data;
	size_t size;
	int rc = file_read(path, MOST, &data, &size, err);

	if (rc == -EFBIG)
		return error_set(err, rc,
				 "corpus: %s: a file over 1 GiB must be a token shard, and the "
				 "only file: skippipe tokenize makes one shard of texts or shards",
				 path);
	if (rc)
		return error_prefix(err, rc, "corpus");
	rc = size ? shard_recognize(&shard, path, data, size, err)
		  : error_set(err, -EINVAL, "%s is empty", path);
	if (!rc)
		rc = check_shard(&shard, path, size, err);
	else if (rc > 0 && jsonl_is_name(path))
		rc = error_set(err, -EINVAL,
			       "%s holds JSON lines: make a token shard of their texts with "
			       "skippipe tokenize (without --tokenizer each byte is a token)",
			       path);
	if (rc < 0)
		error_prefix(err, rc, "corpus");
	else if (rc > 0)
		rc = append_text(c, data, size, 1, err);
	else
		rc = append_text(c, data + SHARD_HEADER, size - SHARD_HEADER, shard.width, err);
	free(data);
	return rc;
}

static int use_map(struct corpus *c, const char *path, struct error *err)
{
	struct shard shard;
	int rc = shard_recognize(&shard, path, c->map, c->map_size, err);

	if (!rc)
		rc = check_shard(&shard, path, c->map_size, err);
	if (rc < 0)
		return error_prefix(err, rc, "corpus");
	if (rc > 0) {
		munmap(c->map, c->map_size);
		c->map = NULL;
		return rc;
	}
	c->data = (unsigned char *)c->map + SHARD_HEADER;
	c->width = shard.width;
	c->size = shard.tokens;
	return 0;
}

/* Maps a single shard instead of copying it, because it may be larger than memory. Returns 1 if the
 * file is not a shard. */
static int map_shard(struct corpus *c, const char *path, struct error *err)
{
	struct stat st;
	int fd, rc = 1;
	void *map;

	/* A pipe can be opened only once, so it is not examined and never counts as a shard. */
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return 1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 1;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED) {
			rc = error_set(err, -errno, "corpus: %s: %s", path, strerror(errno));
		} else {
			c->map = map;
			c->map_size = (size_t)st.st_size;
			rc = use_map(c, path, err);
		}
	}
	close(fd);
	return rc;
}

/* Selects files of the default corpus, Debian's fortunes: NAME has the text, NAME.dat is an index,
 * and NAME.u8 is the same text again. ASCII drawings are excluded because they are not English. */
static int is_fortune(const struct dirent *e)
{
	return e->d_type != DT_DIR && !strchr(e->d_name, '.') &&
	       strcmp(e->d_name, "ascii-art") != 0;
}

/* Compares bytes, so that the order of the files does not depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Reads the default corpus. A bundle contains its own copy of the texts. */
static int append_default(struct corpus *c, struct error *err)
{
	char folder[PATH_MAX], path[PATH_MAX + 256];
	struct dirent **names;
	int n, rc = 0;

	installed_path("fortunes", NULL, folder, sizeof(folder));
	if (access(folder, R_OK) != 0)
		strcpy(folder, "/usr/share/games/fortunes");
	n = scandir(folder, &names, is_fortune, by_name);
	if (n <= 0) {
		if (n == 0)
			free(names);
		return error_set(
			err, -ENOENT,
			"corpus: no texts in %s; install the package \"fortunes\" or name "
			"files with --corpus",
			folder);
	}
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
		if (!rc)
			rc = append_file(c, path, err);
		free(names[i]);
	}
	free(names);
	return rc;
}

/* ---- layout ---- */

/* Sets the vocabulary to the largest token that occurs, plus 1. */
static int find_vocab(struct corpus *c, struct error *err)
{
	uint32_t most = c->width == 1 ? 255 : 0;

	for (size_t i = 0; i < c->size && c->width > 1; i++)
		if ((uint32_t)token_at(c, i) > most)
			most = (uint32_t)token_at(c, i);
	if (most >= INT32_MAX)
		return error_set(err, -EINVAL, "corpus: token %" PRIu32 ": no such token can be",
				 most);
	c->vocab = most + 1;
	return 0;
}

/* Divides the corpus into groups of GROUP blocks, and takes one block of each group for validation.
 * If the corpus is short, its blocks are smaller. Then computes the hash, and for shards the
 * vocabulary. */
static int lay_out(struct corpus *c, struct error *err)
{
	size_t need = (size_t)c->sequence + 1, rest;

	if (c->sequence == 0)
		return error_set(err, -EINVAL, "corpus: a sequence of 0 tokens");
	if (c->size < GROUP * need)
		return error_set(
			err, -EINVAL,
			"corpus: %zu tokens are too few: %zu are needed for sequences of "
			"%" PRIu32 " tokens and a validation part",
			c->size, GROUP * need, c->sequence);
	c->block = need * 2 > BLOCK ? need * 2 : BLOCK;
	if (c->block > c->size / GROUP)
		c->block = c->size / GROUP;
	assert(c->block >= need);
	c->groups = c->size / (GROUP * c->block);
	c->per_run = ((GROUP - 1) * c->block - 1) / c->sequence;
	c->per_validation = (c->block - 1) / c->sequence;
	rest = c->size - c->groups * GROUP * c->block;
	c->tail = rest > 0 ? (rest - 1) / c->sequence : 0;
	c->hash = hash_bytes(c->data, c->size * c->width);
	return find_vocab(c, err);
}

static int finish_corpus(struct corpus **out, struct corpus *c, int rc, struct error *err)
{
	if (!rc)
		rc = lay_out(c, err);
	if (rc)
		corpus_free(c);
	else
		*out = c;
	return rc;
}

static struct corpus *begin_corpus(uint32_t sequence, uint64_t seed)
{
	struct corpus *c = alloc_new(sizeof(*c));

	c->sequence = sequence;
	c->seed = seed;
	return c;
}

int corpus_new(struct corpus **out, char *const *paths, size_t n_paths, uint32_t sequence,
	       uint64_t seed, struct error *err)
{
	struct corpus *c = begin_corpus(sequence, seed);
	int rc = 0;

	if (n_paths == 1)
		rc = map_shard(c, paths[0], err);
	if (n_paths > 1 || rc > 0)
		rc = 0;
	for (size_t i = 0; i < n_paths && !rc && !c->map; i++)
		rc = append_file(c, paths[i], err);
	if (n_paths == 0)
		rc = append_default(c, err);
	return finish_corpus(out, c, rc, err);
}

int corpus_from_text(struct corpus **out, const char *text, size_t size, uint32_t sequence,
		     uint64_t seed, struct error *err)
{
	struct corpus *c = begin_corpus(sequence, seed);

	return finish_corpus(out, c, size ? append_text(c, text, size, 1, err) : 0, err);
}

void corpus_free(struct corpus *c)
{
	if (!c)
		return;
	if (c->map)
		munmap(c->map, c->map_size);
	else
		free(c->data);
	free(c);
}

uint64_t corpus_hash(const struct corpus *c)
{
	return c->hash;
}

bool corpus_is_text(const struct corpus *c)
{
	return c->width == 1;
}

size_t corpus_bytes(const struct corpus *c)
{
	return c->size * c->width;
}

uint32_t corpus_vocab(const struct corpus *c)
{
	return c->vocab;
}

/* Checks the corpus before a run. skippipe train makes the same checks. */
int corpus_check(const struct corpus *c, uint32_t vocab, bool has_tokenizer, struct error *err)
{
	if (has_tokenizer && corpus_is_text(c))
		return error_set(err, -EINVAL,
				 "the corpus is text, and the model has a tokenizer: make a token "
				 "shard of the text with skippipe tokenize --tokenizer");
	if (corpus_vocab(c) > vocab)
		return error_set(err, -EINVAL,
				 "the corpus has tokens up to %" PRIu32
				 ", the model a vocab of %" PRIu32,
				 corpus_vocab(c) - 1, vocab);
	return 0;
}

size_t corpus_samples(const struct corpus *c)
{
	return c->groups * c->per_run + c->tail;
}

size_t corpus_validation_samples(const struct corpus *c)
{
	return c->groups * c->per_validation;
}

/* ---- order ----
 * An epoch's permutation is computed, not stored: a four-round Feistel network on the smallest
 * even number of bits that holds n, applied repeatedly until the result is below n (Black and
 * Rogaway, 2002). */

static uint64_t mix_bits(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static size_t permute_index(size_t i, size_t n, const uint64_t keys[4])
{
	unsigned half = 1;
	uint64_t mask;

	while ((uint64_t)1 << (2 * half) < n)
		half++;
	mask = ((uint64_t)1 << half) - 1;
	do {
		uint64_t left = i >> half, right = i & mask;

		for (int k = 0; k < 4; k++) {
			uint64_t next = left ^ (mix_bits(right + keys[k]) & mask);

			left = right;
			right = next;
		}
		i = (size_t)(left << half | right);
	} while (i >= n);
	return i;
}

static void copy_window(const struct corpus *c, size_t from, int32_t *tokens, int32_t *targets)
{
	for (uint32_t t = 0; t < c->sequence; t++) {
		tokens[t] = token_at(c, from + t);
		targets[t] = token_at(c, from + t + 1);
	}
}

void corpus_batch(const struct corpus *c, uint32_t shard, uint32_t n_shards, uint64_t position,
		  uint32_t batch, int32_t *tokens, int32_t *targets)
{
	size_t n = corpus_samples(c);

	for (uint32_t b = 0; b < batch; b++) {
		uint64_t at = (position * batch + b) * n_shards + shard, keys[4];
		size_t sample, group;
		struct rng r;

		rng_init_stream(&r, c->seed, at / n);
		for (int k = 0; k < 4; k++)
			keys[k] = rng_next(&r);
		sample = permute_index((size_t)(at % n), n, keys);
		group = sample / c->per_run;
		if (group > c->groups)
			group = c->groups;
		sample -= group * c->per_run;
		copy_window(c, group * GROUP * c->block + sample * c->sequence,
			    tokens + (size_t)b * c->sequence,
			    targets + (size_t)b * c->sequence);
	}
}

void corpus_validation_batch(const struct corpus *c, uint64_t k, uint32_t batch,
			     int32_t *tokens, int32_t *targets)
{
	size_t n = corpus_validation_samples(c);

	for (uint32_t b = 0; b < batch; b++) {
		size_t sample = (size_t)((k * batch + b) % n);
		/* A sample's number first chooses the group, so that successive numbers are spread
		 * over the whole text. */
		size_t group = sample % c->groups;
		size_t at = group * GROUP * c->block + (GROUP - 1) * c->block +
			    sample / c->groups * c->sequence;

		copy_window(c, at, tokens + (size_t)b * c->sequence,
			    targets + (size_t)b * c->sequence);
	}
}
