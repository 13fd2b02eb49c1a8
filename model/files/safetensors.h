/* safetensors.h - the file format model tools exchange weights in.
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

/* OTHER: a type whose values cannot be read here. Its entry has neither shape nor count. */
enum safetensors_type { SAFETENSORS_F32, SAFETENSORS_F16, SAFETENSORS_BF16, SAFETENSORS_OTHER };

enum { SAFETENSORS_DIMS = 8 };

struct safetensors_entry {
	const char *name;
	enum safetensors_type type;
	uint32_t dims; /* 0 to SAFETENSORS_DIMS */
	uint64_t shape[SAFETENSORS_DIMS];
	size_t count;     /* product of the shape */
	const void *data; /* little-endian: of one to be written */
	uint64_t at, bytes; /* its place in the data of a file that was opened */
	const char *dtype;  /* in such a file, the type's name */
};

struct safetensors; /* opaque */

/* Reads the table; the data are read when asked for, so that a file which shrinks meanwhile is an
 * error like any other and never a signal. The message names the file and the tensor. -EINVAL:
 * not such a file, damaged, or cut short, then or later; other errors are the system's. */
int safetensors_open(struct safetensors **out, const char *path, struct error *err);
void safetensors_close(struct safetensors *s); /* NULL is allowed */
/* The whole table, for tests and fuzzers; programs look entries up by name. */
size_t safetensors_count(const struct safetensors *s);
const struct safetensors_entry *safetensors_at(const struct safetensors *s, size_t i);
const struct safetensors_entry *safetensors_find(const struct safetensors *s, const char *name);
/* -EINVAL for SAFETENSORS_OTHER; the message has the type's name. */
int safetensors_check_type(const struct safetensors *s, const struct safetensors_entry *e,
			   struct error *err);
/* Values as floats, to (count), part of which an error leaves overwritten. -EINVAL also for
 * SAFETENSORS_OTHER. */
int safetensors_read(const struct safetensors *s, const struct safetensors_entry *e, float *to,
		     struct error *err);
/* As safetensors_read, for the n values from the first. */
int safetensors_read_some(const struct safetensors *s, const struct safetensors_entry *e,
			  size_t first, size_t n, float *to, struct error *err);
/* -EINVAL also for infinity and NaN. */
int safetensors_check_finite(const struct safetensors *s, const struct safetensors_entry *e,
			     struct error *err);
/* Sets *zero to true if every number is 0. Of SAFETENSORS_OTHER, every bit. */
int safetensors_all_zero(const struct safetensors *s, const struct safetensors_entry *e,
			 bool *zero, struct error *err);
/* Hashes the whole file, as in hash.h. */
int safetensors_hash(const struct safetensors *s, uint64_t *hash, struct error *err);
/* FNV-1a over the file's 64-bit words, then its last bytes: what manifests without "hash" have. */
int safetensors_checksum(const struct safetensors *s, uint64_t *sum, struct error *err);

/* Writes entries (n; F32) aside, fsyncs, renames. metadata: pairs of key and value, NULL at the
 * end, or NULL. */
int safetensors_write(const char *path, const struct safetensors_entry *entries, size_t n,
		      const char *const *metadata, struct error *err);

#endif
