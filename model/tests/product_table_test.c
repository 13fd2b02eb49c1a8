/* Tests the table of the algorithms of products: how it is read, searched, written and named in a
 * device's text. */
#include "model/cuda/product_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"

#define CARD "sm_90 H200 132 SMs cuBLAS 130100"
#define SHAPE "0 1 0 1 64 32 16 16 16 32 "
#define ALGORITHM "3f ffffffffffffffff 0 0 1 0 0 a "
#define ROW SHAPE ALGORITHM CARD "\n"

static _Alignas(PRODUCT_ALIGNMENT) char memory[4 * PRODUCT_ALIGNMENT];

static const struct device_product product = {
	.kind = PRODUCT_NT,
	.m = 64,
	.n = 32,
	.k = 16,
	.lda = 16,
	.ldb = 16,
	.ldc = 32,
	.a = memory,
	.b = memory + PRODUCT_ALIGNMENT,
	.c = memory + 2 * PRODUCT_ALIGNMENT,
	.added = memory + 3 * PRODUCT_ALIGNMENT,
	.bf16 = true,
};

static struct product_table parse(const char *text)
{
	struct product_table t = { 0 };
	struct error err = { "" };

	if (product_table_parse(&t, text, "f", &err) != 0)
		fail_msg("%s gave: %s", text, err.text);
	return t;
}

TEST(a_product_has_the_algorithm_of_its_shape)
{
	static const uint64_t expected[] = { 0x3f, UINT64_MAX, 0, 0, 1, 0, 0, 10 };
	struct product_table t = parse("# made by hand\n\n" SHAPE ALGORITHM CARD "\r\n" SHAPE
				       "1 2 3 4 5 6 7 8 " CARD "\n");
	struct device_product p = product;
	const uint64_t *found = product_table_find(&t, CARD, &p);

	assert_non_null(found);
	assert_memory_equal(found, expected, sizeof(expected));
#define EXPECT_NONE(field, value) \
	p = product; \
	p.field = (value); \
	assert_null(product_table_find(&t, CARD, &p))
	EXPECT_NONE(kind, PRODUCT_NN);
	EXPECT_NONE(bf16, false);
	EXPECT_NONE(c_bf16, true);
	EXPECT_NONE(added, NULL);
	EXPECT_NONE(added, p.c);
	EXPECT_NONE(m, 32);
	EXPECT_NONE(n, 64);
	EXPECT_NONE(k, 8);
	EXPECT_NONE(lda, 32);
	EXPECT_NONE(ldb, 32);
	EXPECT_NONE(ldc, 64);
	/* The algorithm may read 16 bytes at a time, so it must not be used for these addresses. */
	EXPECT_NONE(a, memory + 8);
	EXPECT_NONE(b, memory + 8);
	EXPECT_NONE(c, memory + 8);
	EXPECT_NONE(added, memory + 8);
	free(t.rows.list);
}

/* If a table does not name a device, it changes neither the device's products nor the device's
 * text. */
TEST(rows_of_other_cards_and_versions_do_not_count)
{
	static const char *const cards[] = { "sm_90 H200 132 SMs cuBLAS 130101",
					     "sm_90 H200 132 SMs cuBLAS 13010",
					     "sm_90 H200 114 SMs cuBLAS 130100",
					     "sm_90 H100 132 SMs cuBLAS 130100" };
	struct product_table t = parse(ROW);

	for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++) {
		char text[64] = "sm_90";

		assert_null(product_table_find(&t, cards[i], &product));
		product_table_describe(&t, cards[i], text, sizeof(text));
		assert_string_equal(text, "sm_90");
	}
	free(t.rows.list);
}

/* The text must differ if one bit of an algorithm differs, and must not depend on comments and on
 * the rows of other cards. */
TEST(the_devices_text_names_the_rows)
{
	static const char *const texts[] = {
		ROW,
		"#\n" SHAPE ALGORITHM "another\n" ROW,
		SHAPE "3f ffffffffffffffff 0 0 1 0 0 b " CARD "\n",
		ROW ROW,
	};
	char text[4][64] = { "sm_90", "sm_90", "sm_90", "sm_90" };

	for (int i = 0; i < 4; i++) {
		struct product_table t = parse(texts[i]);

		product_table_describe(&t, CARD, text[i], sizeof(text[i]));
		free(t.rows.list);
	}
	assert_int_equal(strlen(text[0]), strlen("sm_90 table 1a2b3c4d"));
	assert_string_equal(text[0], text[1]);
	assert_string_not_equal(text[0], text[2]);
	assert_string_not_equal(text[0], text[3]);
}

TEST(a_row_that_is_written_is_read_again)
{
	static const uint64_t algorithms[2][PRODUCT_ALGORITHM] = {
		{ 1, UINT64_MAX, 0x1234567890abcdef }, { 2 }
	};
	struct device_product in_place = product;
	struct product_table t;
	char text[512] = "";
	FILE *file = fmemopen(text, sizeof(text), "w");

	in_place.added = in_place.c;
	product_table_print(file, CARD, &product, algorithms[0]);
	product_table_print(file, CARD, &in_place, algorithms[1]);
	fclose(file);
	t = parse(text);
	assert_int_equal(t.rows.n, 2);
	assert_memory_equal(product_table_find(&t, CARD, &product), algorithms[0],
			    sizeof(algorithms[0]));
	assert_memory_equal(product_table_find(&t, CARD, &in_place), algorithms[1],
			    sizeof(algorithms[1]));
	free(t.rows.list);
}

TEST(a_wrong_line_is_named)
{
	static const char *const texts[][2] = {
		{ "-1 1", "f:1: expected a decimal number and a blank as column 1, got \"-1 1\"" },
		{ ROW "\n" SHAPE "1 2\n" ROW,
		  "f:3: expected a hexadecimal number and a blank as column 12, got \"2\"" },
		{ "0 a 0", "column 2, got \"a 0\"" },
		{ "0 1x 0", "column 2, got \"1x 0\"" },
		{ "0 1\n", "column 2, got \"1\"" },
		{ SHAPE "10000000000000000 2", "column 11, got \"10000000000000000 2\"" },
		{ "#\n" SHAPE ALGORITHM, "f:2: expected a card after the algorithm" },
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct product_table t = { 0 };
		struct error err = { "" };

		assert_int_equal(product_table_parse(&t, texts[i][0], "f", &err), -EINVAL);
		if (!strstr(err.text, texts[i][1]))
			fail_msg("%s gave: %s", texts[i][0], err.text);
		assert_null(t.rows.list);
	}
}
