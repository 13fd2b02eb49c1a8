/* Opens libraries of NVIDIA at run time. A program that is linked with them would not start on a
 * machine without the CUDA toolkit, not even to compute on the CPU. */
#include "model/cuda/library.h"

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

static void *open_anywhere(const char *file, const char *package)
{
	static const char *const toolkits[] = { "/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64",
						"/opt/cuda/lib64" };
	/* Folders of NVIDIA's packages on PyPI: the folder of the library's own package, and a
	 * common folder, which from CUDA 13 on has some of the libraries. */
	const char *const folders[] = { package, "cu[1-9]*" };
	const char *const roots[] = { getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX"),
				      "/usr/local",          "/usr",
				      "/opt/conda",          "/opt/venv",
				      "/venv/main" };
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(toolkits) / sizeof(toolkits[0]) && !library; i++) {
		snprintf(path, sizeof(path), "%s/%s", toolkits[i], file);
		library = open_match(path);
	}
	for (size_t r = 0; r < sizeof(roots) / sizeof(roots[0]); r++) {
		for (size_t i = 0; roots[r] && i < 2 && !library; i++) {
			snprintf(path, sizeof(path), "%s/lib/python3*/*-packages/nvidia/%s/lib/%s",
				 roots[r], folders[i], file);
			library = open_match(path);
		}
	}
	return library;
}

int nvidia_library_open(const struct nvidia_library *what, void **functions, struct error *err)
{
	void *library = open_anywhere(what->file, what->package);
	size_t found = 0;

	while (library && found < what->n &&
	       (functions[found] = dlsym(library, what->names[found])))
		found++;
	if (library && found == what->n)
		return 0;
	/* The message does not contain dlerror() if no place had the library, because dlerror()
	 * would only be about the last of many places. */
	error_set(err, -ENODEV,
		  "%s cannot be loaded (%s: %s): %s, or name its folder in LD_LIBRARY_PATH",
		  what->title, what->file, library ? dlerror() : "no such library", what->remedy);
	if (library)
		dlclose(library);
	return -ENODEV;
}
