/* Tests the corpus: shards are disjoint and complete, validation data is never trained on, errors
 * name the file. Texts consist of 4-byte serial numbers, so that every window shows its
 * position. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tests/test.h"
#include "model/text/corpus.h"

enum { T = 12, SIZE = 240007, BATCH = 3 };

/* Makes a text of serial numbers: any aligned 4 bytes differ from all others. */
static char *serial_text(size_t size)
{
	unsigned char *text = malloc(size + 4);

	for (size_t i = 0; i < size; i += 4)
		for (size_t k = 0; k < 4; k++)
			text[i + k] = (unsigned char)((i / 4 >> (6 * k) & 63) | k << 6);
	return (char *)text;
}

/* Returns the position of a window, by the first serial number in it. */
static size_t position_of(const int32_t *tokens)
{
	size_t skip = 0, serial = 0;

	while (tokens[skip] >> 6 != 0)
		skip++;
	for (size_t k = 0; k < 4; k++)
		serial |= (size_t)(tokens[skip + k] & 63) << (6 * k);
	return serial * 4 - skip;
}

struct fixture {
	struct corpus *corpus;
	char *text;
	unsigned char *seen; /* (SIZE) for each byte, 1: trained on, 2: validation */
	int32_t tokens[BATCH * T], targets[BATCH * T];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->text = serial_text(SIZE);
	f->seen = calloc(SIZE, 1);
	*state = f;
	return corpus_from_text(&f->corpus, f->text, SIZE, T, 9, NULL);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	corpus_free(f->corpus);
	free(f->text);
	free(f->seen);
	free(f);
	return 0;
}

static void mark(struct fixture *f, int b, unsigned char as)
{
	size_t at = position_of(f->tokens + b * T);

	for (size_t t = 0; t < T; t++) {
		assert_int_equal(f->tokens[(size_t)b * T + t], (unsigned char)f->text[at + t]);
		assert_int_equal(f->targets[(size_t)b * T + t],
				 (unsigned char)f->text[at + t + 1]);
	}
	for (size_t t = 0; t < T + 1; t++) {
		assert_true(f->seen[at + t] == 0 || f->seen[at + t] == as);
		f->seen[at + t] = as;
	}
}

#define FIXTURE_TEST(name) TEST_WITH(name, setup, teardown)

FIXTURE_TEST(shards_cover_an_epoch_once)
{
	struct fixture *f = *state;
	size_t n = corpus_samples(f->corpus), covered = 0;
	unsigned char *begun = calloc(SIZE, 1);

	for (uint64_t k = 0; k * BATCH < corpus_validation_samples(f->corpus); k++) {
		corpus_validation_batch(f->corpus, k, BATCH, f->tokens, f->targets);
		for (int b = 0; b < BATCH; b++)
			mark(f, b, 2);
	}
	for (size_t i = 0; i < n; i++) {
		size_t shard = i % 5, number = i / 5, at;

		corpus_batch(f->corpus, (uint32_t)shard, 5, number / BATCH, BATCH, f->tokens,
			     f->targets);
		at = position_of(f->tokens + number % BATCH * T);
		assert_int_equal(begun[at], 0);
		begun[at] = 1;
		mark(f, (int)(number % BATCH), 1);
	}
	for (size_t i = 0; i < SIZE; i++)
		covered += f->seen[i] != 0;
	assert_true(covered > SIZE * 98 / 100);
	free(begun);
}

FIXTURE_TEST(epochs_differ_and_repeat)
{
	struct fixture *f = *state;
	struct corpus *again;
	size_t n = corpus_samples(f->corpus), same = 0;
	int32_t tokens[T], targets[T];

	assert_int_equal(corpus_from_text(&again, f->text, SIZE, T, 9, NULL), 0);
	assert_true(corpus_hash(again) == corpus_hash(f->corpus));
	for (size_t i = 0; i < 200; i++) {
		corpus_batch(f->corpus, 0, 1, i, 1, f->tokens, f->targets);
		corpus_batch(again, 0, 1, i, 1, tokens, targets);
		assert_memory_equal(tokens, f->tokens, sizeof(tokens));
		corpus_batch(again, 0, 1, i + n, 1, tokens, targets);
		same += memcmp(tokens, f->tokens, sizeof(tokens)) == 0;
	}
	assert_true(same < 5);
	corpus_free(again);
}

FIXTURE_TEST(short_texts_still_hold_out)
{
	struct fixture *f = *state;
	struct corpus *c = NULL;
	struct error err;

	assert_int_equal(corpus_from_text(&c, f->text, 20 * (T + 1) - 1, T, 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "too few"));
	assert_int_equal(corpus_from_text(&c, f->text, 0, T, 1, &err), -EINVAL);
	assert_null(c);
	assert_int_equal(corpus_from_text(&c, f->text, 20 * (T + 1), T, 1, &err), 0);
	assert_int_equal(corpus_validation_samples(c), 1);
	assert_true(corpus_samples(c) >= 19);
	corpus_free(c);
}

TEST(files_are_named_in_errors)
{
	char empty[] = "/tmp/corpus_test.XXXXXX", folder[] = "/tmp",
	     absent[] = "/tmp/no such file";
	struct corpus *c = NULL;
	struct error err;
	int fd = mkstemp(empty);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(corpus_new(&c, (char *[]){ absent }, 1, T, 1, &err), -ENOENT);
	assert_non_null(strstr(err.text, absent));
	assert_int_equal(corpus_new(&c, (char *[]){ empty }, 1, T, 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, empty));
	assert_int_equal(corpus_new(&c, (char *[]){ folder }, 1, T, 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a file"));
	assert_null(c);
	unlink(empty);
}

/* Files to read: words of the header, size of the file, and the expected outcome. */
static const struct token_file {
	const char *name;
	uint32_t magic, version, tokens;
	size_t width, bytes;
	const char *message; /* expected part of the error; NULL: the file is read */
} token_files[] = {
	{ "gpt2.bin", 20240520, 1, 5000, 2, 10000, NULL },
	{ "llama3.bin", 20240801, 7, 5000, 4, 20000, NULL },
	{ "no-name", 20240801, 7, 5000, 4, 20000, NULL },
	{ "version.bin", 20240801, 1, 5000, 4, 20000, "version 1, expected 7" },
	{ "version.bin", 20240520, 2, 5000, 2, 10000, "version 2, expected 1" },
	{ "cut.bin", 20240520, 1, 5000, 2, 9998, "cut short: 11022 bytes" },
	{ "half.bin", 20240520, 1, 5000, 4, 20000, "too long: 21024 bytes" },
	{ "gpt2_124M.bin", 20240326, 3, 1024, 4, 20000, "a model or its state" },
	{ "hellaswag_val.bin", 20240522, 1, 9, 2, 10000, "an evaluation" },
	/* train.bin of nanoGPT: tokens without a header */
	{ "train.bin", 4000, 13, 262, 2, 10000, "tokenize --raw" },
	/* the same content under another name, and as NumPy's uint32 */
	{ "raw", 4000, 13, 262, 2, 10000, "byte 3 is NUL" },
};

TEST(files_of_tokens_are_known_or_refused_by_name)
{
	char folder[] = "/tmp/corpus_test.XXXXXX", path[64];

	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof(token_files) / sizeof(token_files[0]); i++) {
		const struct token_file *t = &token_files[i];
		uint32_t *data = calloc(1, 1024 + t->bytes);
		struct error err = { "" };
		struct corpus *c = NULL;
		int rc;

		memset((char *)data + 1024, 1, t->bytes);
		memcpy(data, (uint32_t[]){ t->magic, t->version, t->tokens }, 12);
		snprintf(path, sizeof(path), "%s/%s", folder, t->name);
		assert_int_equal(file_write(path, data, 1024 + t->bytes, 0600, NULL), 0);
		/* n = 1: the file is mapped; n = 2: the file is read twice and joined in memory */
		for (size_t n = 1; n <= 2; n++) {
			rc = corpus_new(&c, (char *[]){ path, path }, n, T, 1, &err);
			if ((rc == 0) != !t->message ||
			    (rc && (!strstr(err.text, t->message) || !strstr(err.text, path))))
				fail_msg("%s: %d %s", t->name, rc, err.text);
			if (rc)
				continue;
			assert_int_equal(corpus_bytes(c), n * t->bytes);
			assert_int_equal(corpus_vocab(c), t->width == 2 ? 0x102 : 0x1010102);
			assert_false(corpus_is_text(c));
			corpus_free(c);
		}
		unlink(path);
		free(data);
	}
	rmdir(folder);
}

TEST(json_lines_are_not_read_as_text)
{
	static const char lines[] = "{\"text\": \"one\"}\n{\"text\": \"two\"}\n";
	char folder[] = "/tmp/corpus_test.XXXXXX", path[64];
	struct error err = { "" };
	struct corpus *c = NULL;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/x.jsonl", folder);
	assert_int_equal(file_write(path, lines, sizeof(lines) - 1, 0600, NULL), 0);
	for (size_t n = 1; n <= 2; n++) {
		assert_int_equal(corpus_new(&c, (char *[]){ path, path }, n, T, 1, &err), -EINVAL);
		assert_non_null(strstr(err.text, path));
		assert_non_null(strstr(err.text, "skippipe tokenize"));
	}
	unlink(path);
	rmdir(folder);
}

TEST(widths_are_not_mixed)
{
	char a[] = "/tmp/corpus_test.XXXXXX", b[] = "/tmp/corpus_test.XXXXXX";
	uint32_t data[256 + 1000] = { 20240520, 1, 2000 };
	struct error err;
	struct corpus *c;

	close(mkstemp(a));
	close(mkstemp(b));
	assert_int_equal(file_write(a, data, sizeof(data), 0600, NULL), 0);
	memcpy(data, (uint32_t[]){ 20240801, 7, 1000 }, 12);
	assert_int_equal(file_write(b, data, sizeof(data), 0600, NULL), 0);
	assert_int_equal(corpus_new(&c, (char *[]){ a, b }, 2, T, 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "16-bit and of 32-bit"));
	/* A token above the tokens of any model. */
	memset(data + 300, 0xff, 4);
	assert_int_equal(file_write(b, data, sizeof(data), 0600, NULL), 0);
	assert_int_equal(corpus_new(&c, (char *[]){ b }, 1, T, 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "token 4294967295"));
	unlink(a);
	unlink(b);
}

TEST(the_default_is_english)
{
	struct corpus *c;
	struct error err;
	int32_t tokens[64], targets[64];
	size_t letters = 0;

	if (access("/usr/share/games/fortunes/literature", R_OK) != 0)
		skip();
	assert_int_equal(corpus_new(&c, NULL, 0, 64, 1, &err), 0);
	assert_true(corpus_bytes(c) > 1000000);
	for (uint64_t i = 0; i < 100; i++) {
		corpus_batch(c, 0, 1, i, 1, tokens, targets);
		for (int t = 0; t < 64; t++)
			letters += (tokens[t] | 32) >= 'a' && (tokens[t] | 32) <= 'z';
	}
	assert_true(letters > 6400 * 6 / 10);
	corpus_free(c);
}
