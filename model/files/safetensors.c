/* A file is a length, a JSON header of names, types, shapes and offsets, and the data. The header
 * comes from outside, so every number is checked against the file's size before use, and overlaps
 * and gaps are refused. A tensor of an unsupported type is no error, because files contain tensors
 * that are not needed here. Only the offset and size of such a tensor are recorded. */
#include "model/files/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/hash.h"

static const struct {
	const char *name;
	size_t size;
} types[] = {
	[SAFETENSORS_F32] = { "F32", 4 },
	[SAFETENSORS_F16] = { "F16", 2 },
	[SAFETENSORS_BF16] = { "BF16", 2 }, /* the number of entries equals SAFETENSORS_OTHER */
};

enum {
	TYPES = sizeof(types) / sizeof(types[0]),
	BLOCK = 1 << 16,     /* bytes that are read at a time */
	GIVEN_MOST = 1 << 20 /* floats that `give` copies at a time */
};

struct safetensors {
	int fd;
	char *path;
	uint64_t size, data; /* size of the file; offset of the tensors' data */
	json_t *header;      /* parsed header, which owns the names in the entries */
	struct safetensors_entry *entries;
	size_t n;
};

/* ---- reading ---- */

struct reading {
	struct safetensors *s;
	const char *path;
	uint64_t data_size;
	struct error *err;
};

static int read_bytes(const struct safetensors *s, uint64_t at, void *to, size_t size,
		      struct error *err)
{
	for (size_t got = 0; got < size;) {
		ssize_t n = pread(s->fd, (char *)to + got, size - got, (off_t)(at + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(err, -errno, "%s: %s", s->path, strerror(errno));
		if (n == 0)
			return error_set(err, -EINVAL, "%s: was cut short while it was read",
					 s->path);
		got += (size_t)n;
	}
	return 0;
}

static int say_bad_entry(const struct reading *r, const char *name, const char *what)
{
	return error_set(r->err, -EINVAL, "%s: tensor %s: %s", r->path, name, what);
}

static int read_shape(const struct reading *r, struct safetensors_entry *e, const json_t *shape)
{
	size_t n = json_array_size(shape);

	if (!json_is_array(shape) || n > SAFETENSORS_DIMS)
		return say_bad_entry(r, e->name, "shape: expected an array of at most 8 sizes");
	e->dims = (uint32_t)n;
	e->count = 1;
	for (size_t i = 0; i < n; i++) {
		const json_t *side = json_array_get(shape, i);

		if (!json_is_integer(side) || json_integer_value(side) < 0)
			return say_bad_entry(r, e->name, "shape: expected whole numbers");
		e->shape[i] = (uint64_t)json_integer_value(side);
		if (__builtin_mul_overflow(e->count, e->shape[i], &e->count))
			return say_bad_entry(r, e->name, "shape: too large");
	}
	return 0;
}

static int read_place(const struct reading *r, struct safetensors_entry *e, const json_t *offsets)
{
	const json_t *from = json_array_get(offsets, 0), *to = json_array_get(offsets, 1);

	if (json_array_size(offsets) != 2 || !json_is_integer(from) || !json_is_integer(to) ||
	    json_integer_value(from) < 0 || json_integer_value(to) < json_integer_value(from))
		return say_bad_entry(r, e->name, "data_offsets: expected [begin, end]");
	e->at = (uint64_t)json_integer_value(from);
	e->bytes = (uint64_t)json_integer_value(to) - e->at;
	if (e->at + e->bytes > r->data_size)
		return say_bad_entry(r, e->name,
				     "ends beyond the file, which has been cut short");
	return 0;
}

static int read_entry(const struct reading *r, struct safetensors_entry *e, const json_t *json)
{
	size_t kind = 0, size;
	int rc;

	e->dtype = json_string_value(json_object_get(json, "dtype"));
	if (!e->dtype)
		return say_bad_entry(r, e->name, "dtype: expected the name of a type");
	rc = read_place(r, e, json_object_get(json, "data_offsets"));
	if (rc)
		return rc;
	while (kind < TYPES && strcmp(types[kind].name, e->dtype) != 0)
		kind++;
	e->type = (enum safetensors_type)kind;
	if (kind == TYPES)
		return 0;
	rc = read_shape(r, e, json_object_get(json, "shape"));
	if (rc)
		return rc;
	if (__builtin_mul_overflow(e->count, types[kind].size, &size) || e->bytes != size)
		return say_bad_entry(r, e->name, "data_offsets and shape disagree");
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct safetensors_entry *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* Reads the table of tensors from the header, sorts it by offset, and refuses overlaps and gaps. */
static int read_entries(struct reading *r)
{
	struct safetensors *s = r->s;
	uint64_t end = 0;
	const char *name;
	json_t *json;

	s->entries = calloc(json_object_size(s->header) + 1, sizeof(*s->entries));
	if (!s->entries)
		return error_set(r->err, -ENOMEM, "%s: no memory for its table", r->path);
	json_object_foreach(s->header, name, json)
	{
		struct safetensors_entry *e = &s->entries[s->n];
		int rc;

		if (strcmp(name, "__metadata__") == 0)
			continue;
		e->name = name;
		rc = read_entry(r, e, json);
		if (rc)
			return rc;
		s->n++;
	}
	qsort(s->entries, s->n, sizeof(*s->entries), by_place);
	for (size_t i = 0; i < s->n; i++) {
		const struct safetensors_entry *e = &s->entries[i];

		if (e->at != end && e->bytes > 0)
			return say_bad_entry(r, e->name, "overlaps another, or leaves a hole");
		end += e->bytes;
	}
	if (end != r->data_size)
		return error_set(r->err, -EINVAL, "%s: %" PRIu64 " bytes after the last tensor",
				 r->path, r->data_size - end);
	return 0;
}

static int read_header(struct reading *r)
{
	struct safetensors *s = r->s;
	unsigned char size[8];
	uint64_t length = 0;
	json_error_t at;
	char *text;
	int rc;

	if (s->size < 8)
		return error_set(r->err, -EINVAL,
				 "%s: not a safetensors file: %" PRIu64 " bytes", r->path, s->size);
	rc = read_bytes(s, 0, size, 8, r->err);
	if (rc)
		return rc;
	for (int i = 8; i-- > 0;)
		length = length << 8 | size[i];
	if (memcmp(size, "version ", 8) == 0)
		return error_set(r->err, -EINVAL,
				 "%s: is a Git LFS pointer, not the file: fetch it with git lfs "
				 "pull",
				 r->path);
	if (length > s->size - 8 || length > 100u << 20)
		return error_set(
			r->err, -EINVAL,
			"%s: not a safetensors file, or cut short: a header of %" PRIu64
			" bytes in a file of %" PRIu64,
			r->path, length, s->size);
	text = malloc((size_t)length + 1);
	if (!text)
		return error_set(r->err, -ENOMEM, "%s: no memory for its header", r->path);
	rc = read_bytes(s, 8, text, (size_t)length, r->err);
	if (!rc)
		s->header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &at);
	free(text);
	if (rc)
		return rc;
	if (!json_is_object(s->header))
		return error_set(r->err, -EINVAL, "%s: header: %s", r->path,
				 s->header ? "expected an object" : at.text);
	s->data = 8 + length;
	r->data_size = s->size - s->data;
	return 0;
}

static int open_file(struct safetensors *s, const char *path, struct error *err)
{
	struct stat st;

	s->path = alloc_string(path);
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0 || fstat(s->fd, &st) != 0)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return error_set(err, -EINVAL, "%s: %s", path,
				 S_ISREG(st.st_mode) ? "is empty" : "not a regular file");
	s->size = (uint64_t)st.st_size;
	return 0;
}

int safetensors_open(struct safetensors **out, const char *path, struct error *err)
{
	struct safetensors *s = alloc_new(sizeof(*s));
	struct reading r = { .s = s, .path = path, .err = err };
	int rc;

	s->fd = -1;
	rc = open_file(s, path, err);
	if (!rc)
		rc = read_header(&r);
	if (!rc)
		rc = read_entries(&r);
	if (rc)
		safetensors_close(s);
	else
		*out = s;
	return rc;
}

void safetensors_close(struct safetensors *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	free(s->path);
	json_decref(s->header);
	free(s->entries);
	free(s);
}

size_t safetensors_count(const struct safetensors *s)
{
	return s->n;
}

const struct safetensors_entry *safetensors_at(const struct safetensors *s, size_t i)
{
	return &s->entries[i];
}

const struct safetensors_entry *safetensors_find(const struct safetensors *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->entries[i].name, name) == 0)
			return &s->entries[i];
	return NULL;
}

/* Converts an IEEE half, with 5 bits of exponent and 10 of fraction, to a float. */
static float from_half(uint16_t h)
{
	uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31, fraction = h & 1023;
	uint32_t bits;
	float v;

	if (exponent == 0) {
		v = (float)fraction * 0x1p-24f;
		return sign ? -v : v;
	}
	bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* Converts numbers of 16 bits, F16 or BF16 according to e, to floats. */
static void widen_values(const struct safetensors_entry *e, const unsigned char *from, size_t n,
			 float *to)
{
	for (size_t i = 0; i < n; i++) {
		uint16_t v = (uint16_t)(from[2 * i] | from[2 * i + 1] << 8);
		uint32_t bits = (uint32_t)v << 16;

		if (e->type == SAFETENSORS_F16)
			to[i] = from_half(v);
		else
			memcpy(&to[i], &bits, sizeof(bits));
	}
}

int safetensors_check_type(const struct safetensors *s, const struct safetensors_entry *e,
			   struct error *err)
{
	if (e->type != SAFETENSORS_OTHER)
		return 0;
	return error_set(err, -EINVAL, "%s: tensor %s: dtype is %.32s, expected F32, F16 or BF16",
			 s->path, e->name, e->dtype);
}

int safetensors_read_some(const struct safetensors *s, const struct safetensors_entry *e,
			  size_t first, size_t n, float *to, struct error *err)
{
	unsigned char block[BLOCK];
	int rc = safetensors_check_type(s, e, err);

	if (!rc && e->type == SAFETENSORS_F32)
		return read_bytes(s, s->data + e->at + 4 * first, to, n * sizeof(*to), err);
	for (size_t i = 0; i < n && !rc; i += BLOCK / 2) {
		size_t some = n - i < BLOCK / 2 ? n - i : BLOCK / 2;

		rc = read_bytes(s, s->data + e->at + 2 * (first + i), block, 2 * some, err);
		if (!rc)
			widen_values(e, block, some, to + i);
	}
	return rc;
}

int safetensors_read(const struct safetensors *s, const struct safetensors_entry *e, float *to,
		     struct error *err)
{
	return safetensors_read_some(s, e, 0, e->count, to, err);
}

/* Returns true if no number is infinite or NaN. An infinite number or a NaN has all bits of the
 * exponent set. */
static bool all_finite(const struct safetensors_entry *e, const unsigned char *from,
		       size_t size)
{
	size_t width = types[e->type].size;
	/* Bits of the exponent, within the upper 16 bits of a number. */
	unsigned mask = e->type == SAFETENSORS_F16 ? 0x7c00 : 0x7f80;

	for (size_t i = 0; i < size; i += width) {
		const unsigned char *upper = from + i + width - 2;

		if (((upper[0] | (unsigned)upper[1] << 8) & mask) == mask)
			return false;
	}
	return true;
}

/* Returns true if every number is 0 or -0. */
static bool all_zero(const struct safetensors_entry *e, const unsigned char *from, size_t size)
{
	size_t width = e->type == SAFETENSORS_OTHER ? 0 : types[e->type].size;

	for (size_t i = 0; i < size; i++) {
		bool has_sign = width && i % width == width - 1;

		if (has_sign ? from[i] & 0x7f : from[i])
			return false;
	}
	return true;
}

/* Sets *holds to true if `test` is true for every block of the tensor. */
static int test_blocks(const struct safetensors *s, const struct safetensors_entry *e,
		       bool (*test)(const struct safetensors_entry *, const unsigned char *,
				    size_t),
		       bool *holds, struct error *err)
{
	unsigned char block[BLOCK];

	*holds = true;
	for (uint64_t i = 0; i < e->bytes && *holds; i += BLOCK) {
		size_t n = e->bytes - i < BLOCK ? (size_t)(e->bytes - i) : BLOCK;
		int rc = read_bytes(s, s->data + e->at + i, block, n, err);

		if (rc)
			return rc;
		*holds = test(e, block, n);
	}
	return 0;
}

int safetensors_check_finite(const struct safetensors *s, const struct safetensors_entry *e,
			     struct error *err)
{
	bool finite;
	int rc = safetensors_check_type(s, e, err);

	if (!rc)
		rc = test_blocks(s, e, all_finite, &finite, err);
	if (rc)
		return rc;
	return finite ? 0
		      : error_set(err, -EINVAL, "%s: tensor %s: has a number that is not finite",
				  s->path, e->name);
}

int safetensors_all_zero(const struct safetensors *s, const struct safetensors_entry *e,
			 bool *zero, struct error *err)
{
	return test_blocks(s, e, all_zero, zero, err);
}

int safetensors_hash(const struct safetensors *s, uint64_t *to, struct error *err)
{
	unsigned char block[BLOCK];
	struct hash hash;

	hash_begin(&hash);
	for (uint64_t at = 0; at < s->size; at += BLOCK) {
		size_t n = s->size - at < BLOCK ? (size_t)(s->size - at) : BLOCK;
		int rc = read_bytes(s, at, block, n, err);

		if (rc)
			return rc;
		hash_add(&hash, block, n);
	}
	*to = hash_end(&hash);
	return 0;
}

int safetensors_checksum(const struct safetensors *s, uint64_t *to, struct error *err)
{
	uint64_t hash = 0xcbf29ce484222325u, word;
	unsigned char block[BLOCK];

	for (uint64_t at = 0; at < s->size; at += BLOCK) {
		size_t n = s->size - at < BLOCK ? (size_t)(s->size - at) : BLOCK, i = 0;
		int rc = read_bytes(s, at, block, n, err);

		if (rc)
			return rc;
		for (; i + 8 <= n; i += 8) {
			memcpy(&word, block + i, 8);
			hash = (hash ^ word) * 0x100000001b3u;
		}
		for (; i < n; i++)
			hash = (hash ^ block[i]) * 0x100000001b3u;
	}
	*to = hash;
	return 0;
}

/* ---- writing ---- */

static json_t *entry_json(const struct safetensors_entry *e, size_t *offset)
{
	size_t begin = *offset, size = e->count * types[e->type].size;
	json_t *shape = json_array();

	for (uint32_t i = 0; shape && i < e->dims; i++)
		json_array_append_new(shape, json_integer((json_int_t)e->shape[i]));
	*offset += size;
	return json_pack("{s:s, s:o, s:[I, I]}", "dtype", types[e->type].name, "shape", shape,
			 "data_offsets", (json_int_t)begin, (json_int_t)*offset);
}

/* Returns the header, padded with blanks so that the data begin at a multiple of 64 bytes. */
static char *header_text(const struct safetensors_entry *entries, size_t n,
			 const char *const *metadata, size_t *size)
{
	json_t *header = json_object(), *notes = json_object();
	size_t offset = 0, length;
	char *text = NULL, *padded = NULL;
	bool ok = json_object_set_new(notes, "format", json_string("pt")) == 0;

	for (; ok && metadata && metadata[0]; metadata += 2)
		ok = json_object_set_new(notes, metadata[0], json_string(metadata[1])) == 0;
	ok = json_object_set_new(header, "__metadata__", notes) == 0 && ok;
	for (size_t i = 0; ok && i < n; i++)
		ok = json_object_set_new(header, entries[i].name,
					 entry_json(&entries[i], &offset)) == 0;
	if (ok)
		text = json_dumps(header, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(header);
	if (text) {
		length = strlen(text);
		*size = (8 + length + 63) / 64 * 64;
		padded = malloc(*size);
	}
	if (padded) {
		memset(padded, ' ', *size);
		memcpy(padded + 8, text, length);
		for (int i = 0; i < 8; i++)
			padded[i] = (char)((*size - 8) >> (8 * i));
	}
	free(text);
	return padded;
}

static int write_given(struct file_aside *a, const struct safetensors_entry *e, struct error *err)
{
	size_t most = e->count < GIVEN_MOST ? e->count : GIVEN_MOST;
	float *part = malloc((most + 1) * sizeof(*part));
	int rc = part ? 0 : error_set(err, -ENOMEM, "no memory to write tensor %s", e->name);

	for (size_t at = 0, n; at < e->count && !rc; at += n) {
		n = e->count - at < most ? e->count - at : most;
		rc = e->give(e->context, at, n, part, err);
		if (!rc)
			rc = file_aside_write(a, part, n * sizeof(*part), err);
	}
	free(part);
	return rc;
}

static int write_data(struct file_aside *a, const struct safetensors_entry *e, struct error *err)
{
	if (!e->data)
		return write_given(a, e, err);
	return file_aside_write(a, e->data, e->count * types[e->type].size, err);
}

int safetensors_write(const char *path, const struct safetensors_entry *entries, size_t n,
		      const char *const *metadata, struct error *err)
{
	size_t size = 0;
	char *header = header_text(entries, n, metadata, &size);
	struct file_aside a;
	int rc;

	if (!header)
		return error_set(err, -ENOMEM, "%s: no memory for its header", path);
	rc = file_aside_open(&a, path, FILE_RESULT, err);
	if (!rc) {
		rc = file_aside_write(&a, header, size, err);
		for (size_t i = 0; i < n && !rc; i++)
			rc = write_data(&a, &entries[i], err);
		rc = file_aside_close(&a, rc, err);
	}
	free(header);
	return rc;
}
