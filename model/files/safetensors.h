/* safetensors.h - reads and writes the file format in which tools exchange models.
 *
 *     u64 little-endian   length of the header
 *     header              JSON: name -> dtype, shape, data_offsets [begin, end) from the data
 *     data                tensors, without holes
 *
 * The whole file is checked when it is opened, so table entries can be trusted afterwards.
 */
#ifndef MODEL_SAFETENSORS_H
#define MODEL_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* SAFETENSORS_OTHER: a type whose values these functions cannot read. Its entry has neither shape
 * nor count. */
enum safetensors_type { SAFETENSORS_F32, SAFETENSORS_F16, SAFETENSORS_BF16, SAFETENSORS_OTHER };

enum { SAFETENSORS_DIMS = 8 };

struct safetensors_entry {
	const char *name;
	enum safetensors_type type;
	uint32_t dims; /* number of dimensions, 0 to SAFETENSORS_DIMS */
	uint64_t shape[SAFETENSORS_DIMS];
	size_t count;     /* number of values: the product of the shape */
	const void *data; /* data to be written, little-endian */
	/* Used if data is NULL, for floats that lie elsewhere, for example on a device. Copies
	 * values [first, first + n) of the tensor to `to`. Returns 0 or a negative errno, with a
	 * message. */
	int (*give)(const void *context, size_t first, size_t n, float *to, struct error *err);
	const void *context; /* argument of `give` */
	/* Offset and size of the tensor's data in a file that was opened, bytes. */
	uint64_t at, bytes;
	const char *dtype; /* name of the type, in a file that was opened */
};

struct safetensors; /* opaque */

/* Reads the table. Data is read on request and not mapped, so a file that shrinks later causes an
 * error and not a signal. The message names the file and the tensor. -EINVAL: the file has another
 * format, is damaged, or is cut short; the functions below also return this if the file is cut
 * short later. Other errors are the system's. */
int safetensors_open(struct safetensors **out, const char *path, struct error *err);
void safetensors_close(struct safetensors *s); /* NULL is allowed */
/* Gives the whole table, for tests and fuzzers; programs look up entries by name. */
size_t safetensors_count(const struct safetensors *s);
const struct safetensors_entry *safetensors_at(const struct safetensors *s, size_t i);
const struct safetensors_entry *safetensors_find(const struct safetensors *s, const char *name);
/* Returns 0, or -EINVAL for SAFETENSORS_OTHER; the message names the type. */
int safetensors_check_type(const struct safetensors *s, const struct safetensors_entry *e,
			   struct error *err);
/* Reads the values as floats to `to` (count). After an error a part of `to` may be overwritten.
 * -EINVAL also for SAFETENSORS_OTHER. */
int safetensors_read(const struct safetensors *s, const struct safetensors_entry *e, float *to,
		     struct error *err);
/* Reads n values from index `first` on, otherwise like safetensors_read. */
int safetensors_read_some(const struct safetensors *s, const struct safetensors_entry *e,
			  size_t first, size_t n, float *to, struct error *err);
/* Checks that all values are finite. -EINVAL also for a value that is infinite or NaN. */
int safetensors_check_finite(const struct safetensors *s, const struct safetensors_entry *e,
			     struct error *err);
/* Sets *zero to true if every number is 0. For SAFETENSORS_OTHER: if every bit is 0. */
int safetensors_all_zero(const struct safetensors *s, const struct safetensors_entry *e,
			 bool *zero, struct error *err);
/* Hashes the whole file, as in hash.h. */
int safetensors_hash(const struct safetensors *s, uint64_t *hash, struct error *err);
/* Computes FNV-1a over the file's 64-bit words and its last bytes. Older manifests, which have no
 * key "hash", have this checksum. */
int safetensors_checksum(const struct safetensors *s, uint64_t *sum, struct error *err);

/* Writes entries (n; F32) to a temporary file, which is synced and renamed. metadata: pairs of key
 * and value, followed by NULL; or NULL for none. */
int safetensors_write(const char *path, const struct safetensors_entry *entries, size_t n,
		      const char *const *metadata, struct error *err);

#endif
