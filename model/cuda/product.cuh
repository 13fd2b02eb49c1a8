/* product.cuh - makes matrix products by cuBLASLt, and keeps a plan for each shape. Private to
 * model/cuda. */
#ifndef MODEL_CUDA_PRODUCT_CUH
#define MODEL_CUDA_PRODUCT_CUH

#include <cuda_runtime.h>

#include "model/cuda/device.h"

struct products; /* opaque */

/* Loads cuBLASLt, and the table of algorithms (product_table.h) that SKIPPIPE_GPU_TABLE names.
 * -ENODEV: this machine lacks cuBLASLt; -EINVAL: the table cannot be used; *err has the cause.
 * number: the GPU's number, for the message. The functions below may be called only after a
 * success. */
int products_look(unsigned number, struct error *err);
size_t products_version(void); /* returns cuBLASLt's version */
/* Appends the hash of the table to a device's text, if the table names this card. card: "sm_90 H200
 * 132 SMs cuBLAS 130100". */
void products_describe(const char *card, char *text, size_t size);

/* Starts cuBLASLt. NULL: it does not start, or there is no memory for its workspace. If
 * SKIPPIPE_GPU_TUNE names a file, the algorithms of products that the table lacks are timed and
 * appended to the file. Products must then not be recorded. */
struct products *products_new(const char *card);
void products_free(struct products *p);
bool products_run(struct products *p, const struct device_product *what, cudaStream_t stream);

#endif
