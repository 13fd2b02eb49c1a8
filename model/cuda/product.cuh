/* product.cuh - matrix products by cuBLASLt, with the plan of each shape kept. Private to
 * model/cuda. */
#ifndef MODEL_CUDA_PRODUCT_CUH
#define MODEL_CUDA_PRODUCT_CUH

#include <cuda_runtime.h>

#include "model/cuda/device.h"

struct products; /* opaque */

/* Loads cuBLASLt. -ENODEV: this machine lacks cuBLASLt; *err has the cause. number: the GPU's
 * number, for the message. The functions below may be called only after a success. */
int products_look(unsigned number, struct error *err);
size_t products_version(void); /* returns cuBLASLt's version */

/* Starts cuBLASLt. NULL: it does not start, or there is no memory for its workspace. */
struct products *products_new(void);
void products_free(struct products *p);
bool products_run(struct products *p, const struct device_product *what, cudaStream_t stream);

#endif
