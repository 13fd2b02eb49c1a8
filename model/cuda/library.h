/* library.h - finds a library of NVIDIA when a GPU is first used. Plain C, so that tests reach it
 * without a GPU.
 */
#ifndef MODEL_CUDA_LIBRARY_H
#define MODEL_CUDA_LIBRARY_H

#include <stddef.h>

#include "base/error.h"

/* A library and the functions that the caller needs from it. */
struct nvidia_library {
	const char *file;    /* name of the shared library */
	const char *title;   /* name in messages */
	/* The library's folder among NVIDIA's Python packages: "cublas", "cudnn". */
	const char *package;
	const char *remedy;  /* how to get the library: "install ..." */
	const char *const *names;
	size_t n; /* number of names */
};

/* Opens a library and fills in the n functions. The library stays open until the process ends.
 * The function searches where the system's loader looks, then in the folders of CUDA toolkits.
 * Finally it searches among the Python packages of the active environment (VIRTUAL_ENV,
 * CONDA_PREFIX) and of the system, because an image with PyTorch has the libraries there.
 * -ENODEV: the library or a function is missing; *err says which, and names the remedy. */
int nvidia_library_open(const struct nvidia_library *what, void **functions, struct error *err);

#endif
