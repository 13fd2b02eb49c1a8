/* load.h - a trained model for using it: every stage, weights read. */
#ifndef MODEL_PROGRAM_LOAD_H
#define MODEL_PROGRAM_LOAD_H

#include "model/program/options.h"
#include "model/text/corpus.h"

/* As trainer_new, for o's model. If its device is missing, the CPU is used and stderr says so. */
int open_trainer(struct trainer **out, struct options *o, struct error *err);

/* folder: a checkpoint, or a model of the transformers library (config.json). Sets o->config,
 * and o->recipe's batch and sequence where the folder knows them; n_stages != 0 cuts the latter
 * into that many, or with o->set.stages false into fewer if the model has fewer layers. */
int load_model_folder(struct trainer **out, const char *folder, struct options *o,
		      uint32_t n_stages, struct error *err);

/* Reads o's corpus for o's model. tokenizer: the file or folder of the model's, NULL: bytes; then
 * the corpus must be token shards. */
int load_corpus(struct corpus **out, const struct options *o, const char *tokenizer,
		struct error *err);

/* Checks that a checkpoint may be written to o->out. -EEXIST: it holds one that is neither the
 * one that training continues from nor to be replaced (o->force). */
int load_check_out(const struct options *o, struct error *err);

/* Returns why a call of the trainer gave rc: the device's failure, or the text of rc. */
const char *load_failure(const struct trainer *t, int rc);

#endif
