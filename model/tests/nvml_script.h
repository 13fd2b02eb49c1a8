/* nvml_script.h - the answers of tests/nvml.c, which replaces NVIDIA's library in tests. A test
 * sets these answers through the library's symbol nvml_script. NVML_TEST_BUS is its only GPU.
 */
#ifndef MODEL_TESTS_NVML_SCRIPT_H
#define MODEL_TESTS_NVML_SCRIPT_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/tests/test.h"

#define NVML_TEST_BUS "0000:65:00.0"

/* The answer of a function of NVML: its return code, and the value that it gives. */
struct nvml_answer {
	int code; /* return code; 0: success */
	unsigned long long value;
};

struct nvml_script {
	int init, find; /* return codes of nvmlInit_v2, and of finding the GPU */
	struct nvml_answer utilisation, used, power, limit, temperature, reasons;
	unsigned long long total, reserved; /* memory, bytes */
	int started;        /* number of calls of nvmlInit_v2 */
	int open;           /* number of these calls that nvmlShutdown has not undone */
	atomic_int calls;   /* number of calls for a temperature that have begun */
	atomic_int hanging; /* while this is not 0, a call for a temperature does not return */
};

/* Loads a library of the tests, which stays loaded, and writes its path to `path`. Returns the
 * answers, which the library owns. */
static inline struct nvml_script *nvml_script_load(const char *name, char path[4096])
{
	const char *build = getenv("SKIPPIPE_BUILD");
	struct nvml_script *s;
	void *file;

	snprintf(path, 4096, "%s/tests/%s", build ? build : "build", name);
	file = dlopen(path, RTLD_NOW);
	assert_non_null(file);
	s = dlsym(file, "nvml_script");
	assert_non_null(s);
	return s;
}

#endif
