/* ground.c - makes the keys from a fixed seed, and writes the small text and the model, once for
 * all runs of a test. */
#include "tests/sim/ground.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/config.h"

static struct rng keys_rng;

static void draw_bytes(void *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = (uint8_t)rng_below(&keys_rng, 256);
}

static uint32_t draw_number(void)
{
	return (uint32_t)rng_next(&keys_rng);
}

static const char *name_of_source(void)
{
	return "a seed";
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at)
{
	(void)s;
	(void)kind;
	(void)at;
	return remove(path);
}

static void remove_folder(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int write_text(const struct ground *g, struct error *err)
{
	static char text[20000];
	struct rng r;

	rng_init(&r, 5);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + rng_below(&r, 20));
	return file_write(g->corpus, text, sizeof(text), 0600, err);
}

static int write_model(const struct ground *g, struct error *err)
{
	struct model_config c = { .vocab = 256, .dim = 8, .n_layers = 3, .n_heads = 2,
				  .n_kv_heads = 1, .ffn_dim = 8, .context = 8, .n_stages = 3,
				  .rope_theta = 10000, .norm_eps = 1e-5f, .init_std = 0.02f };
	struct hyperparameters r;
	char *text;
	int rc = model_preset("tiny", NULL, &r, err);

	if (rc != 0)
		return rc;
	r.batch = 1;
	r.sequence = 8;
	text = model_config_print(&c, &r);
	rc = text ? file_write(g->model, text, strlen(text), 0600, err) : -ENOMEM;
	free(text);
	return rc;
}

static int make_keys(struct ground *g, struct error *err)
{
	struct keys_list *list = NULL;
	char name[16];
	int rc = keys_generate(&g->controller, err);

	if (rc == 0)
		rc = keys_save(g->controller, g->key, err);
	if (rc == 0)
		rc = keys_list_open(&list, g->admitted, err);
	for (int i = 0; rc == 0 && i < SIM_AGENTS; i++) {
		snprintf(name, sizeof(name), "n%02d", i);
		rc = keys_generate(&g->agents[i], err);
		if (rc == 0)
			rc = keys_list_admit(list, keys_public_of(g->agents[i]), KEYS_AGENT, name,
					     err);
	}
	keys_list_free(list);
	if (rc == 0)
		g->controller_key = *keys_public_of(g->controller);
	return rc;
}

struct ground *ground_new(void)
{
	static struct randombytes_implementation source = {
		.implementation_name = name_of_source, .random = draw_number, .buf = draw_bytes
	};
	const char *temporary = getenv("TMPDIR");
	struct ground *g = alloc_new(sizeof(*g));
	struct error err = { "" };
	int rc;

	rng_init(&keys_rng, 1);
	randombytes_set_implementation(&source);
	if (access("/dev/shm", W_OK) == 0)
		temporary = "/dev/shm";
	snprintf(g->folder, sizeof(g->folder), "%.40s/skippipe-sim-XXXXXX",
		 temporary ? temporary : "/tmp");
	if (!mkdtemp(g->folder)) {
		printf("%s: %s\n", g->folder, strerror(errno));
		free(g);
		return NULL;
	}
	snprintf(g->run, sizeof(g->run), "%s/run", g->folder);
	snprintf(g->key, sizeof(g->key), "%s/key", g->folder);
	snprintf(g->admitted, sizeof(g->admitted), "%s/admitted", g->folder);
	snprintf(g->corpus, sizeof(g->corpus), "%s/text", g->folder);
	snprintf(g->model, sizeof(g->model), "%s/model.json", g->folder);
	snprintf(g->cluster, sizeof(g->cluster), "%s/cluster.json", g->folder);
	rc = write_text(g, &err);
	if (rc == 0)
		rc = write_model(g, &err);
	if (rc == 0)
		rc = make_keys(g, &err);
	if (rc == 0)
		return g;
	printf("%s\n", err.text);
	ground_free(g);
	return NULL;
}

void ground_clear(const struct ground *g)
{
	char path[128];

	remove_folder(g->run);
	for (int i = 0; i < SIM_AGENTS; i++) {
		snprintf(path, sizeof(path), "%s.agent%d", g->run, i);
		remove_folder(path);
	}
	snprintf(path, sizeof(path), "%s.failures", g->admitted);
	unlink(path);
}

void ground_free(struct ground *g)
{
	if (!g)
		return;
	for (int i = 0; i < SIM_AGENTS; i++)
		keys_free(g->agents[i]);
	keys_free(g->controller);
	remove_folder(g->folder);
	free(g);
}
