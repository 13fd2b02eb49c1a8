/* libFuzzer: folders of the transformers library. An input is a folder: config.json, an index and
 * two safetensors files, so that the fuzzer reaches the code that uses all of them. A reader
 * refuses the folder, or gives a consistent model and finite weights. The input's parts are
 * config.json, the index ("": none) and two headers, separated by bytes 0xff. The data of each file
 * has the length that its header states, and is zero. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "model/config.h"
#include "model/files/huggingface.h"
#include "model/trainer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DATA_MOST = 1 << 20, PARAMETERS_MOST = 1 << 14 };

static void expect(int holds)
{
	if (!holds)
		abort();
}

/* Takes the part before the next 0xff. */
static size_t take_part(const uint8_t **data, size_t *size, const uint8_t **part)
{
	const uint8_t *end = *size ? memchr(*data, 0xff, *size) : NULL;
	size_t n = end ? (size_t)(end - *data) : *size;

	*part = *data;
	*data += n + (end != NULL);
	*size -= n + (end != NULL);
	return n;
}

static FILE *create(const char *folder, const char *name, char path[96])
{
	FILE *f;

	snprintf(path, 96, "%s/%s", folder, name);
	f = fopen(path, "wb");
	expect(f != NULL);
	return f;
}

/* Returns the size of the data that the header describes: the largest end offset of any
 * tensor. */
static long data_size(const uint8_t *header, size_t n)
{
	json_t *root = json_loadb((const char *)header, n, 0, NULL), *one;
	const char *name;
	json_int_t most = 0;

	json_object_foreach(root, name, one)
	{
		json_int_t end = json_integer_value(
			json_array_get(json_object_get(one, "data_offsets"), 1));

		if (end > most)
			most = end;
	}
	json_decref(root);
	return most < DATA_MOST ? (long)most : DATA_MOST;
}

static void put_weights(const char *folder, const char *name, const uint8_t *header, size_t n)
{
	uint64_t length = n;
	char path[96];
	FILE *f = create(folder, name, path);

	expect(fwrite(&length, 8, 1, f) == 1 && fwrite(header, 1, n, f) == n && fclose(f) == 0);
	expect(truncate(path, 8 + (long)n + data_size(header, n)) == 0);
}

static void read_weights(const char *folder, const struct model_config *c)
{
	struct stage_options o = { .batch = 1, .sequence = 1, .threads = 1 };
	struct hyperparameters r;
	struct trainer *t;
	struct error err = { "" };

	model_preset("tiny", NULL, &r, NULL);
	if (trainer_new(&t, c, &r, &o, &err))
		return;
	if (huggingface_read_weights(folder, trainer_stages(t), &err) == 0)
		for (size_t i = 0; i < stage_parameters(trainer_stages(t)[0]); i++)
			expect(isfinite(stage_weights(trainer_stages(t)[0])[i]));
	else
		expect(err.text[0] != '\0');
	trainer_free(t);
}

static void check_config(const char *folder)
{
	struct model_config c, back;
	struct tensor_table table;
	struct error err = { "" };
	char *text;

	if (huggingface_read_config(folder, &c, &err)) {
		expect(err.text[0] != '\0');
		return;
	}
	expect(model_config_check(&c, &err) == 0);
	text = model_config_print(&c, NULL);
	expect(text && model_config_parse(&back, NULL, text, strlen(text), "fuzz", &err) == 0);
	expect(memcmp(&c.rope_factor, &back.rope_factor, sizeof(c.rope_factor)) == 0);
	free(text);
	for (size_t i = 0; i < 8 && i < model_head_size(&c) / 2; i++)
		expect(isfinite(model_frequency(&c, i)) && model_frequency(&c, i) >= 0);
	expect(tensor_table_new(&table, &c, &err) == 0);
	if (tensor_table_parameters(&table, 0) <= PARAMETERS_MOST && c.context < 4096)
		read_weights(folder, &c);
	tensor_table_free(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "config.json", "model.safetensors.index.json",
					     "a.safetensors", "b.safetensors" };
	char folder[] = "/tmp/huggingface_fuzz.XXXXXX", path[96];
	const uint8_t *part;

	expect(mkdtemp(folder) != NULL);
	for (int i = 0; i < 4; i++) {
		size_t n = take_part(&data, &size, &part);

		if (i >= 2) {
			put_weights(folder, names[i], part, n);
		} else if (n > 0) {
			FILE *f = create(folder, names[i], path);

			expect(fwrite(part, 1, n, f) == n && fclose(f) == 0);
		}
	}
	check_config(folder);
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
	return 0;
}
