/* safetensors.h - the file format model tools exchange weights in.
 *
 *     u64 little-endian   length of the header
 *     header              JSON: name -> dtype, shape, data_offsets [begin, end) from the data
 *     data                tensors, without holes
 *
 * A file is checked whole when it is opened: what a table entry says is then true.
 */
#ifndef MODEL_SAFETENSORS_H
#define MODEL_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum safetensors_type { SAFETENSORS_F32, SAFETENSORS_F16, SAFETENSORS_BF16 };

struct safetensors_entry {
	const char *name;
	enum safetensors_type type;
	uint32_t dims; /* 0 to 4 */
	uint64_t shape[4];
	size_t count;     /* product of the shape */
	const void *data; /* little-endian, not necessarily aligned */
};

struct safetensors; /* opaque */

/* Maps the file. The message names the file and the tensor. -EINVAL: not such a file, damaged,
 * or cut short; other errors are the system's. */
int safetensors_open(struct safetensors **out, const char *path, struct error *err);
void safetensors_close(struct safetensors *s); /* NULL is allowed */
size_t safetensors_count(const struct safetensors *s);
const struct safetensors_entry *safetensors_at(const struct safetensors *s, size_t i);
const struct safetensors_entry *safetensors_find(const struct safetensors *s, const char *name);
/* Values as floats, to (count). */
void safetensors_read(const struct safetensors_entry *e, float *to);
/* No infinity and nothing that is no number. */
bool safetensors_finite(const struct safetensors_entry *e);
/* FNV-1a over the file's 64-bit words, then its last bytes. */
uint64_t safetensors_hash(const struct safetensors *s);

/* Writes entries (n; F32) aside, fsyncs, renames. metadata: pairs of key and value, NULL at the
 * end, or NULL. */
int safetensors_write(const char *path, const struct safetensors_entry *entries, size_t n,
		      const char *const *metadata, struct error *err);

#endif
