/* msg.c - encodes and decodes messages by the tables of layouts.c. The same functions check the
 * lengths and limits of all messages, so a check cannot be forgotten in a new message. */
#include "wire/msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/layouts.h"

/* Size of the envelope in bytes: "sp", version u8, 0 u8, type u16, 0 u16, sequence u64. */
enum { ENVELOPE = 16 };

const char *msg_name(enum msg_type type)
{
	const struct message *f = layouts_find(type);

	return f ? f->name : "unknown";
}

/* Returns the size of a scalar in bytes, which is the same on the wire and in memory. */
static size_t kind_width(enum kind k)
{
	switch (k) {
	case U8:
		return 1;
	case U16:
		return 2;
	case U32:
	case F32:
		return 4;
	default:
		return 8;
	}
}

static void put_bytes(unsigned char *to, const void *from, size_t w)
{
	uint64_t v = 0;

	switch (w) {
	case 1:
		v = *(const uint8_t *)from;
		break;
	case 2: {
		uint16_t t;
		memcpy(&t, from, 2);
		v = t;
		break;
	}
	case 4: {
		uint32_t t;
		memcpy(&t, from, 4);
		v = t;
		break;
	}
	default:
		memcpy(&v, from, 8);
	}
	for (size_t i = 0; i < w; i++)
		to[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get_number(const unsigned char *from, size_t w)
{
	uint64_t v = 0;

	for (size_t i = 0; i < w; i++)
		v |= (uint64_t)from[i] << (8 * i);
	return v;
}

static void store_number(void *to, uint64_t v, size_t w)
{
	uint8_t b = (uint8_t)v;
	uint16_t h = (uint16_t)v;
	uint32_t s = (uint32_t)v;

	switch (w) {
	case 1:
		memcpy(to, &b, 1);
		break;
	case 2:
		memcpy(to, &h, 2);
		break;
	case 4:
		memcpy(to, &s, 4);
		break;
	default:
		memcpy(to, &v, 8);
	}
}

static uint32_t count_of(const char *s, const struct field *f)
{
	uint32_t n;

	memcpy(&n, s + f->count_offset, sizeof(n));
	return n;
}

static const char *elements_of(const char *s, const struct field *f)
{
	const char *p;

	if (f->inside)
		return s + f->offset;
	memcpy(&p, s + f->offset, sizeof(p));
	return p;
}

/* ---- writing: if out is NULL, these functions only count the bytes. They return 0 if a limit is
 * exceeded ---- */

static size_t write_struct(const struct layout *l, const char *s, unsigned char *out);

/* Writes the count and the elements. Returns 0 if there are too many elements, or no pointer to
 * them. */
static size_t write_array(const struct field *f, const char *s, unsigned char *out)
{
	uint32_t n = count_of(s, f);
	const char *p = elements_of(s, f);
	size_t at = 0, step = f->sub ? f->sub->size : kind_width(f->of);

	if (n > f->most || (n > 0 && !p))
		return 0;
	if (f->kind == ARRAY) {
		if (out)
			put_bytes(out, &n, 4);
		at = 4;
	}
	if (!f->sub && !out)
		return at + n * step;
	for (uint32_t i = 0; i < n; i++) {
		if (f->sub) {
			size_t got = write_struct(f->sub, p + i * step, out ? out + at : NULL);

			if (got == 0)
				return 0;
			at += got;
		} else {
			put_bytes(out + at, p + i * step, step);
			at += step;
		}
	}
	return at;
}

static size_t write_text(const struct field *f, const char *s, unsigned char *out)
{
	uint16_t n = (uint16_t)strnlen(s + f->offset, f->most - 1);

	if (out) {
		put_bytes(out, &n, 2);
		memcpy(out + 2, s + f->offset, n);
	}
	return 2u + n;
}

/* Writes the fields in the layout's order. Returns the number of bytes, or 0 if a limit is
 * exceeded. */
static size_t write_struct(const struct layout *l, const char *s, unsigned char *out)
{
	size_t at = 0;

	for (uint16_t i = 0; i < l->n; i++) {
		const struct field *f = &l->fields[i];
		unsigned char *to = out ? out + at : NULL;

		switch (f->kind) {
		case TEXT:
			at += write_text(f, s, to);
			break;
		case RAW:
			if (to)
				memcpy(to, s + f->offset, f->most);
			at += f->most;
			break;
		case ARRAY:
		case SHARED: {
			size_t n = write_array(f, s, to);

			if (n == 0 && (f->kind == ARRAY || count_of(s, f) != 0))
				return 0;
			at += n;
			break;
		}
		default:
			if (to)
				put_bytes(to, s + f->offset, kind_width(f->kind));
			at += kind_width(f->kind);
		}
	}
	return at;
}

size_t msg_size(const struct msg *m)
{
	const struct message *f = layouts_find(m->type);
	size_t n = f ? write_struct(f->layout, (const char *)&m->u, NULL) : 0;

	return n == 0 ? 0 : ENVELOPE + n;
}

long msg_encode(const struct msg *m, void *out, size_t room)
{
	unsigned char *to = out;
	size_t n = msg_size(m);
	uint16_t type = (uint16_t)m->type;

	if (n == 0)
		return -EINVAL;
	if (n > room)
		return -ENOSPC;
	memcpy(to, "sp", 2);
	to[2] = MSG_VERSION;
	to[3] = 0;
	put_bytes(to + 4, &type, 2);
	to[6] = to[7] = 0;
	put_bytes(to + 8, &m->sequence, 8);
	write_struct(layouts_find(m->type)->layout, (const char *)&m->u, to + ENVELOPE);
	return (long)n;
}

/* ---- reading ----
 *
 * A message is read in two passes over the same bytes. The first pass checks everything and adds
 * up the memory for the arrays. The second pass fills the structs. A single allocation holds all
 * arrays. The message's length limits the size of this allocation, because each byte of an array
 * on the wire gives at most 24 bytes in memory. */

struct reader {
	const unsigned char *data;
	size_t size, at;
	char *pool;     /* memory for the arrays; NULL during the first pass */
	/* Number of bytes of the pool that are needed (first pass) or used (second pass). */
	size_t pool_at;
};

static bool take_bytes(struct reader *r, size_t n, const unsigned char **from)
{
	if (r->size - r->at < n)
		return false;
	*from = r->data + r->at;
	r->at += n;
	return true;
}

static bool read_struct(struct reader *r, const struct layout *l, char *s);

static bool read_elements(struct reader *r, const struct field *f, uint32_t n, char *to)
{
	size_t step = f->sub ? f->sub->size : kind_width(f->of);
	const unsigned char *from;

	if (!f->sub) {
		if (!take_bytes(r, n * step, &from))
			return false;
		for (uint32_t i = 0; to && i < n; i++)
			store_number(to + i * step, get_number(from + i * step, step), step);
		return true;
	}
	for (uint32_t i = 0; i < n; i++)
		if (!read_struct(r, f->sub, to ? to + i * step : NULL))
			return false;
	return true;
}

static bool read_array(struct reader *r, const struct field *f, char *s, uint32_t *shared)
{
	size_t step = f->sub ? f->sub->size : kind_width(f->of), bytes;
	const unsigned char *from;
	uint32_t n = *shared;
	char *to = NULL;

	if (f->kind == ARRAY) {
		if (!take_bytes(r, 4, &from))
			return false;
		n = (uint32_t)get_number(from, 4);
		/* Each element takes at least one byte, so the count cannot exceed the number of
		 * bytes left. */
		if (n > f->most || n > r->size - r->at)
			return false;
		*shared = n;
	}
	if (s && f->kind == ARRAY)
		memcpy(s + f->count_offset, &n, sizeof(n));
	if (f->inside)
		return read_elements(r, f, n, s ? s + f->offset : NULL);
	bytes = (n * step + 7) & ~(size_t)7;
	if (r->pool && n > 0)
		to = r->pool + r->pool_at;
	r->pool_at += bytes;
	if (s)
		memcpy(s + f->offset, &to, sizeof(to));
	return read_elements(r, f, n, to);
}

static bool read_text(struct reader *r, const struct field *f, char *s)
{
	const unsigned char *from;
	size_t n;

	if (!take_bytes(r, 2, &from))
		return false;
	n = (size_t)get_number(from, 2);
	if (n >= f->most || !take_bytes(r, n, &from) || memchr(from, 0, n))
		return false;
	if (s) {
		memcpy(s + f->offset, from, n);
		memset(s + f->offset + n, 0, f->most - n);
	}
	return true;
}

static bool read_scalar(struct reader *r, const struct field *f, char *s)
{
	size_t w = kind_width(f->kind);
	const unsigned char *from;

	if (!take_bytes(r, w, &from) || (f->most && get_number(from, w) > f->most))
		return false;
	if (s)
		store_number(s + f->offset, get_number(from, w), w);
	return true;
}

static bool read_struct(struct reader *r, const struct layout *l, char *s)
{
	uint32_t shared = 0;
	const unsigned char *from;
	bool ok = true;

	for (uint16_t i = 0; ok && i < l->n; i++) {
		const struct field *f = &l->fields[i];

		switch (f->kind) {
		case TEXT:
			ok = read_text(r, f, s);
			break;
		case RAW:
			ok = take_bytes(r, f->most, &from);
			if (ok && s)
				memcpy(s + f->offset, from, f->most);
			break;
		case ARRAY:
		case SHARED:
			ok = read_array(r, f, s, &shared);
			break;
		default:
			ok = read_scalar(r, f, s);
		}
	}
	return ok;
}

bool msg_is_foreign(const void *data, size_t size)
{
	const unsigned char *d = data;

	return size >= ENVELOPE && memcmp(d, "sp", 2) == 0 && d[2] != MSG_VERSION;
}

int msg_decode(struct msg *m, const void *data, size_t size)
{
	const unsigned char *d = data;
	struct reader r = { d, size, ENVELOPE, NULL, 0 };
	char *pool = NULL;
	const struct message *f;

	memset(m, 0, sizeof(*m));
	if (size < ENVELOPE || memcmp(d, "sp", 2) != 0)
		return -EBADMSG;
	if (msg_is_foreign(data, size))
		return -EPROTONOSUPPORT;
	f = layouts_find((enum msg_type)get_number(d + 4, 2));
	if (!f || d[3] != 0 || get_number(d + 6, 2) != 0 || !read_struct(&r, f->layout, NULL))
		return -EBADMSG;
	if (r.at != size && !f->body)
		return -EBADMSG;
	if (r.pool_at > 0) {
		pool = malloc(r.pool_at);
		if (!pool)
			return -ENOMEM;
	}
	r.at = ENVELOPE;
	r.pool = pool;
	r.pool_at = 0;
	read_struct(&r, f->layout, (char *)&m->u);
	m->type = f->type;
	m->sequence = get_number(d + 8, 8);
	m->owned = pool;
	if (f->body) {
		m->body = d + r.at;
		m->body_size = size - r.at;
	}
	return 0;
}

void msg_clear(struct msg *m)
{
	free(m->owned);
	memset(m, 0, sizeof(*m));
}
