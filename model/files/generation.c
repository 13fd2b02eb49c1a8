/* Reads and keeps the numbers of special tokens. Without the number of the token that ends a text,
 * generation would continue after the end. Other programs read these numbers from different files,
 * so import and export write them to all these files. */
#include "model/files/generation.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "model/files/json_file.h"

enum { PATH = 4096, CONFIG_MOST = 16 << 20 };

static const char generation_name[] = "generation_config.json", config_name[] = "config.json";
static const char *const keys[] = { "bos_token_id", "eos_token_id", "pad_token_id" };
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

/* Reads a file of the folder. *out is NULL if the file is missing. */
static int read_named(json_t **out, const char *folder, const char *name, struct error *err)
{
	char path[PATH];
	int rc;

	*out = NULL;
	if (!file_exists(folder, name))
		return 0;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	rc = json_read_object(path, CONFIG_MOST, out, err);
	return rc == -ENOENT ? 0 : rc;
}

static bool is_id(const json_t *v)
{
	return json_is_integer(v) && json_integer_value(v) >= 0 &&
	       json_integer_value(v) <= INT32_MAX;
}

static bool is_ids(const json_t *v)
{
	const json_t *one;
	size_t i;

	json_array_foreach(v, i, one)
		if (!is_id(one))
			return false;
	return is_id(v) || json_array_size(v) > 0;
}

/* Copies the tokens whose keys `to` lacks. A value of -1 is an old spelling of null. */
static int take_tokens(json_t *to, json_t *root, const char *folder, const char *name,
		       struct error *err)
{
	for (size_t i = 0; i < KEYS; i++) {
		json_t *v = json_object_get(root, keys[i]);

		if (!v || json_is_null(v) || json_object_get(to, keys[i]) ||
		    (json_is_integer(v) && json_integer_value(v) == -1))
			continue;
		if (!is_ids(v))
			return error_set(err, -EINVAL,
					 "%s/%s: %s: expected a token's number, a list of "
					 "numbers, or null",
					 folder, name, keys[i]);
		if (json_object_set(to, keys[i], v) < 0)
			return error_set(err, -ENOMEM, "%s: no memory", folder);
	}
	return 0;
}

int generation_tokens(json_t **out, const char *folder, struct error *err)
{
	json_t *tokens = json_object(), *generation = NULL, *config = NULL;
	int rc = tokens ? read_named(&generation, folder, generation_name, err)
			: error_set(err, -ENOMEM, "%s: no memory", folder);

	if (!rc)
		rc = take_tokens(tokens, generation, folder, generation_name, err);
	if (!rc && !json_object_get(tokens, "eos_token_id"))
		rc = read_named(&config, folder, config_name, err);
	if (!rc)
		rc = take_tokens(tokens, config, folder, config_name, err);
	json_decref(generation);
	json_decref(config);
	if (rc)
		json_decref(tokens);
	else
		*out = tokens;
	return rc;
}

/* Refuses settings that force or forbid tokens. Settings of sampling (temperature, top_p, ...) are
 * accepted, because the options of generate replace them. */
static int check_forced(const char *folder, struct error *err)
{
	static const char *const forced[] = { "suppress_tokens",      "begin_suppress_tokens",
					      "bad_words_ids",	      "force_words_ids",
					      "forced_bos_token_id",  "forced_eos_token_id",
					      "forced_decoder_ids",   "sequence_bias",
					      "stop_strings",	      "constraints" };
	json_t *root;
	int rc = read_named(&root, folder, generation_name, err);

	for (size_t i = 0; i < sizeof(forced) / sizeof(forced[0]) && !rc; i++) {
		const json_t *v = json_object_get(root, forced[i]);

		if (v && !json_is_null(v) && !(json_is_array(v) && json_array_size(v) == 0))
			rc = error_set(err, -ENOTSUP, "%s/%s: %s: not supported: remove it", folder,
				       generation_name, forced[i]);
	}
	json_decref(root);
	return rc;
}

int generation_ends(const char *folder, int32_t **ids, size_t *n, struct error *err)
{
	json_t *tokens = NULL;
	const json_t *ends, *one;
	size_t i;
	int rc = check_forced(folder, err);

	if (!rc)
		rc = generation_tokens(&tokens, folder, err);
	if (rc)
		return rc;
	ends = json_object_get(tokens, "eos_token_id");
	*ids = malloc((json_array_size(ends) + 1) * sizeof(**ids));
	if (!*ids) {
		json_decref(tokens);
		return error_set(err, -ENOMEM, "%s: no memory", folder);
	}
	*n = 0;
	if (json_is_integer(ends))
		(*ids)[(*n)++] = (int32_t)json_integer_value(ends);
	json_array_foreach(ends, i, one)
		(*ids)[(*n)++] = (int32_t)json_integer_value(one);
	json_decref(tokens);
	return 0;
}

int generation_keep(const char *from, const char *to, struct error *err)
{
	json_t *root, *tokens = NULL;
	char path[PATH];
	int rc = read_named(&root, to, generation_name, err);

	if (rc || json_object_get(root, "eos_token_id")) {
		json_decref(root);
		return rc;
	}
	rc = generation_tokens(&tokens, from, err);
	if (rc || json_object_size(tokens) == 0) {
		json_decref(root);
		json_decref(tokens);
		return rc;
	}
	if (!root)
		root = json_object();
	if (!root || json_object_update(root, tokens) < 0)
		rc = error_set(err, -ENOMEM, "%s: no memory", to);
	json_decref(tokens);
	if (rc) {
		json_decref(root);
		return rc;
	}
	snprintf(path, sizeof(path), "%s/%s", to, generation_name);
	return json_file_write(path, root, err);
}
