/* gguf.h - a model as llama.cpp reads it: GGUF version 3, architecture llama, F32. */
#ifndef MODEL_GGUF_H
#define MODEL_GGUF_H

#include "base/error.h"
#include "model/stage.h"

/* Writes all stages (n_stages) to path, aside, fsynced, renamed. With the weights goes the
 * tokenizer, one token a byte: -EINVAL when vocab is not 256, whose tokenizer is not known
 * here. */
int gguf_export(const char *path, struct stage *const *stages, struct error *err);

#endif
