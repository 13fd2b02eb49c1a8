/* cublas_library.h - finds cuBLASLt when a GPU is first used. Plain C, so that tests reach it
 * without a GPU.
 */
#ifndef MODEL_CUDA_CUBLAS_LIBRARY_H
#define MODEL_CUDA_CUBLAS_LIBRARY_H

#include <stddef.h>

#include "base/error.h"

/* Opens the shared library `file` and fills in the n functions named in `names`. The library stays
 * open until the process ends. The function searches where the system's loader looks, then in the
 * folders of CUDA toolkits. Last it searches among the Python packages of the active environment
 * (VIRTUAL_ENV, CONDA_PREFIX) and of the system, because an image with PyTorch has the library
 * there. version: version of the toolkit that has the library, for the message. -ENODEV: the
 * library or a function is missing; *err says which, and names the remedy. */
int cublas_library_open(const char *file, int version, const char *const *names,
			void **functions, size_t n, struct error *err);

#endif
