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
 * Sets o->config, and the batch and sequence of o->hyper if the folder has them. n_stages != 0
 * divides a model of the library into that many stages. If o->set.stages is false and the model has
 * fewer layers, it gets fewer stages. */
int load_model_folder(struct trainer **out, const char *folder, struct options *o,
		      uint32_t n_stages, struct error *err);

/* Opens the tokenizer of o, or the one beside the model in `folder`. If there is neither, tokens
 * are bytes. o->config is the model's. -EINVAL: the tokenizer does not suit the model's vocabulary;
 * errors of tokenizer_open. */
int load_tokenizer(struct tokenizer **out, const char *folder, const struct options *o,
		   struct error *err);

/* Reads o's corpus for o's model. tokenizer: the file or folder of the model's tokenizer. NULL:
 * tokens are bytes. The corpus of a model with a tokenizer must be token shards. */
int load_corpus(struct corpus **out, const struct options *o, const char *tokenizer,
		struct error *err);

/* Returns the reason why a call of the trainer returned rc: the device's failure, or the text of
 * rc. */
const char *load_failure(const struct trainer *t, int rc);

#endif
