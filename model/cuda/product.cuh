/* product.cuh - matrix products by cuBLASLt, each shape's plan kept. Inside model/cuda alone. */
#ifndef MODEL_CUDA_PRODUCT_CUH
#define MODEL_CUDA_PRODUCT_CUH

#include <cuda_runtime.h>

#include "model/cuda/device.h"

struct products; /* opaque */

struct products *products_new(void); /* NULL: no cuBLASLt, or no memory for its workspace */
void products_free(struct products *p);
bool products_run(struct products *p, const struct device_product *what, cudaStream_t stream);

#endif
