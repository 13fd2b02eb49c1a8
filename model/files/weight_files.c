/* Users' folders often contain files of more than one model: older shards, the same weights divided
 * in another way, a file of another tool. A tensor is therefore read only from the file that the
 * index names, or from the only file that contains it. */
#include "model/files/weight_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/alloc.h"

enum { PATH = 4096, INDEX_MOST = 64 << 20, FILES_MOST = 1024 };

struct weight_files {
	char *folder, index[PATH]; /* path of the folder, and path of the index */
	/* The parsed index, and its map from names to files; NULL without an index. */
	json_t *root, *map;
	struct safetensors *open[FILES_MOST];
	char *paths[FILES_MOST];
	size_t n, n_names;
	const char **names; /* the n_names names of all tensors */
};

void weight_files_close(struct weight_files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++) {
		safetensors_close(f->open[i]);
		free(f->paths[i]);
	}
	json_decref(f->root);
	free(f->names);
	free(f->folder);
	free(f);
}

const char *const *weight_files_names(const struct weight_files *f, size_t *n)
{
	*n = f->n_names;
	return f->names;
}

/* Opens a file of the folder once, and sets *which to its number. */
static int open_file(struct weight_files *f, const char *name, size_t *which, struct error *err)
{
	char path[PATH + 512];
	int rc = 0;

	snprintf(path, sizeof(path), "%s/%s", f->folder, name);
	*which = 0;
	while (*which < f->n && strcmp(f->paths[*which], path) != 0)
		(*which)++;
	if (*which == FILES_MOST)
		rc = error_set(err, -EINVAL, "%s: more than %d files of weights", f->folder,
			       FILES_MOST);
	else if (*which == f->n)
		rc = safetensors_open(&f->open[f->n], path, err);
	if (!rc && *which == f->n)
		f->paths[f->n++] = alloc_string(path);
	return rc;
}

/* ---- files with an index ---- */

static int read_map(struct weight_files *f, struct error *err)
{
	const char *name;
	json_t *file;

	f->map = json_object_get(f->root, "weight_map");
	if (!json_is_object(f->map))
		return error_set(err, -EINVAL,
				 "%s: weight_map: expected an object of tensors and their files",
				 f->index);
	f->names = calloc(json_object_size(f->map) + 1, sizeof(*f->names));
	if (!f->names)
		return error_set(err, -ENOMEM, "%s: no memory for its table", f->index);
	json_object_foreach(f->map, name, file)
	{
		if (!json_is_string(file) || strchr(json_string_value(file), '/'))
			return error_set(err, -EINVAL,
					 "%s: weight_map: %s: expected the name of a file in the "
					 "same folder",
					 f->index, name);
		f->names[f->n_names++] = name;
	}
	return 0;
}

/* Reports the missing tensor, and names a tensor that exists, because names often differ by a
 * prefix, such as _orig_mod. of a compiled model. */
static int report_missing(const struct weight_files *f, const char *name, struct error *err)
{
	return error_set(err, -ENOENT,
			 "%s%s: tensor %s is missing; there are %zu others, such as %s",
			 f->root ? f->index : f->folder, f->root ? ": weight_map" : "", name,
			 f->n_names, f->n_names ? f->names[0] : "none");
}

static int find_by_index(struct weight_files *f, const char *name, size_t *which,
			 struct error *err)
{
	const char *file = json_string_value(json_object_get(f->map, name));
	int rc;

	if (!file)
		return report_missing(f, name, err);
	rc = open_file(f, file, which, err);
	if (rc == -ENOENT)
		return error_set(err, -EINVAL,
				 "%s: weight_map: %s: the folder has no %s: download it, or remove "
				 "the index if the weights are in other files",
				 f->index, name, file);
	if (rc)
		return error_prefix(err, rc, "%s: weight_map: %s", f->index, name);
	if (!safetensors_find(f->open[*which], name))
		return error_set(err, -EINVAL,
				 "%s: weight_map: tensor %s is not in %s: index and files are not "
				 "of one model",
				 f->index, name, f->paths[*which]);
	return 0;
}

/* ---- files without an index ---- */

/* Selects the *.safetensors files, except for shards of a skippipe checkpoint, because an exported
 * model may be in the same folder. */
static int is_weights(const struct dirent *e)
{
	const char *dot = strrchr(e->d_name, '.');

	return e->d_name[0] != '.' && dot && strcmp(dot, ".safetensors") == 0 &&
	       strncmp(e->d_name, "stage-", 6) != 0;
}

static int explain_none(const struct weight_files *f, struct error *err)
{
	char path[PATH];

	snprintf(path, sizeof(path), "%s/pytorch_model.bin", f->folder);
	return error_set(err, -ENOENT, "%s: no *.safetensors file%s", f->folder,
			 access(path, F_OK) == 0
				 ? "; pytorch_model.bin is not read: load the model in "
				   "transformers and save it again"
				 : "");
}

static int open_all(struct weight_files *f, struct error *err)
{
	struct dirent **found;
	int n = scandir(f->folder, &found, is_weights, alphasort), rc = 0;
	size_t which, all = 0;

	if (n < 0)
		return error_set(err, -errno, "%s: %s", f->folder, strerror(errno));
	for (int i = 0; i < n; i++) {
		if (!rc)
			rc = open_file(f, found[i]->d_name, &which, err);
		free(found[i]);
	}
	free(found);
	if (rc)
		return rc;
	if (n == 0)
		return explain_none(f, err);
	for (size_t i = 0; i < f->n; i++)
		all += safetensors_count(f->open[i]);
	f->names = calloc(all + 1, sizeof(*f->names));
	if (!f->names)
		return error_set(err, -ENOMEM, "%s: no memory for its tensors", f->folder);
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < safetensors_count(f->open[i]); k++)
			f->names[f->n_names++] = safetensors_at(f->open[i], k)->name;
	return 0;
}

static int find_only(struct weight_files *f, const char *name, size_t *which, struct error *err)
{
	*which = f->n;
	for (size_t i = 0; i < f->n; i++) {
		if (!safetensors_find(f->open[i], name))
			continue;
		if (*which < f->n)
			return error_set(err, -EINVAL,
					 "tensor %s is in %s and in %s: remove the file that is "
					 "not of this model, or add model.safetensors.index.json",
					 name, f->paths[*which], f->paths[i]);
		*which = i;
	}
	return *which < f->n ? 0 : report_missing(f, name, err);
}

int weight_files_open(struct weight_files **out, const char *folder, struct error *err)
{
	struct weight_files *f = alloc_new(sizeof(*f));
	int rc;

	f->folder = alloc_string(folder);
	snprintf(f->index, sizeof(f->index), "%s/model.safetensors.index.json", folder);
	rc = json_read_object(f->index, INDEX_MOST, &f->root, err);
	if (!rc)
		rc = read_map(f, err);
	else if (rc == -ENOENT)
		rc = open_all(f, err);
	if (rc)
		weight_files_close(f);
	else
		*out = f;
	return rc;
}

int weight_files_find(struct weight_files *f, const char *name, struct weight *w,
		      struct error *err)
{
	size_t which = 0;
	int rc = f->root ? find_by_index(f, name, &which, err) : find_only(f, name, &which, err);

	if (!rc)
		*w = (struct weight){ f->paths[which], f->open[which],
				      safetensors_find(f->open[which], name) };
	return rc;
}
