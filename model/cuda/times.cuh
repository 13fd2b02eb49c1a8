/* times.cuh - measures how many seconds each kind of work takes on the device, for developers who
 * tune the code. Private to model/cuda.
 *
 * Every kernel, product, copy and clearing is put between two events. Graphs are therefore off
 * while times are measured, and steps are somewhat slower. All functions allow NULL and then do
 * nothing.
 */
#ifndef MODEL_CUDA_TIMES_CUH
#define MODEL_CUDA_TIMES_CUH

#include <cuda_runtime.h>

struct times; /* opaque */

/* Returns NULL unless the environment variable SKIPPIPE_GPU_TIMES is set. */
struct times *times_new(void);
/* Call these two before and after one piece of work. flops: floating-point operations of a product;
 * otherwise 0. */
void times_begin(struct times *t, cudaStream_t stream, const char *what, double flops);
void times_end(struct times *t, cudaStream_t stream);
/* Prints a line for each kind of work on standard error, the longest first. */
void times_free(struct times *t);

#endif
