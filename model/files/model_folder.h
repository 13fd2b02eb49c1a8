/* model_folder.h - finds out which kind of model a folder holds. A folder may hold only one model,
 * because with two a reader could not know which is meant. */
#ifndef MODEL_MODEL_FOLDER_H
#define MODEL_MODEL_FOLDER_H

#include "base/error.h"

enum model_kind {
	MODEL_NONE,
	MODEL_CHECKPOINT, /* manifest.json and shards (checkpoint.h) */
	MODEL_HUGGINGFACE /* config.json and *.safetensors (huggingface.h) */
};

/* Sets *kind to the kind of model in the folder; MODEL_NONE also if there is no folder. -EINVAL:
 * the folder contains both kinds; the message names the files. */
int model_folder_kind(enum model_kind *kind, const char *folder, struct error *err);

/* Like model_folder_kind, but the folder must contain a model. -ENOENT: it contains none. Other
 * errors are the system's, for example if this user has no right to read the folder. */
int model_folder_find(enum model_kind *kind, const char *folder, struct error *err);

#endif
