/* Opens cuBLASLt at run time. A program that is linked with it would not start on a machine without
 * the CUDA toolkit, not even to compute on the CPU. */
#include "model/cuda/cublas_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Opens the first library whose path matches the pattern. Returns NULL if none can be opened. */
static void *open_match(const char *pattern)
{
	void *library = NULL;
	glob_t found;

	if (glob(pattern, 0, NULL, &found) != 0)
		return NULL;
	for (size_t i = 0; i < found.gl_pathc && !library; i++)
		library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
	globfree(&found);
	return library;
}

static void *open_anywhere(const char *file)
{
	static const char *const toolkits[] = { "/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64",
						"/opt/cuda/lib64" };
	/* Folders of NVIDIA's packages on PyPI: up to CUDA 12, and from CUDA 13 on. */
	static const char *const packages[] = { "nvidia/cublas/lib", "nvidia/cu[1-9]*/lib" };
	const char *const roots[] = { getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX"), "/usr/local",
				      "/usr",		     "/opt/conda",	     "/opt/venv",
				      "/venv/main" };
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(toolkits) / sizeof(toolkits[0]) && !library; i++) {
		snprintf(path, sizeof(path), "%s/%s", toolkits[i], file);
		library = open_match(path);
	}
	for (size_t r = 0; r < sizeof(roots) / sizeof(roots[0]); r++) {
		for (size_t i = 0; roots[r] && i < 2 && !library; i++) {
			snprintf(path, sizeof(path), "%s/lib/python3*/*-packages/%s/%s", roots[r],
				 packages[i], file);
			library = open_match(path);
		}
	}
	return library;
}

int cublas_library_open(const char *file, int version, const char *const *names,
			void **functions, size_t n, struct error *err)
{
	void *library = open_anywhere(file);
	size_t found = 0;

	while (library && found < n && (functions[found] = dlsym(library, names[found])))
		found++;
	if (library && found == n)
		return 0;
	/* The message does not contain dlerror(), which would only be about the last of many
	 * places. */
	error_set(err, -ENODEV,
		  "cuBLAS cannot be loaded (%s: %s): install the CUDA toolkit's libcublas, version "
		  "%d, or name its folder in LD_LIBRARY_PATH",
		  file, library ? dlerror() : "no such library", version);
	if (library)
		dlclose(library);
	return -ENODEV;
}
