/* Makes a trainer from a preset, a file, a checkpoint or a folder of the transformers library, so
 * that every verb accepts the same sources. */
#include "model/program/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/files/checkpoint.h"
#include "model/files/huggingface.h"
#include "model/files/model_folder.h"

int open_trainer(struct trainer **out, struct options *o, struct error *err)
{
	struct stage_options so = { .batch = o->eval.one_sequence ? 1 : o->hyper.batch,
				    .sequence = o->hyper.sequence,
				    .threads = o->threads,
				    .seed = o->seed,
				    .device = o->device,
				    .recompute = o->recompute };
	int rc;

	if (stage_device_compiles(o->device))
		fprintf(stderr,
			"skippipe: %s: the driver compiles this program's code for the GPU, which "
			"takes tens of seconds the first time\n",
			o->device);
	rc = trainer_new(out, &o->config, &o->hyper, &so, err);

	if (rc != -ENODEV)
		return rc;
	fprintf(stderr, "skippipe: %s: using the CPU instead\n", err->text);
	o->device = so.device = "cpu";
	return trainer_new(out, &o->config, &o->hyper, &so, err);
}

/* Cuts a model that has no stages yet into stages. */
static int cut_model(const char *folder, struct options *o, uint32_t n_stages, struct error *err)
{
	uint32_t layers = o->config.n_layers;
	int rc;

	if (o->set.cut.n > 0) {
		rc = options_cut(o, err);
		return rc ? rc : model_config_check(&o->config, err);
	}
	if (n_stages && o->set.stages && n_stages > layers + 1)
		return error_set(err, -EINVAL,
				 "--set n_stages=%" PRIu32
				 ": %s/config.json: num_hidden_layers is %" PRIu32
				 ": choose at most %" PRIu32 " stages",
				 n_stages, folder, layers, layers + 1);
	if (n_stages && !o->set.stages && n_stages > layers)
		n_stages = layers;
	if (n_stages)
		o->config.n_stages = n_stages;
	return model_config_check(&o->config, err);
}

static int read_config(const char *folder, bool huggingface, struct options *o,
		       uint32_t n_stages, struct error *err)
{
	struct checkpoint c;
	int rc;

	if (huggingface) {
		rc = huggingface_read_config(folder, &o->config, err);
		if (!rc)
			rc = cut_model(folder, o, n_stages, err);
		if (!rc && !o->set.hyper && o->hyper.sequence > o->config.context)
			o->hyper.sequence = o->config.context;
		return rc ? rc : hyper_check(&o->hyper, &o->config, err);
	}
	rc = checkpoint_read(folder, &c, err);
	if (rc)
		return rc;
	o->config = c.config;
	/* Options of the command line override the checkpoint's hyperparameters. */
	if (!o->set.hyper)
		o->hyper = c.hyper;
	return hyper_check(&o->hyper, &o->config, err);
}

int load_model_folder(struct trainer **out, const char *folder, struct options *o,
		      uint32_t n_stages, struct error *err)
{
	enum model_kind kind;
	struct trainer *t;
	bool huggingface;
	int rc = model_folder_find(&kind, folder, err);

	if (rc)
		return rc;
	huggingface = kind == MODEL_HUGGINGFACE;
	rc = read_config(folder, huggingface, o, n_stages, err);
	if (!rc)
		rc = open_trainer(&t, o, err);
	if (rc)
		return rc;
	if (huggingface)
		rc = huggingface_read_weights(folder, trainer_stages(t), err);
	for (uint32_t i = 0; !huggingface && i < o->config.n_stages && !rc; i++)
		rc = checkpoint_read_stage(folder, trainer_stages(t)[i], err);
	if (rc)
		trainer_free(t);
	else
		*out = t;
	return rc;
}

/* Refuses a tokenizer that does not suit the model's vocabulary. A vocabulary may be padded to a
 * round size; its last numbers are then no tokens and are never drawn. Without a tokenizer, tokens
 * are bytes, which suit only a model with about 256 tokens. */
static int check_vocabulary(const struct tokenizer *t, const char *path, uint32_t vocab,
			    struct error *err)
{
	uint32_t tokens = tokenizer_vocab(t);

	if (vocab >= tokens && (path || vocab <= 2 * tokens))
		return 0;
	return error_set(err, -EINVAL,
			 "the model's vocab is %" PRIu32 ", %s has %" PRIu32 " tokens%s", vocab,
			 path ? path : "text in bytes", tokens,
			 path ? "; some have no weights: enlarge the model with the transformers "
				"library (resize_token_embeddings), or use another tokenizer"
			      : "; --tokenizer names another tokenizer");
}

int load_tokenizer(struct tokenizer **out, const char *folder, const struct options *o,
		   struct error *err)
{
	const char *path = o->tokenizer ? o->tokenizer : tokenizer_is_in(folder) ? folder : NULL;
	struct tokenizer *t;
	int rc = tokenizer_open(&t, path, err);

	if (rc)
		return rc;
	rc = check_vocabulary(t, path, o->config.vocab, err);
	if (rc)
		tokenizer_free(t);
	else
		*out = t;
	return rc;
}

/* Refuses text for a model whose tokens are not bytes. */
static int check_text(const char *tokenizer, struct error *err)
{
	struct tokenizer *t;
	int rc = tokenizer_open(&t, tokenizer, err);

	if (rc)
		return rc;
	if (!tokenizer_is_bytes(t))
		rc = error_set(err, -EINVAL,
			       "the corpus is text, the model has the tokens of %s: make a token "
			       "shard of the text with skippipe tokenize --tokenizer %s",
			       tokenizer, tokenizer);
	tokenizer_free(t);
	return rc;
}

int load_corpus(struct corpus **out, const struct options *o, const char *tokenizer,
		struct error *err)
{
	struct corpus *c;
	int rc = corpus_new(&c, o->corpus, o->n_corpus, o->hyper.sequence, o->seed, err);

	if (rc)
		return rc;
	if (tokenizer && corpus_is_text(c))
		rc = check_text(tokenizer, err);
	if (!rc && corpus_vocab(c) > o->config.vocab)
		rc = error_set(err, -1,
			       "the corpus has tokens up to %" PRIu32
			       ", the model a vocab of %" PRIu32,
			       corpus_vocab(c) - 1, o->config.vocab);
	if (rc)
		corpus_free(c);
	else
		*out = c;
	return rc;
}

const char *load_failure(const struct trainer *t, int rc)
{
	const char *said = trainer_failure(t);

	return said[0] ? said : strerror(-rc);
}
