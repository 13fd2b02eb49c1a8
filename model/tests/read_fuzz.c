/* libFuzzer: the readers of configurations, safetensors, manifests and token shards in model/. The
 * first byte chooses the reader. A reader refuses the bytes or gives a consistent result; it never
 * crashes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/files/checkpoint.h"
#include "model/config.h"
#include "model/text/corpus.h"
#include "model/files/huggingface.h"
#include "model/files/safetensors.h"
#include "model/tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int holds)
{
	if (!holds)
		abort();
}

static void read_config(const uint8_t *data, size_t size)
{
	struct model_config c;
	struct hyperparameters r, preset;
	struct error err;
	char *text;

	model_preset("tiny", &c, &r, NULL);
	memcpy(&preset, &r, sizeof(r));
	if (model_config_parse(&c, &r, (const char *)data, size, "fuzz", &err))
		return;
	expect(model_config_check(&c, &err) == 0);
	/* If the text has no hyperparameters, r still has those of the preset, which might not suit
	 * this model. */
	text = model_config_print(&c, memcmp(&preset, &r, sizeof(r)) != 0 ? &r : NULL);
	expect(text && model_config_parse(&c, &r, text, strlen(text), "again", &err) == 0);
	free(text);
}

static const char *write_aside(char path[64], const char *folder, const char *name,
			       const uint8_t *data, size_t size)
{
	FILE *f;

	snprintf(path, 64, "%s/%s", folder, name);
	f = fopen(path, "wb");
	expect(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
	return path;
}

static void read_safetensors(const char *path)
{
	struct safetensors *s;
	struct error err;
	uint64_t hash;

	if (safetensors_open(&s, path, &err))
		return;
	for (size_t i = 0; i < safetensors_count(s); i++) {
		const struct safetensors_entry *e = safetensors_at(s, i);
		float *values = malloc((e->count + 1) * sizeof(*values));

		expect(values != NULL);
		expect((safetensors_read(s, e, values, &err) == 0) ==
		       (e->type != SAFETENSORS_OTHER));
		expect(safetensors_find(s, e->name) != NULL);
		free(values);
	}
	expect(safetensors_hash(s, &hash, &err) == 0);
	safetensors_close(s);
}

static void read_corpus(const char *path)
{
	int32_t tokens[16], targets[16];
	char *paths[] = { (char *)path };
	struct corpus *c;
	struct error err;

	if (corpus_new(&c, paths, 1, 8, 1, &err))
		return;
	for (uint64_t i = 0; i < 5; i++) {
		corpus_batch(c, (uint32_t)(i % 2), 2, i * 1000003, 2, tokens, targets);
		for (int t = 0; t < 16; t++)
			expect(tokens[t] >= 0 && (uint32_t)tokens[t] < corpus_vocab(c));
		corpus_validation_batch(c, i, 2, tokens, targets);
	}
	corpus_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char folder[] = "/tmp/read_fuzz.XXXXXX", path[64] = "";
	struct model_config config;
	struct checkpoint checkpoint;
	struct error err;

	if (size == 0)
		return 0;
	if (data[0] % 5 == 0) {
		read_config(data + 1, size - 1);
		return 0;
	}
	expect(mkdtemp(folder) != NULL);
	switch (data[0] % 5) {
	case 1:
		read_safetensors(write_aside(path, folder, "x", data + 1, size - 1));
		break;
	case 2:
		read_corpus(write_aside(path, folder, "x", data + 1, size - 1));
		break;
	case 3:
		write_aside(path, folder, "manifest.json", data + 1, size - 1);
		if (checkpoint_read(folder, &checkpoint, &err) == 0)
			expect(model_config_check(&checkpoint.config, &err) == 0);
		break;
	default:
		write_aside(path, folder, "config.json", data + 1, size - 1);
		if (huggingface_read_config(folder, &config, &err) == 0)
			expect(model_config_check(&config, &err) == 0);
		break;
	}
	unlink(path);
	rmdir(folder);
	return 0;
}
