/* beside.h - the files beside a tokenizer that change its tokens: tokenizer_config.json,
 * special_tokens_map.json and added_tokens.json of the transformers library.
 *
 * Each key is used, or is known to change no token, or is refused by name.
 */
#ifndef MODEL_BESIDE_H
#define MODEL_BESIDE_H

#include <stdbool.h>

#include <jansson.h>

#include "base/error.h"

enum beside_choice { BESIDE_UNSET, BESIDE_NO, BESIDE_YES };

struct beside {
	bool exists;                    /* at least one of the files exists */
	enum beside_choice begins;      /* value of add_bos_token */
	enum beside_choice prefix_space; /* value of add_prefix_space */
	enum beside_choice legacy;
	/* True: add_bos_token decides whether a document begins with bos_token. False: the
	 * post_processor of the tokenizer.json decides. */
	bool is_llama_class;
	/* Added tokens by their content. Each token is an object as in the added_tokens of a
	 * tokenizer.json; its "file" names the place that lists the token. If "id" is missing, the
	 * tokenizer's vocabulary must have the token. */
	json_t *tokens;
	char *begin, *end; /* contents of bos_token and eos_token; NULL: not named */
};

/* Reads the files that the folder has. -EINVAL: a file is damaged; -ENOTSUP: a key changes the
 * tokens in a way that is not supported. The error names file and key. */
int beside_read(struct beside *out, const char *folder, struct error *err);
/* Reads the tokenizer.json beside a SentencePiece model. Uses the added tokens of that file, its
 * token that begins a document, and its places where a space is put before a text. The pieces come
 * from the SentencePiece model. Does nothing if there is no such file. Errors as for
 * beside_read. */
int beside_read_json(struct beside *b, const char *folder, struct error *err);
void beside_fini(struct beside *b);

/* Names of the files that this module reads, ended by NULL. Code that copies a tokenizer copies
 * these files too. */
extern const char *const beside_files[];

#endif
