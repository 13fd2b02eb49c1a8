/* times.cuh - seconds on the device by kind of work, for those who tune it. Inside model/cuda
 * alone.
 *
 * Events around every kernel, product, copy and clearing, so graphs are off and steps are
 * somewhat slower than usual. All functions allow NULL and do nothing then.
 */
#ifndef MODEL_CUDA_TIMES_CUH
#define MODEL_CUDA_TIMES_CUH

#include <cuda_runtime.h>

struct times; /* opaque */

/* NULL unless the environment variable SKIPPIPE_GPU_TIMES is set. */
struct times *times_new(void);
/* Around one piece of work. flops: of a product; otherwise 0. */
void times_begin(struct times *t, cudaStream_t stream, const char *what, double flops);
void times_end(struct times *t, cudaStream_t stream);
/* Prints a line for each kind of work on standard error, the longest first. */
void times_free(struct times *t);

#endif
