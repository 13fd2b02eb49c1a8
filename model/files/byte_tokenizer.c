/* byte_tokenizer.c - writes files with which the transformers library reads text as bytes, one
 * token for each byte. The files describe a byte-level BPE without merges. Other tools can then
 * read text for a model that was trained on bytes. */
#include "model/files/byte_tokenizer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file.h"

/* Returns true if byte-level BPE writes the byte as the character of the same number. BPE writes
 * every other byte as the next unused character from U+0100 on. */
static bool is_itself(int byte)
{
	return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

static json_t *vocabulary(void)
{
	json_t *v = json_object();
	int next = 0x100;

	for (int byte = 0; byte < 256; byte++) {
		int c = is_itself(byte) ? byte : next++;
		char text[3] = { (char)c };

		if (c >= 0x80) { /* written as UTF-8 */
			text[0] = (char)(0xc0 | c >> 6);
			text[1] = (char)(0x80 | (c & 0x3f));
		}
		json_object_set_new(v, text, json_integer(byte));
	}
	return v;
}

static int write_json(const char *folder, const char *name, json_t *json, struct error *err)
{
	char path[4096], *text = json ? json_dumps(json, JSON_INDENT(1)) : NULL;
	int rc;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	json_decref(json);
	if (!text)
		return error_set(err, -ENOMEM, "%s: no memory", path);
	rc = file_write(path, text, strlen(text), FILE_RESULT, err);
	free(text);
	return rc;
}

int byte_tokenizer_write(const char *folder, struct error *err)
{
	json_t *tokenizer = json_pack(
		"{s:s, s:[], s:{s:s, s:b, s:b, s:b}, s:{s:s, s:b, s:b, s:b}, s:{s:s, s:o, s:[]}}",
		"version", "1.0", "added_tokens", "pre_tokenizer", "type", "ByteLevel",
		"add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0, "decoder", "type",
		"ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0, "model",
		"type", "BPE", "vocab", vocabulary(), "merges");
	json_t *config = json_pack("{s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
				   "clean_up_tokenization_spaces", 0);
	int rc = write_json(folder, "tokenizer.json", tokenizer, err);

	if (rc) {
		json_decref(config);
		return rc;
	}
	return write_json(folder, "tokenizer_config.json", config, err);
}
