/* product_table.h - a table of algorithms of matrix products, by card, version of cuBLASLt and
 * shape. Plain C, so that tests reach it without a GPU.
 *
 * A product's bits depend on its algorithm. Devices with different tables therefore count as
 * different kinds of devices, and their results agree only within tolerances.
 * `build/gpu tune` measures times on a card once and writes the table. At run time nothing is
 * timed: the algorithm is looked up. A row of the table is a line:
 *
 *     0 1 0 1 4096 768 768 768 768 768 3f 100000012 0 0 1 0 0 0 sm_90 H200 132 SMs cuBLAS 130100
 *
 * These are kind, bf16, c_bf16, added (0 no, 1 an array, 2 c itself), m, n, k, lda, ldb and ldc
 * of struct device_product, the algorithm in hexadecimal, and the card. If several rows are for
 * the same product, the first row counts. Empty lines are ignored, and so are lines that begin
 * with #.
 */
#ifndef MODEL_CUDA_PRODUCT_TABLE_H
#define MODEL_CUDA_PRODUCT_TABLE_H

#include <stdio.h>

#include "base/array.h"
#include "base/error.h"
#include "model/cuda/device.h"

/* PRODUCT_ALGORITHM: words of a cublasLtMatmulAlgo_t, which only the same version of cuBLASLt
 * understands. PRODUCT_ALIGNMENT: the algorithms are for matrices that begin at multiples of this
 * number of bytes. */
enum { PRODUCT_SHAPE = 10, PRODUCT_ALGORITHM = 8, PRODUCT_ALIGNMENT = 16 };

struct product_row {
	uint64_t shape[PRODUCT_SHAPE], algorithm[PRODUCT_ALGORITHM];
	uint64_t card; /* hash of the card's text */
};

struct product_table {
	LIST(struct product_row) rows;
};

/* Parses the text of a table. The caller frees out->rows.list. -EINVAL: *err has the file's name,
 * the line and what was expected; *out is unchanged. */
int product_table_parse(struct product_table *out, const char *text, const char *file,
			struct error *err);
/* Returns the algorithm of a product on a card (PRODUCT_ALGORITHM), borrowed from the table. NULL:
 * the table lacks the product, or product_table_allows is false. */
const uint64_t *product_table_find(const struct product_table *t, const char *card,
				   const struct device_product *p);
/* Returns true if all matrices of the product are aligned. */
bool product_table_allows(const struct device_product *p);
void product_table_print(FILE *to, const char *card, const struct device_product *p,
			 const uint64_t algorithm[PRODUCT_ALGORITHM]);
/* Appends a hash of the card's rows to a device's text, as " table 1a2b3c4d". Appends nothing if
 * the table does not name the card. */
void product_table_describe(const struct product_table *t, const char *card, char *text,
			    size_t size);

#endif
