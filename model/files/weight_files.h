/* weight_files.h - the safetensors files of one model, and in which of these files each tensor is.
 * If there is a model.safetensors.index.json, its weight_map decides: other files, and tensors of
 * the same name in other files, are ignored. Without an index, every *.safetensors file of the
 * folder counts, and a tensor that is in two files is an error. */
#ifndef MODEL_WEIGHT_FILES_H
#define MODEL_WEIGHT_FILES_H

#include <stddef.h>

#include "base/error.h"
#include "model/files/safetensors.h"

struct weight_files; /* opaque */

/* Reads the index, or else the tables of all safetensors files. -ENOENT: the folder has neither an
 * index nor safetensors files. -EINVAL: an index or a file cannot be read. */
int weight_files_open(struct weight_files **out, const char *folder, struct error *err);
void weight_files_close(struct weight_files *f); /* NULL is allowed */

/* Gives the names of all tensors (n), borrowed. A name that is in two files occurs twice. */
const char *const *weight_files_names(const struct weight_files *f, size_t *n);

struct weight {
	const char *path;
	const struct safetensors *file;
	const struct safetensors_entry *entry;
};

/* Finds a tensor; *w is borrowed. Opens the tensor's file if it is not open yet. -ENOENT: the model
 * has no such tensor. -EINVAL: two files have the tensor, and the message names them; or the index
 * is wrong. */
int weight_files_find(struct weight_files *f, const char *name, struct weight *w,
		      struct error *err);

#endif
