#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "model/corpus.h"
#include "model/program/commands.h"
#include "model/program/interrupt.h"
#include "model/program/options.h"

static const char help[] =
	"usage: skippipe tokenize --out SHARD.bin --corpus FILE...\n"
	"Turns texts into a token shard that training maps into memory: byte-level tokens, in "
	"the\n"
	"layout of llm.c's .bin files. A file named .jsonl gives the \"text\" of each line.\n";

struct shard {
	FILE *out;
	uint64_t tokens;
	int failed; /* errno of the first write that failed */
};

static void put(struct shard *s, unsigned char byte)
{
	unsigned char token[2] = { byte, 0 };

	if (fwrite(token, 1, 2, s->out) != 2 && !s->failed)
		s->failed = errno;
	s->tokens++;
}

static int put_line(struct shard *s, const char *path, const char *line, size_t size,
		    uint64_t number, struct error *err)
{
	json_error_t at;
	json_t *json = json_loadb(line, size, 0, &at);
	const char *text = json_string_value(json_object_get(json, "text"));

	for (const char *p = text; p && *p; p++)
		put(s, (unsigned char)*p);
	if (text)
		put(s, '\n');
	json_decref(json);
	return text ? 0
		    : error_set(err, -EINVAL,
				"%s: line %" PRIu64 ": expected an object with a \"text\"",
				path, number);
}

static int put_jsonl(struct shard *s, FILE *in, const char *path, struct error *err)
{
	char *line = NULL;
	size_t room = 0;
	uint64_t number = 0;
	ssize_t n;
	int rc = 0;

	while (!rc && !interrupt_seen() && (n = getline(&line, &room, in)) > 0)
		rc = put_line(s, path, line, (size_t)n, ++number, err);
	free(line);
	return rc;
}

static void show(const struct shard *s, uint32_t done, uint32_t files)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%" PRIu32 " of %" PRIu32 " files, %" PRIu64 " tokens%s",
			done, files, s->tokens, done == files ? "\n" : "");
}

static int put_text(struct shard *s, FILE *in, uint32_t done, uint32_t files)
{
	unsigned char block[65536];
	size_t n;

	while (!interrupt_seen() && (n = fread(block, 1, sizeof(block), in)) > 0) {
		for (size_t i = 0; i < n; i++)
			put(s, block[i]);
		show(s, done, files);
	}
	return 0;
}

static int put_file(struct shard *s, const struct options *o, uint32_t i, struct error *err)
{
	const char *path = o->corpus[i], *dot = strrchr(path, '.');
	FILE *in = fopen(path, "rb");
	int rc;

	if (!in)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (dot && strcmp(dot, ".jsonl") == 0)
		rc = put_jsonl(s, in, path, err);
	else
		rc = put_text(s, in, i, o->n_corpus);
	if (!rc && ferror(in))
		rc = error_set(err, -EIO, "%s: cannot be read", path);
	fclose(in);
	if (!rc && s->failed)
		rc = error_set(err, -s->failed, "%s: %s", o->out, strerror(s->failed));
	return rc;
}

static int write_header(struct shard *s)
{
	uint32_t words[256] = { CORPUS_SHARD_MAGIC, 1, (uint32_t)s->tokens };

	return fseek(s->out, 0, SEEK_SET) || fwrite(words, sizeof(words), 1, s->out) != 1 ||
	       fflush(s->out) || fsync(fileno(s->out));
}

static int tokenize(const struct options *o, struct error *err)
{
	char aside[4096];
	struct shard s = { .tokens = 0 };
	int rc = 0;

	snprintf(aside, sizeof(aside), "%s.tmp.%ld", o->out, (long)getpid());
	s.out = fopen(aside, "wb");
	if (!s.out)
		return error_set(err, -errno, "%s: %s", aside, strerror(errno));
	if (write_header(&s))
		s.failed = errno;
	for (uint32_t i = 0; i < o->n_corpus && !rc; i++)
		rc = put_file(&s, o, i, err);
	show(&s, o->n_corpus, o->n_corpus);
	if (!rc && interrupt_seen())
		rc = error_set(err, -EINTR, "interrupted: nothing written");
	if (!rc && s.tokens > UINT32_MAX)
		rc = error_set(err, -EFBIG, "%s: more than 2^32 tokens; make several shards",
			       o->out);
	if (!rc && write_header(&s))
		rc = error_set(err, -errno, "%s: %s", o->out, strerror(errno));
	if (fclose(s.out) && !rc)
		rc = error_set(err, -errno, "%s: %s", o->out, strerror(errno));
	if (!rc && rename(aside, o->out))
		rc = error_set(err, -errno, "%s: %s", o->out, strerror(errno));
	if (rc)
		unlink(aside);
	else
		printf("%" PRIu64 " tokens in %s\n", s.tokens, o->out);
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
	if (!rc && tokenize(&o, &err))
		rc = options_fail(argv[0], &err);
	options_fini(&o);
	return rc < 0 ? 0 : rc;
}
