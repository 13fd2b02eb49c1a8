/* gguf.h - writes a model for llama.cpp: GGUF version 3, architecture llama, F32. */
#ifndef MODEL_GGUF_H
#define MODEL_GGUF_H

#include "base/error.h"
#include "model/stage.h"

/* Writes all stages (n_stages) to a temporary file, which is synced and renamed to path. The file
 * includes the tokenizer with one token a byte. -EINVAL: vocab is not 256, and the tokenizer is
 * unknown. */
int gguf_export(const char *path, struct stage *const *stages, struct error *err);

#endif
