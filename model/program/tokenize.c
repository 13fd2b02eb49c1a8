/* skippipe tokenize: encodes text to token shards. Files are read one after another. Tokens are
 * written to a temporary file, which gets the shard's name when it is complete. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <unistr.h>

#include "base/file.h"
#include "base/not_text.h"
#include "model/program/commands.h"
#include "model/program/interrupt.h"
#include "model/program/options.h"
#include "model/program/out.h"
#include "model/text/jsonl.h"
#include "model/text/shard.h"
#include "model/text/tokenizer.h"

static const char intro[] =
	"usage: skippipe tokenize --out SHARD.bin --corpus FILE... [options]\n"
	"\n"
	"Turns texts into a token shard, which training maps into memory. The layout is that of\n"
	"llm.c's .bin files. The tokens are those of a tokenizer.json (byte-level BPE) or of a\n"
	"SentencePiece model; without --tokenizer they are bytes. Tokens have 16 bits, or 32 if\n"
	"the vocabulary has more than 65536. In a file named .jsonl, .ndjson or .json the\n"
	"\"text\" of each line is a document. Token shards (.bin) are joined unchanged.\n"
	"\n";

/* SentencePiece adds up likelihoods as floats, which are exact enough for some thousands of pieces.
 * In a longer text, rounding errors would change the choice of pieces. */
enum {
	BLOCK = 1 << 15,      /* limit of the bytes of text that are encoded at a time */
	BLOCK_MOST = 1 << 28, /* limit for text that cannot be cut */
	/* The upper half of a token of 32 bits is below this, because ids are below 4 * 2^16. */
	UPPER_HALF = 4,
	/* Number of tokens that are copied between two updates of the progress bar. */
	TOKENS = 1 << 20,
};

struct shard_file {
	FILE *out;
	struct tokenizer *tokenizer;
	size_t width; /* bytes of a token; 0: unknown so far */
	uint64_t tokens;
	int failed;             /* errno of the first failed write */
	uint64_t done, all;     /* bytes read so far, and bytes of all files */
	uint32_t texts, shards; /* number of text files, and number of shards */
	uint64_t documents;     /* number of documents; a shard with tokens counts as one */
	uint32_t most[2];       /* largest token at even and at odd positions: see put_raw */
	bool bar;
};

static void put_token(struct shard_file *s, uint32_t token)
{
	unsigned char bytes[4] = { (unsigned char)token, (unsigned char)(token >> 8),
				   (unsigned char)(token >> 16), (unsigned char)(token >> 24) };

	if (fwrite(bytes, 1, s->width, s->out) != s->width && !s->failed)
		s->failed = errno;
	s->tokens++;
}

static void show_progress(const struct shard_file *s, bool last)
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

static void begin_document(struct shard_file *s)
{
	int32_t token = tokenizer_document(s->tokenizer);

	if (token >= 0)
		put_token(s, (uint32_t)token);
}

/* A place in a file: numbers of line and byte, from 1. byte 0: unknown, as inside a string of
 * JSON. */
struct place {
	uint64_t line, byte;
};

static void advance(struct place *p, const char *from, const char *to)
{
	for (; p->byte && from < to; from++) {
		p->byte = *from == '\n' ? 1 : p->byte + 1;
		p->line += *from == '\n';
	}
}

/* Reports that text[at] has no token. place: where the text begins; at == size: the byte is
 * unknown. */
static int report_lacking(const char *path, struct place place, const char *text, size_t size,
			  size_t at, struct error *err)
{
	char byte[40] = "";

	if (at == size)
		return error_set(err, -EINVAL,
				 "%s: line %" PRIu64 " or later: a character whose normal form "
				 "has no token",
				 path, place.line);
	advance(&place, text, text + at);
	if (place.byte)
		snprintf(byte, sizeof(byte), ", byte %" PRIu64, place.byte);
	return error_set(err, -EINVAL, "%s: line %" PRIu64 "%s: no token for the byte 0x%02x", path,
			 place.line, byte, (unsigned char)text[at]);
}

/* Writes the text's tokens, except for the first `skip` tokens. place: place of the text's first
 * byte. */
static int put_encoded(struct shard_file *s, const char *path, struct place place,
		       const char *text, size_t size, size_t skip, struct error *err)
{
	int32_t *tokens;
	size_t n;
	int rc = tokenizer_encode(s->tokenizer, text, size, &tokens, &n);

	if (rc == -EINVAL)
		return report_lacking(path, place, text, size, n, err);
	if (rc)
		return error_set(err, rc, "%s: %s", path, strerror(-rc));
	for (size_t i = skip; i < n; i++)
		put_token(s, (uint32_t)tokens[i]);
	free(tokens);
	return 0;
}

/* The documents without text in a file. */
struct left_out {
	/* Number of documents that are null, and number of documents that are empty; line of the
	 * first document without text. */
	uint64_t null, empty, first;
};

/* Writes a newline after a document, unless a token marks the beginning of the next document. */
static int put_line(struct shard_file *s, struct left_out *left_out, const char *path,
		    const char *line, size_t size, uint64_t number, struct error *err)
{
	struct jsonl *json;
	const char *text;
	int rc = jsonl_read(&json, line, size, path, number, err);

	left_out->null += rc == JSONL_NULL;
	left_out->empty += rc == JSONL_EMPTY;
	if ((rc == JSONL_NULL || rc == JSONL_EMPTY) && !left_out->first)
		left_out->first = number;
	if (rc)
		return rc < 0 ? rc : 0;
	s->documents++;
	begin_document(s);
	text = jsonl_text(json, &size);
	rc = put_encoded(s, path, (struct place){ number, 0 }, text, size, 0, err);
	if (!rc && tokenizer_document(s->tokenizer) < 0)
		rc = put_encoded(s, path, (struct place){ number, 0 }, "\n", 1, 0, err);
	jsonl_free(json);
	return rc;
}

static void report_left_out(const struct left_out *l, const char *path, uint64_t documents)
{
	if (l->first)
		fprintf(stderr,
			"skippipe tokenize: %s: %" PRIu64 " of %" PRIu64
			" documents are left out: \"text\" is null in %" PRIu64
			" and empty in %" PRIu64 ", first in line %" PRIu64 "\n",
			path, l->null + l->empty, documents + l->null + l->empty, l->null, l->empty,
			l->first);
}

static int put_jsonl(struct shard_file *s, FILE *in, const char *path, struct error *err)
{
	struct left_out left_out = { .first = 0 };
	uint64_t before = s->documents;
	char *line = NULL;
	size_t room = 0;
	uint64_t number = 0;
	ssize_t n;
	int rc = 0;

	while (!rc && !interrupt_seen() && (n = getline(&line, &room, in)) > 0) {
		if (s->done >> 20 != (s->done + (uint64_t)n) >> 20)
			show_progress(s, false);
		s->done += (uint64_t)n;
		rc = put_line(s, &left_out, path, line, (size_t)n, ++number, err);
	}
	free(line);
	if (!rc)
		report_left_out(&left_out, path, s->documents - before);
	return rc;
}

/* A block of the text that is being read. Its first `context` bytes repeat the end of the previous
 * block. The tokens of these bytes were written with the previous block, so the first `skip` tokens
 * are not written again. */
struct block {
	char *text;
	size_t held, room, context, skip;
	/* Place of the first byte after the context, and of the block's first byte. */
	struct place place, begin;
};

/* Refuses bytes that are not text, and reports their place. Moves the place to the end of the
 * block. */
static int check_block(struct block *b, size_t size, const char *path, bool bytes,
		       struct error *err)
{
	const char *from = b->text + b->context, *end = b->text + size, *bad;

	bad = memchr(from, 0, (size_t)(end - from));
	if (!bad && !bytes)
		bad = (const char *)u8_check((const uint8_t *)from, (size_t)(end - from));
	advance(&b->place, from, bad ? bad : end);
	if (!bad)
		return 0;
	return error_set(err, -EINVAL, "%s: line %" PRIu64 ", byte %" PRIu64 ": %s", path,
			 b->place.line, b->place.byte,
			 *bad ? "not UTF-8 (convert the file first: iconv -f ENCODING -t UTF-8)"
			      : "NUL: not a text (unpack a compressed file, or convert UTF-16 "
				"to UTF-8, first)");
}

/* Encodes a block up to a place where it can be cut, or to its end. The next call encodes the bytes
 * after this place. */
static int put_block(struct shard_file *s, struct block *b, const char *path, bool last,
		     struct error *err)
{
	struct tokenizer_seam seam = { .at = b->held };
	int rc = last ? 0 : tokenizer_find_seam(s->tokenizer, b->text, b->held, &seam);

	if (rc == -EAGAIN && b->room < BLOCK_MOST) {
		char *grown = realloc(b->text, 2 * b->room);

		if (!grown)
			return error_set(err, -ENOMEM, "no memory to read %s", path);
		b->text = grown;
		b->room *= 2;
		return 0;
	}
	if (rc)
		return error_set(err, -EINVAL,
				 "%s: line %" PRIu64 ": a text of %d MiB without white space, "
				 "where it could be cut",
				 path, b->place.line, BLOCK_MOST >> 20);
	rc = check_block(b, seam.at, path, tokenizer_is_bytes(s->tokenizer), err);
	if (!rc)
		rc = put_encoded(s, path, b->begin, b->text, seam.at, b->skip, err);
	advance(&b->begin, b->text, b->text + seam.at - seam.context);
	b->held -= seam.at - seam.context;
	memmove(b->text, b->text + seam.at - seam.context, b->held);
	b->context = seam.context;
	b->skip = seam.skip;
	return rc;
}

/* Examines the first bytes of a text. Drops a byte order mark, which would become tokens at the
 * beginning of the document. */
static int begin_text(struct block *b, const char *path, struct error *err)
{
	const size_t mark = byte_order_mark(b->text, b->held);
	const char *reason = not_text_reason(b->text, b->held);

	if (reason)
		return error_set(err, -EINVAL, "%s: %s", path, reason);
	b->held -= mark;
	memmove(b->text, b->text + mark, b->held);
	b->place.byte += mark;
	b->begin.byte += mark;
	return 0;
}

static int put_text(struct shard_file *s, FILE *in, const char *path, struct error *err)
{
	struct block b = { .text = malloc(BLOCK),
			   .room = BLOCK,
			   .place = { 1, 1 },
			   .begin = { 1, 1 } };
	size_t n = b.text ? 1 : 0;
	bool has_text = false;
	int rc = n ? 0 : error_set(err, -ENOMEM, "no memory to read %s", path);

	while (!rc && n > 0 && !interrupt_seen()) {
		n = fread(b.text + b.held, 1, b.room - b.held, in);
		s->done += n;
		b.held += n;
		if (!has_text)
			rc = begin_text(&b, path, err);
		if (rc)
			break;
		if (b.held > 0 && !has_text)
			begin_document(s);
		has_text |= b.held > 0;
		rc = put_block(s, &b, path, n == 0, err);
		show_progress(s, false);
	}
	free(b.text);
	s->documents += has_text;
	if (!rc && !has_text)
		fprintf(stderr, "skippipe tokenize: %s: is empty and left out\n", path);
	return rc;
}

/* Copies the tokens of another shard, whose header has been read. */
static int put_shard(struct shard_file *s, FILE *in, const char *path, const struct shard *shard,
		     struct error *err)
{
	unsigned char bytes[4];
	uint64_t n = 0;

	if (s->width && s->width != shard->width)
		return error_set(err, -EINVAL,
				 "%s: tokens of %zu bits, after tokens of %zu: only shards of "
				 "the same width are joined",
				 path, 8 * shard->width, 8 * s->width);
	s->width = shard->width;
	s->documents += shard->tokens > 0;
	memset(s->most, 0, sizeof(s->most));
	for (; fread(bytes, 1, s->width, in) == s->width && !interrupt_seen(); n++) {
		uint32_t token = shard_token(bytes, s->width);

		put_token(s, token);
		if (token > s->most[n % 2])
			s->most[n % 2] = token;
		s->done += s->width;
		if (n % TOKENS == 0)
			show_progress(s, false);
	}
	if (n != shard->tokens && !interrupt_seen())
		return error_set(err, -EINVAL,
				 "%s: %" PRIu64 " tokens where its header promises %" PRIu32,
				 path, n, shard->tokens);
	return 0;
}

/* Copies the 16-bit tokens of a nanoGPT file, which has no header. Refuses a file of 32-bit tokens,
 * in which every second 16-bit number is an upper half and therefore small. */
static int put_raw(struct shard_file *s, FILE *in, const char *path, struct error *err)
{
	struct stat st;
	struct shard shard = { .width = 2 };
	int rc;

	if (fstat(fileno(in), &st) || !S_ISREG(st.st_mode) || st.st_size % 2 ||
	    st.st_size / 2 > UINT32_MAX)
		return error_set(err, -EINVAL, "%s: expected a file of up to 2^32 16-bit tokens",
				 path);
	shard.tokens = (uint32_t)(st.st_size / 2);
	rc = put_shard(s, in, path, &shard, err);
	if (!rc && shard.tokens % 2 == 0 && s->most[1] < UPPER_HALF && s->most[0] >= UPPER_HALF)
		rc = error_set(err, -EINVAL,
			       "%s: every second token is below %d: these are tokens of 32 bits, "
			       "as Megatron writes them for large vocabularies: --raw reads 16",
			       path, UPPER_HALF);
	return rc;
}

static int put_kind(struct shard_file *s, FILE *in, const char *path, bool raw,
		    struct error *err)
{
	unsigned char header[SHARD_HEADER];
	struct shard shard;
	size_t n;
	int rc;

	if (!file_ends_in(path, ".bin")) {
		if (raw)
			return error_set(err, -EINVAL,
					 "%s: --raw reads tokens from files named .bin", path);
		s->texts++;
		return jsonl_is_name(path) ? put_jsonl(s, in, path, err)
					   : put_text(s, in, path, err);
	}
	s->shards++;
	if (raw)
		return put_raw(s, in, path, err);
	n = fread(header, 1, sizeof(header), in);
	s->done += n;
	rc = shard_recognize(&shard, path, header, n, err);
	return rc ? rc : put_shard(s, in, path, &shard, err);
}

static int put_file(struct shard_file *s, const struct options *o, uint32_t i, struct error *err)
{
	const char *path = o->corpus[i];
	bool is_shard = file_ends_in(path, ".bin");
	struct stat st;
	FILE *in;
	int rc;

	if (is_shard ? s->texts || o->tokenizer : s->shards)
		return error_set(
			err, -EINVAL,
			"%s: a token shard is joined with others alone, not with texts or "
			"a tokenizer",
			path);
	in = fopen(strcmp(path, "-") == 0 ? "/dev/stdin" : path, "rb");
	if (!in)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (fstat(fileno(in), &st) == 0 && S_ISDIR(st.st_mode))
		rc = error_set(err, -EISDIR, "%s: a folder, not a file", path);
	else
		rc = put_kind(s, in, path, o->raw, err);
	if (!rc && ferror(in))
		rc = error_set(err, -EIO, "%s: cannot be read", path);
	fclose(in);
	if (!rc && s->failed)
		rc = error_set(err, -s->failed, "%s: %s", o->out, strerror(s->failed));
	return rc;
}

/* Returns the bytes of all files, for the progress bar. */
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

/* Opens the tokenizer. The tokens' width follows from its vocabulary if the first file is text, and
 * from the header of the first file if that is a shard. */
static int open_tokenizer(struct shard_file *s, const struct options *o, struct error *err)
{
	int rc = tokenizer_open(&s->tokenizer, o->tokenizer, err);

	if (!rc && !file_ends_in(o->corpus[0], ".bin"))
		s->width = tokenizer_vocab(s->tokenizer) > SHARD_VOCAB_16 ? 4 : 2;
	return rc;
}

static int write_header(struct shard_file *s)
{
	struct shard shard = { s->width, (uint32_t)s->tokens };
	uint32_t words[SHARD_HEADER / 4];

	shard_write_header(words, &shard);
	return fseek(s->out, 0, SEEK_SET) || fwrite(words, sizeof(words), 1, s->out) != 1 ||
	       fflush(s->out);
}

/* Opens a temporary file in the shard's folder. When this file is complete, it gets the shard's
 * name. */
static int write_shard(struct shard_file *s, const struct options *o, struct error *err)
{
	struct file_aside a;
	struct stat st;
	int rc = file_aside_open(&a, o->out, FILE_RESULT, err);

	if (rc)
		return rc;
	if (a.through && (fstat(a.fd, &st) != 0 || !S_ISCHR(st.st_mode)))
		return file_aside_close(
			&a,
			error_set(err, -ESPIPE,
				  "%s: a shard begins with the number of its tokens, which is "
				  "written last: choose a file, not a pipe or a descriptor",
				  o->out),
			err);
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
	if (!rc && s->documents == 0)
		rc = error_set(err, -EINVAL, "--corpus: no document has a text: nothing written");
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
	struct shard_file s = { .all = total_bytes(o), .bar = isatty(STDERR_FILENO) };
	int rc = 0;

	for (uint32_t i = 0; i < o->n_corpus && !rc; i++)
		rc = file_refuse_input("--out", o->out, o->corpus[i], err);
	if (!rc && o->tokenizer)
		rc = file_refuse_input("--out", o->out, o->tokenizer, err);
	if (!rc)
		rc = out_refuse_existing(o, err);
	if (!rc)
		rc = open_tokenizer(&s, o, err);
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
	int rc = options_parse(&o, argc, argv, intro);

	if (!rc && (o.files.n || !o.n_corpus || !o.out))
		rc = options_refuse_words(argv[0], intro);
	interrupt_catch();
	if (!rc && tokenize_files(&o, &err))
		rc = options_fail(argv[0], &err);
	options_fini(&o);
	return rc < 0 ? 0 : rc;
}
