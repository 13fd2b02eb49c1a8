/* Reads, writes and searches a table of the algorithms of products. */
#include "model/cuda/product_table.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/hash.h"

static struct product_row row_of(const struct device_product *p)
{
	uint64_t added = !p->added ? 0 : p->added == p->c ? 2 : 1;

	return (struct product_row){ .shape = { p->kind, p->bf16, p->c_bf16, added, p->m, p->n,
						p->k, p->lda, p->ldb, p->ldc } };
}

bool product_table_allows(const struct device_product *p)
{
	uintptr_t all = (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c | (uintptr_t)p->added;

	return all % PRODUCT_ALIGNMENT == 0;
}

const uint64_t *product_table_find(const struct product_table *t, const char *card,
				   const struct device_product *p)
{
	struct product_row row = row_of(p), *at = t->rows.list, *end = at + t->rows.n;
	uint64_t hash = hash_bytes(card, strlen(card));

	while (at < end && (at->card != hash || memcmp(at->shape, row.shape, sizeof(row.shape))))
		at++;
	return at < end && product_table_allows(p) ? at->algorithm : NULL;
}

void product_table_print(FILE *to, const char *card, const struct device_product *p,
			 const uint64_t algorithm[PRODUCT_ALGORITHM])
{
	struct product_row row = row_of(p);

	for (size_t i = 0; i < PRODUCT_SHAPE; i++)
		fprintf(to, "%" PRIu64 " ", row.shape[i]);
	for (size_t i = 0; i < PRODUCT_ALGORITHM; i++)
		fprintf(to, "%" PRIx64 " ", algorithm[i]);
	fprintf(to, "%s\n", card);
}

/* Reads a row from the n bytes of a line. */
static int read_row(struct product_row *row, const char *at, size_t n, struct error *err)
{
	const char *end = at + n;

	for (int i = 0; i < PRODUCT_SHAPE + PRODUCT_ALGORITHM; i++) {
		bool decimal = i < PRODUCT_SHAPE;
		uint64_t *to = decimal ? &row->shape[i] : &row->algorithm[i - PRODUCT_SHAPE];
		const char *word = at;

		/* refuses signs, which strtoull would accept */
		errno = isxdigit((unsigned char)*at) ? 0 : EINVAL;
		*to = strtoull(word, (char **)&at, decimal ? 10 : 16);
		if (errno || *at++ != ' ')
			return error_set(err, -EINVAL,
					 "expected a %s number and a blank as column %d, got "
					 "\"%.*s\"",
					 decimal ? "decimal" : "hexadecimal", i + 1,
					 word < end ? (int)(end - word) : 0, word);
	}
	row->card = hash_bytes(at, (size_t)(end - at));
	return at < end ? 0 : error_set(err, -EINVAL, "expected a card after the algorithm");
}

int product_table_parse(struct product_table *out, const char *text, const char *file,
			struct error *err)
{
	struct product_table t = { 0 };

	for (int line = 1; *text; line++) {
		struct product_row row;
		size_t n = strcspn(text, "\r\n");

		if (n > 0 && *text != '#') {
			if (read_row(&row, text, n, err) != 0) {
				free(t.rows.list);
				return error_prefix(err, -EINVAL, "%s:%d", file, line);
			}
			*LIST_ADD(&t.rows) = row;
		}
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	*out = t;
	return 0;
}

void product_table_describe(const struct product_table *t, const char *card, char *text,
			    size_t size)
{
	size_t used = strlen(text);
	uint64_t wanted = hash_bytes(card, strlen(card));
	bool named = false;
	struct hash hash;

	hash_begin(&hash);
	for (size_t i = 0; i < t->rows.n; i++)
		if (t->rows.list[i].card == wanted) {
			hash_add(&hash, &t->rows.list[i], sizeof(t->rows.list[i]));
			named = true;
		}
	if (named)
		snprintf(text + used, size - used, " table %08" PRIx32, (uint32_t)hash_end(&hash));
}
