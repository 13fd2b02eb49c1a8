/* failure.h - the first failure of a device, in words. Plain C, so that the GPU and the emulated
 * device of the tests share it. A passing failure of a recording is forgotten: the caller runs the
 * pass itself, and a lasting failure then happens again.
 */
#ifndef MODEL_CUDA_FAILURE_H
#define MODEL_CUDA_FAILURE_H

#include <stdbool.h>

struct failure {
	bool failed, failed_before; /* now, and when recording began */
	char text[256];             /* "" while there is none */
};

/* Notes a failure, unless an earlier one is known: the first is the cause of the others. what: the
 * kernel, product or copy. */
void failure_note(struct failure *f, const char *what, const char *why);
void failure_recording_begins(struct failure *f);
/* Returns true if a recording is whole: the caller could end it, and no product, kernel or copy
 * was refused since it began. A refused one is missing in the graph. Otherwise forgets what failed
 * since then. */
bool failure_recording_ended(struct failure *f, bool ended);

#endif
