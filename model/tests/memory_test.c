/* Makes the N-th large allocation of a call fail, for N = 1, 2, ... until the whole call succeeds.
 * Each failure must give an error code and a message, and leak nothing. This program replaces the C
 * library's allocators. Sanitizers replace these allocators too, so the test is skipped under a
 * sanitizer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/tests/test.h"
#include "model/files/checkpoint.h"
#include "model/text/corpus.h"
#include "model/cpu/decoder.h"
#include "model/files/huggingface.h"
#include "model/text/sample.h"
#include "model/tensor.h"
#include "model/trainer.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REPLACED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REPLACED 0
#endif
#endif
#ifndef REPLACED
#define REPLACED 1
#endif

static long until_failure = -1; /* number of allocations before one fails; -1: none fails */
static long live;

#if REPLACED
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static int fails(void)
{
	return until_failure >= 0 && until_failure-- == 0;
}

static void *counted(void *p)
{
	live += p != NULL;
	return p;
}

void *malloc(size_t n)
{
	return fails() ? NULL : counted(__libc_malloc(n));
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : counted(__libc_calloc(n, size));
}

void *realloc(void *p, size_t n)
{
	if (fails())
		return NULL;
	live -= p != NULL;
	return counted(__libc_realloc(p, n));
}

void *aligned_alloc(size_t align, size_t n)
{
	return fails() ? NULL : counted(__libc_memalign(align, n));
}

/* used by oneDNN */
int posix_memalign(void **out, size_t align, size_t n)
{
	*out = fails() ? NULL : counted(__libc_memalign(align, n));
	return *out ? 0 : ENOMEM;
}

void free(void *p)
{
	live -= p != NULL;
	__libc_free(p);
}

/* ---- small allocations, which never fail here ----
 * Replaces the allocators of base/alloc.h, which would end the program. */

void alloc_failed(size_t n, size_t size)
{
	fail_msg("no memory for %zu elements of %zu bytes", n, size);
	abort();
}

void *alloc_new(size_t size)
{
	return counted(__libc_calloc(1, size));
}

void *alloc_array(size_t n, size_t size)
{
	return counted(__libc_calloc(n, size));
}

void *alloc_resize(void *block, size_t n, size_t size)
{
	live -= block != NULL;
	return counted(__libc_realloc(block, n * size));
}

void *alloc_copy(const void *from, size_t size)
{
	return memcpy(counted(__libc_malloc(size)), from, size);
}

char *alloc_string(const char *text)
{
	return alloc_copy(text, strlen(text) + 1);
}

char *alloc_format(const char *format, ...)
{
	char text[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return alloc_string(text);
}

static void *steady(size_t n)
{
	return counted(__libc_malloc(n));
}

/* Lets all allocations of jansson succeed, because jansson 2.14 crashes when its scanner runs out
 * of memory. */
static void spare_jansson(void)
{
	json_set_alloc_funcs(steady, free);
}
#else
static void spare_jansson(void)
{
}
#endif

static const struct model_config config = { .vocab = 40,
					    .dim = 8,
					    .n_layers = 2,
					    .n_heads = 2,
					    .n_kv_heads = 1,
					    .ffn_dim = 6,
					    .context = 8,
					    .n_stages = 2,
					    .rope_theta = 10000,
					    .norm_eps = 1e-5f,
					    .init_std = 0.02f };

static struct hyperparameters hyper;
static const struct stage_options options = { .slots = 2, .batch = 1, .sequence = 4 };
static struct trainer *made; /* a trainer that was made before allocations fail */
static char folder[] = "/tmp/memory_test.XXXXXX";

/* ---- the calls under test ----
 * Each returns 0 or a negative code, and frees its results. */

static int try_trainer(struct error *err)
{
	struct trainer *t;
	int rc = trainer_new(&t, &config, &hyper, &options, err);

	if (!rc)
		trainer_free(t);
	return rc;
}

static int try_corpus(struct error *err)
{
	char text[2000];
	struct corpus *c;
	int rc;

	memset(text, 'a', sizeof(text));
	rc = corpus_from_text(&c, text, sizeof(text), 8, 1, err);
	if (!rc)
		corpus_free(c);
	return rc;
}

static int try_decoder(struct error *err)
{
	struct decoder *d;
	int rc = decoder_new(&d, trainer_stages(made), (uint32_t[]){ 1 }, 1, 8, err);

	if (!rc)
		decoder_free(d);
	return rc;
}

static int try_config(struct error *err)
{
	struct model_config c;
	struct hyperparameters r;
	char *text = model_config_print(&config, &hyper);
	int rc;

	if (!text)
		return error_set(err, -ENOMEM, "no memory to print");
	rc = model_config_parse(&c, &r, text, strlen(text), "test", err);
	free(text);
	return rc;
}

static int try_write(struct error *err)
{
	struct checkpoint c = { .config = config, .hyper = hyper };

	return checkpoint_write(folder, &c, trainer_stages(made), err);
}

static int try_read(struct error *err)
{
	struct checkpoint c;
	int rc = checkpoint_read(folder, &c, err);

	return rc ? rc : checkpoint_read_stage(folder, trainer_stages(made)[1], err);
}

static int try_export(struct error *err)
{
	struct model_config c;
	int rc = huggingface_export(folder, trainer_stages(made), NULL, err);

	if (!rc)
		rc = huggingface_read_config(folder, &c, err);
	return rc ? rc : huggingface_read_weights(folder, trainer_stages(made), err);
}

static int try_small(struct error *err)
{
	struct sampler *s = sampler_new(9);

	sampler_free(s);
	if (!s)
		return error_set(err, -ENOMEM, "no memory");
	return 0;
}

static void survives(const char *what, int (*attempt)(struct error *), uint64_t *hash)
{
	for (long n = 0;; n++) {
		struct error err = { "" };
		long before = live;
		int rc;

		assert_true(n < 5000);
		until_failure = n;
		rc = attempt(&err);
		/* This call made too few allocations to reach the allocation that fails, so the
		 * call has succeeded. */
		if (until_failure >= 0) {
			until_failure = -1;
			assert_int_equal(rc, 0);
			break;
		}
		until_failure = -1;
		/* Some libraries continue without memory that they did not get, so success is
		 * allowed here. */
		if (rc == 0)
			continue;
		if (rc > 0 || !err.text[0] || live != before)
			fail_msg("%s, failing at %ld: %d \"%s\", %ld blocks lost", what, n, rc,
				 err.text, live - before);
		assert_true(stage_hash(trainer_stages(made)[1]) == *hash);
	}
}

TEST(every_allocation_may_fail)
{
	static const struct {
		const char *what;
		int (*attempt)(struct error *);
	} attempts[] = {
		{ "trainer", try_trainer }, { "corpus", try_corpus },
		{ "decoder", try_decoder }, { "config", try_config },
		{ "write", try_write },     { "read", try_read },
		{ "export", try_export },   { "small", try_small },
	};
	char command[64];
	uint64_t hash;

	if (!REPLACED)
		skip();
	spare_jansson();
	model_preset("tiny", NULL, &hyper, NULL);
	hyper.batch = 1;
	hyper.sequence = 4;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(trainer_new(&made, &config, &hyper, &options, NULL), 0);
	hash = stage_hash(trainer_stages(made)[1]);
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		survives(attempts[i].what, attempts[i].attempt, &hash);
	trainer_free(made);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}
