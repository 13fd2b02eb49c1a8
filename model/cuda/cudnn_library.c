/* Opens cuDNN's library. A file of its own, so that tests replace the library. */
#include <string.h>

#include "model/cuda/cudnn.h"
#include "model/cuda/library.h"

int cudnn_library(struct cudnn_functions *out, struct error *err)
{
	/* in the order of struct cudnn_functions */
	static const char *const names[] = {
		"cudnnGetVersion",
		"cudnnGetLastErrorString",
		"cudnnCreate",
		"cudnnDestroy",
		"cudnnSetStream",
		"cudnnBackendCreateDescriptor",
		"cudnnBackendDestroyDescriptor",
		"cudnnBackendSetAttribute",
		"cudnnBackendGetAttribute",
		"cudnnBackendFinalize",
		"cudnnBackendExecute",
	};
	static const struct nvidia_library cudnn = {
		"libcudnn.so.9",   "cuDNN", "cudnn",
		"install cuDNN 9", names,   sizeof(names) / sizeof(names[0])
	};
	void *functions[sizeof(names) / sizeof(names[0])];
	int rc = nvidia_library_open(&cudnn, functions, err);

	_Static_assert(sizeof(functions) == sizeof(*out), "a name for each function");
	if (rc == 0)
		memcpy(out, functions, sizeof(*out));
	return rc;
}
