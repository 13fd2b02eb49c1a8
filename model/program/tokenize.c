/* Text to token shards: files are read one after another, tokens are written as they come,
 * and the shard gets its name when it is whole. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/file.h"
#include "model/text/corpus.h"
#include "model/program/commands.h"
#include "model/program/interrupt.h"
#include "model/program/options.h"
#include "model/text/tokenizer.h"

static const char help[] =
	"usage: skippipe tokenize --out SHARD.bin [--tokenizer FILE.model] --corpus FILE...\n"
	"Turns texts into a token shard that training maps into memory, in the layout of "
	"llm.c's\n"
	".bin files: the pieces of a SentencePiece model, or without --tokenizer bytes. A "
	"file\n"
	"named .jsonl gives the \"text\" of each line, each a document; token shards (.bin) "
	"are\n"
	"joined as they are.\n";

enum {
	BLOCK = 1 << 20,      /* bytes of text encoded at once */
	VOCAB_MOST = 1 << 16, /* a token has 16 bits */
};

struct shard {
	FILE *out;
	struct tokenizer *tokenizer;
	uint64_t tokens;
	int failed;             /* errno of the first write that failed */
	uint64_t done, all;     /* bytes read, and of all files */
	uint32_t texts, shards; /* files of each kind */
	bool bar;
};

static void put_token(struct shard *s, int32_t token)
{
	unsigned char bytes[2] = { (unsigned char)token, (unsigned char)(token >> 8) };

	if (fwrite(bytes, 1, 2, s->out) != 2 && !s->failed)
		s->failed = errno;
	s->tokens++;
}

static void show_progress(const struct shard *s, bool last)
{
	enum { WIDTH = 24 };
	double part = s->all ? (double)s->done / (double)s->all : 0;
	int full = last ? WIDTH : (int)(part < 1 ? part * WIDTH : WIDTH);

	if (s->bar)
		fprintf(stderr,
			"\r[%.*s%.*s] %" PRIu64 " of %" PRIu64 " MiB, %" PRIu64 " tokens%s",
			full, "########################", WIDTH - full,
			"                        ", s->done >> 20, s->all >> 20, s->tokens,
			last ? "\n" : "");
}

static void begin_document(struct shard *s)
{
	int32_t token = tokenizer_begin(s->tokenizer);

	if (token >= 0)
		put_token(s, token);
}

static int put_encoded(struct shard *s, const char *path, const char *text, size_t size,
		       struct error *err)
{
	int32_t *tokens;
	size_t n;
	int rc = tokenizer_encode(s->tokenizer, text, size, &tokens, &n);

	if (rc)
		return error_set(err, rc, "%s: a text that cannot be encoded", path);
	for (size_t i = 0; i < n; i++)
		put_token(s, tokens[i]);
	free(tokens);
	return 0;
}

static int put_line(struct shard *s, const char *path, const char *line, size_t size,
		    uint64_t number, struct error *err)
{
	json_error_t at;
	json_t *json = json_loadb(line, size, 0, &at);
	json_t *text = json_object_get(json, "text");
	int rc;

	if (!json_is_string(text)) {
		json_decref(json);
		return error_set(err, -EINVAL,
				 "%s: line %" PRIu64 ": expected an object with a \"text\"",
				 path, number);
	}
	begin_document(s);
	rc = put_encoded(s, path, json_string_value(text), json_string_length(text), err);
	if (tokenizer_begin(s->tokenizer) < 0)
		put_token(s, '\n'); /* bytes have no other way to say where a document ends */
	json_decref(json);
	return rc;
}

static int put_jsonl(struct shard *s, FILE *in, const char *path, struct error *err)
{
	char *line = NULL;
	size_t room = 0;
	uint64_t number = 0;
	ssize_t n;
	int rc = 0;

	while (!rc && !interrupt_seen() && (n = getline(&line, &room, in)) > 0) {
		if (s->done >> 20 != (s->done + (uint64_t)n) >> 20)
			show_progress(s, false);
		s->done += (uint64_t)n;
		rc = put_line(s, path, line, (size_t)n, ++number, err);
	}
	free(line);
	return rc;
}

/* Returns how much of a block is encoded now: up to the end of its last line, so that no piece is
 * cut, or all of it. */
static size_t whole_lines(const char *block, size_t n, bool last)
{
	const char *end = last ? NULL : memrchr(block, '\n', n);

	return end ? (size_t)(end - block) + 1 : n;
}

static int put_text(struct shard *s, FILE *in, const char *path, struct error *err)
{
	char *block = malloc(BLOCK);
	size_t held = 0, n;
	int rc = 0;

	if (!block)
		return error_set(err, -ENOMEM, "no memory to read %s", path);
	begin_document(s);
	do {
		size_t now;

		n = fread(block + held, 1, BLOCK - held, in);
		s->done += n;
		held += n;
		now = whole_lines(block, held, n == 0);
		if (now > 0)
			rc = put_encoded(s, path, block, now, err);
		held -= now;
		memmove(block, block + now, held);
		show_progress(s, false);
	} while (!rc && !interrupt_seen() && n > 0);
	free(block);
	return rc;
}

/* The tokens of another shard; its header has been read. */
static int put_shard(struct shard *s, FILE *in, const char *path, const uint32_t header[3],
		     struct error *err)
{
	unsigned char bytes[2];
	uint64_t n = 0;

	if (header[1] != 1)
		return error_set(err, -EINVAL,
				 "%s: token shard of version %" PRIu32 ", expected 1", path,
				 header[1]);
	for (; fread(bytes, 1, 2, in) == 2 && !interrupt_seen(); n++) {
		put_token(s, bytes[0] | bytes[1] << 8);
		s->done += 2;
		if (n % BLOCK == 0)
			show_progress(s, false);
	}
	if (n != header[2] && !interrupt_seen())
		return error_set(err, -EINVAL,
				 "%s: %" PRIu64 " tokens where its header promises %" PRIu32,
				 path, n, header[2]);
	return 0;
}

static bool ends_in(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n >= m && strcmp(path + n - m, end) == 0;
}

static int put_kind(struct shard *s, FILE *in, const char *path, struct error *err)
{
	uint32_t header[256];
	size_t n;

	if (ends_in(path, ".jsonl")) {
		s->texts++;
		return put_jsonl(s, in, path, err);
	}
	if (!ends_in(path, ".bin")) {
		s->texts++;
		return put_text(s, in, path, err);
	}
	s->shards++;
	n = fread(header, 1, sizeof(header), in);
	s->done += n;
	if (n != sizeof(header) || header[0] != CORPUS_SHARD_MAGIC)
		return error_set(err, -EINVAL, "%s: not a token shard", path);
	return put_shard(s, in, path, header, err);
}

static int put_file(struct shard *s, const struct options *o, uint32_t i, struct error *err)
{
	const char *path = o->corpus[i];
	FILE *in = fopen(path, "rb");
	int rc;

	if (!in)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	rc = put_kind(s, in, path, err);
	if (!rc && ferror(in))
		rc = error_set(err, -EIO, "%s: cannot be read", path);
	fclose(in);
	if (!rc && s->shards && (s->texts || o->tokenizer))
		rc = error_set(
			err, -EINVAL,
			"%s: a token shard is joined with others alone, not with texts or "
			"a tokenizer",
			path);
	if (!rc && s->failed)
		rc = error_set(err, -s->failed, "%s: %s", o->out, strerror(s->failed));
	return rc;
}

/* Bytes of all files, for the bar. */
static uint64_t total_bytes(const struct options *o)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < o->n_corpus; i++) {
		struct stat st;

		if (stat(o->corpus[i], &st) == 0 && S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
	}
	return sum;
}

static int open_tokenizer(struct shard *s, const struct options *o, struct error *err)
{
	int rc = tokenizer_open(&s->tokenizer, o->tokenizer, err);

	if (!rc && tokenizer_vocab(s->tokenizer) > VOCAB_MOST)
		rc = error_set(err, -EINVAL,
			       "%s: %" PRIu32 " pieces; a shard's tokens have 16 bits",
			       o->tokenizer, tokenizer_vocab(s->tokenizer));
	return rc;
}

static int write_header(struct shard *s)
{
	uint32_t words[256] = { CORPUS_SHARD_MAGIC, 1, (uint32_t)s->tokens };

	return fseek(s->out, 0, SEEK_SET) || fwrite(words, sizeof(words), 1, s->out) != 1 ||
	       fflush(s->out);
}

/* To a file beside the shard's name, which it gets when it is whole. */
static int write_shard(struct shard *s, const struct options *o, struct error *err)
{
	struct file_aside a;
	int rc = file_aside_open(&a, o->out, 0644, err);

	if (rc)
		return rc;
	s->out = fdopen(dup(a.fd), "wb");
	if (!s->out)
		return file_aside_close(
			&a, error_set(err, -errno, "%s: %s", o->out, strerror(errno)), err);
	if (write_header(s))
		s->failed = errno;
	for (uint32_t i = 0; i < o->n_corpus && !rc; i++)
		rc = put_file(s, o, i, err);
	if (!rc && interrupt_seen())
		rc = error_set(err, -EINTR, "interrupted: nothing written");
	show_progress(s, true);
	if (!rc && s->tokens > UINT32_MAX)
		rc = error_set(err, -EFBIG, "%s: more than 2^32 tokens; make several shards",
			       o->out);
	if (!rc && write_header(s))
		rc = error_set(err, -errno, "%s: %s", o->out, strerror(errno));
	if (fclose(s->out) && !rc)
		rc = error_set(err, -errno, "%s: %s", o->out, strerror(errno));
	return file_aside_close(&a, rc, err);
}

static int tokenize_files(const struct options *o, struct error *err)
{
	struct shard s = { .all = total_bytes(o), .bar = isatty(STDERR_FILENO) };
	int rc = open_tokenizer(&s, o, err);

	if (!rc)
		rc = write_shard(&s, o, err);
	if (!rc)
		printf("%" PRIu64 " tokens in %s\n", s.tokens, o->out);
	tokenizer_free(s.tokenizer);
	return rc;
}

int command_tokenize(int argc, char **argv)
{
	struct options o;
	struct error err = { "" };
	int rc = options_parse(&o, argc, argv, help);

	if (!rc && (o.n_files || !o.n_corpus || !o.out)) {
		fputs(help, stderr);
		rc = EXIT_USAGE;
	}
	interrupt_catch();
	if (!rc && tokenize_files(&o, &err))
		rc = options_fail(argv[0], &err);
	options_fini(&o);
	return rc < 0 ? 0 : rc;
}
