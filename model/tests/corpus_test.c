/* The corpus: shards are disjoint and complete, validation is never trained on, errors name the
 * file. Texts are made of 4-byte serial numbers, so that every window says where it is from. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/text/corpus.h"

enum { T = 12, SIZE = 240007, BATCH = 3 };

/* Bytes of position i: distinct in any window of 4 aligned bytes. */
static char *serial_text(size_t size)
{
	unsigned char *text = malloc(size + 4);

	for (size_t i = 0; i < size; i += 4)
		for (size_t k = 0; k < 4; k++)
			text[i + k] = (unsigned char)((i / 4 >> (6 * k) & 63) | k << 6);
	return (char *)text;
}

/* Where a window begins: find the first byte of a serial number in it. */
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
	unsigned char *seen; /* (SIZE) 1: trained on, 2: validation */
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

static void shards_cover_an_epoch_once(void **state)
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

static void epochs_differ_and_repeat(void **state)
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

static void short_texts_still_hold_out(void **state)
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

static void files_are_named_in_errors(void **state)
{
	char empty[] = "/tmp/corpus_test.XXXXXX", folder[] = "/tmp",
	     absent[] = "/tmp/no such file";
	struct corpus *c = NULL;
	struct error err;
	int fd = mkstemp(empty);

	(void)state;
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

static void the_default_is_english(void **state)
{
	struct corpus *c;
	struct error err;
	int32_t tokens[64], targets[64];
	size_t letters = 0;

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(shards_cover_an_epoch_once, setup, teardown),
		cmocka_unit_test_setup_teardown(epochs_differ_and_repeat, setup, teardown),
		cmocka_unit_test_setup_teardown(short_texts_still_hold_out, setup, teardown),
		cmocka_unit_test(files_are_named_in_errors),
		cmocka_unit_test(the_default_is_english),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
