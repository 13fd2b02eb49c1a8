/* Keeps a device's first failure, and distinguishes failures during a recording from other
 * failures. Without the distinction, a graph that lacks a failed product could be replayed, or a
 * stage would fail although the pass could run without a recording. */
#include "model/cuda/failure.h"

#include <stdio.h>

void failure_note(struct failure *f, const char *what, const char *why)
{
	if (!f->failed)
		snprintf(f->text, sizeof(f->text), "%s: %s", what, why);
	f->failed = true;
}

void failure_recording_begins(struct failure *f)
{
	f->failed_before = f->failed;
}

bool failure_recording_ended(struct failure *f, bool ended)
{
	if (ended && f->failed == f->failed_before)
		return true;
	f->failed = f->failed_before;
	if (!f->failed)
		f->text[0] = 0;
	return false;
}
