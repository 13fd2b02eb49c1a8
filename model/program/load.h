/* load.h - loads a trained model, all stages with their weights. */
#ifndef MODEL_PROGRAM_LOAD_H
#define MODEL_PROGRAM_LOAD_H

#include "model/program/options.h"
#include "model/text/corpus.h"
#include "model/text/tokenizer.h"

/* Calls trainer_new for o's model. If the device is missing, uses the CPU and reports this on
 * stderr. */
int open_trainer(struct trainer **out, struct options *o, struct error *err);

/* Reads the model of a folder: a checkpoint, or a model of the transformers library (config.json).
 * Sets o->config, and the batch and sequence of o->hyper if the folder's files contain them. A
 * model of the library is cut into n_stages stages if n_stages is not 0. A model with fewer layers
 * gets fewer stages, unless the user gave the number (o->set.stages). */
int load_model_folder(struct trainer **out, const char *folder, struct options *o,
		      uint32_t n_stages, struct error *err);

/* Opens the tokenizer that o names, or the tokenizer in the model's folder `folder`. If there is
 * neither, tokens are bytes. o->config must be the model's. -EINVAL: the tokenizer does not suit
 * the model's vocabulary; errors of tokenizer_open. */
int load_tokenizer(struct tokenizer **out, const char *folder, const struct options *o,
		   struct error *err);

/* Reads the corpus that o names, for the model in o. tokenizer: file or folder of the model's
 * tokenizer; NULL: tokens are bytes. The corpus of a model with a tokenizer must be token
 * shards. */
int load_corpus(struct corpus **out, const struct options *o, const char *tokenizer,
		struct error *err);

/* Returns in words why a function of the trainer has returned rc: the device's failure, or the
 * system's text for rc. */
const char *load_failure(const struct trainer *t, int rc);

#endif
