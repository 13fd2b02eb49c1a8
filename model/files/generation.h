/* generation.h - the tokens with special meaning that a model's files name by number:
 * generation_config.json, or config.json if the first file names none. */
#ifndef MODEL_GENERATION_H
#define MODEL_GENERATION_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

/* Reads bos_token_id, eos_token_id and pad_token_id from the folder's files into an object that the
 * caller releases. The object lacks keys that the files lack. If generation_config.json has
 * eos_token_id, config.json is not read. -EINVAL: a value is no token's number or list of numbers;
 * the error names file and key. */
int generation_tokens(json_t **out, const char *folder, struct error *err);
/* Reads the tokens that end a text. *ids is their array, which the caller frees, and *n their
 * number (0 if the files name none). The caller may append one token, because *ids has room for *n
 * + 1. -ENOTSUP: generation_config.json has a setting that `skippipe generate` does not support.
 * Other errors as for generation_tokens. */
int generation_ends(const char *folder, int32_t **ids, size_t *n, struct error *err);
/* Adds the tokens of the folder `from` (generation_tokens) to the file generation_config.json of
 * the folder `to`. Changes nothing if this file already has an eos_token_id. */
int generation_keep(const char *from, const char *to, struct error *err);

#endif
