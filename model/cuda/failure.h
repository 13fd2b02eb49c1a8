/* failure.h - the first failure of a device, in words. Plain C, because the GPU and the tests'
 * emulated device share it.
 *
 * A failure during a recording is forgotten. The caller then runs the pass without a recording, and
 * a lasting failure occurs again.
 */
#ifndef MODEL_CUDA_FAILURE_H
#define MODEL_CUDA_FAILURE_H

#include <stdbool.h>

struct failure {
	bool failed, failed_before; /* failed_before: the device had failed when recording began */
	char text[256];             /* the failure in words; "": none */
};

/* Notes a failure, unless an earlier failure is known, because the first failure causes the later
 * failures. what: the kernel, product or copy that failed. */
void failure_note(struct failure *f, const char *what, const char *why);
void failure_recording_begins(struct failure *f);
/* Returns true if a recording is complete: the caller could end it, and no product, kernel or copy
 * has failed since it began. An operation that has failed would be missing in the graph. If the
 * recording is not complete, forgets the failures since it began. */
bool failure_recording_ended(struct failure *f, bool ended);

#endif
