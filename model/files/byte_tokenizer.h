/* byte_tokenizer.h - writes files with which the transformers library reads text as bytes, one
 * token for each byte. */
#ifndef MODEL_BYTE_TOKENIZER_H
#define MODEL_BYTE_TOKENIZER_H

#include "base/error.h"

/* Writes folder/tokenizer.json and tokenizer_config.json: token i is byte i. */
int byte_tokenizer_write(const char *folder, struct error *err);

#endif
