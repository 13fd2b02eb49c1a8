/* checkpoint.h - a model on disk, from which training continues.
 *
 *     DIR/manifest.json                      "format": "skippipe.checkpoint/1"
 *     DIR/stage-000.00000040.safetensors     weights under their own names, moments under
 *     DIR/stage-001.00000040.safetensors     optimizer.moment1.NAME and optimizer.moment2.NAME
 *
 * The manifest names its shards and their hashes and is replaced last, in one rename: a crash
 * leaves the old checkpoint or the new one. If the old checkpoint has the same iteration, the new
 * shards are named stage-000.00000040.b.safetensors. Shards that the manifest does not name are
 * then removed; files with other names stay.
 */
#ifndef MODEL_CHECKPOINT_H
#define MODEL_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/config.h"
#include "model/stage.h"

struct safetensors;

struct checkpoint {
	struct model_config config;
	struct hyperparameters hyper;
	/* Number of AdamW steps that were made. When a run's checkpoint is written, this counts
	 * only the run's iterations, and `before` has the earlier steps. */
	uint64_t iteration;
	/* Number of AdamW steps before the run; 0 after checkpoint_read, because `iteration` then
	 * includes these steps. */
	uint64_t before;
	uint64_t seed;
	uint64_t position; /* number of microbatches of the corpus that the training has read */
	uint64_t corpus;   /* hash of the corpus (corpus_hash); 0: unknown */
};

/* Writes a checkpoint of all stages (n_stages) of the model. Makes the folder if it is missing. */
int checkpoint_write(const char *folder, const struct checkpoint *c,
		     struct stage *const *stages, struct error *err);
/* Reads the manifest only. -ENOENT: there is none. -EINVAL: a key is wrong, and the message names
 * file and key; or the checkpoint is a rehearsal's, whose numbers are no model. */
int checkpoint_read(const char *folder, struct checkpoint *c, struct error *err);
/* Reads weights and moments of one stage. The stage's model must be the manifest's model, but may
 * be cut into other stages. Each layer is then read from the shard that has it. Checks all files
 * before it overwrites anything. -EINVAL: the message names the file and the tensor. */
int checkpoint_read_stage(const char *folder, struct stage *s, struct error *err);

/* Opens the file of one stage, and checks it against the manifest's hash. The caller closes *file.
 * If all moments are zeros, the file contains no moments. Errors as for checkpoint_read_stage. */
int checkpoint_open_stage(const char *folder, uint32_t stage, struct safetensors **file,
			  struct error *err);

/* ---- of a run ----
 *
 *     RUN/checkpoints/00000040/manifest.json, stage-000.00000040.safetensors ...
 *
 * Each checkpoint of a run has a folder, in the form described above. Every agent writes its stage
 * on its own machine. The controller writes the manifest on its machine, after every stage has been
 * written. If the agents and the controller run on one machine, the folder is an ordinary
 * checkpoint. */

/* Writes one stage's file. state: (3, P) weights, first and second moments; or (P) weights alone,
 * and a reader then gets zeros for the moments. On success the file is on disk, and the function
 * gives the hash of its content and its size in bytes. */
int checkpoint_save_stage(const char *run, const struct model_config *c, uint32_t stage,
			  uint64_t iteration, const float *state, bool moments, uint64_t *hash,
			  uint64_t *bytes, struct error *err);
/* Writes the path of a stage's file. -ENAMETOOLONG: the path is longer than `room`. */
int checkpoint_stage_path(char *path, size_t room, const char *run, uint32_t stage,
			  uint64_t iteration);
/* Compares a shard's file with its hash. -EINVAL: the hash differs. -ENOENT: there is no file. */
int checkpoint_check_stage(const char *run, uint32_t stage, uint64_t iteration, uint64_t hash,
			   struct error *err);
/* Loads a shard. Errors as for checkpoint_check_stage; after an error the stage is unchanged. */
int checkpoint_load_stage(const char *run, struct stage *s, uint64_t iteration, uint64_t hash,
			  struct error *err);
/* Writes the manifest of a run's checkpoint. hashes: (n_stages) hashes of the stages' files. */
int checkpoint_save_manifest(const char *run, const struct checkpoint *c,
			     const uint64_t *hashes, struct error *err);
/* Removes the checkpoints of all iterations greater than `after` and less than `before`.
 * Checkpoints that cannot be removed stay. The checkpoint of iteration 0 always stays, because it
 * has the weights with which the run began, and verify needs these weights. */
void checkpoint_prune(const char *run, uint64_t after, uint64_t before);

#endif
