/* checkpoint.h - a model on disk, so that training can go on where it stopped.
 *
 *     DIR/manifest.json                      "format": "skippipe.checkpoint/1"
 *     DIR/stage-000.00000040.safetensors     weights under their own names, moments under
 *     DIR/stage-001.00000040.safetensors     optimizer.moment1.NAME and optimizer.moment2.NAME
 *
 * The manifest names its shards and their hashes and is replaced last, in one rename: a crash
 * leaves the old checkpoint or the new one. Shards no manifest names are then removed.
 */
#ifndef MODEL_CHECKPOINT_H
#define MODEL_CHECKPOINT_H

#include <stdint.h>

#include "base/error.h"
#include "model/config.h"
#include "model/stage.h"

struct checkpoint {
	struct model_config config;
	struct recipe recipe;
	uint64_t iteration; /* AdamW steps done */
	uint64_t seed;
	uint64_t position; /* microbatches read from the corpus */
	uint64_t corpus;   /* corpus_hash; 0: unknown */
};

/* stages: (n_stages), all of the model. Makes the folder where needed. */
int checkpoint_write(const char *folder, const struct checkpoint *c,
		     struct stage *const *stages, struct error *err);
/* The manifest alone. -ENOENT when there is none; -EINVAL with file and key. */
int checkpoint_read(const char *folder, struct checkpoint *c, struct error *err);
/* Weights and moments of one stage whose config is the manifest's; checked before anything is
 * overwritten. -EINVAL names the file and the tensor. */
int checkpoint_read_stage(const char *folder, struct stage *s, struct error *err);

/* One stage's file alone, without a manifest: what an agent keeps. */
int checkpoint_write_shard(const char *path, struct stage *s, struct error *err);
int checkpoint_read_shard(const char *path, struct stage *s, struct error *err);

#endif
