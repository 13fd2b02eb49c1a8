/* Opens cuBLASLt at run time. A program that is linked with it would not start on a machine without
 * the CUDA toolkit, not even to compute on the CPU. */
#include "model/cuda/cublas_library.h"

#include <dlfcn.h>
#include <errno.h>

int cublas_library_open(const char *file, int version, const char *const *names,
			void **functions, size_t n, struct error *err)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	size_t found = 0;

	while (library && found < n && (functions[found] = dlsym(library, names[found])))
		found++;
	if (library && found == n)
		return 0;
	error_set(err, -ENODEV,
		  "cuBLAS cannot be loaded (%s): install the CUDA toolkit's libcublas, version "
		  "%d, or name its folder in LD_LIBRARY_PATH",
		  dlerror(), version);
	if (library)
		dlclose(library);
	return -ENODEV;
}
