/* outlet.h - a stream to a pipe or terminal whose reader may pause (less, Ctrl-S, a stalled ssh).
 *
 * A program that writes to a full pipe waits for the reader. Meanwhile it can neither work nor end.
 * A thread of the outlet therefore does the writing, and the program only fills a queue. */
#ifndef BASE_PROCESS_OUTLET_H
#define BASE_PROCESS_OUTLET_H

#include <stdint.h>
#include <stdio.h>

struct outlet;

/* Opens an outlet to a stream such as stdout, which stays the caller's. A regular file is written
 * without a thread. The thread blocks the signals that the caller blocks. */
struct outlet *outlet_new(FILE *to);

/* Returns the stream to write to. Writing to this stream never blocks. The caller flushes it after
 * each line. A line is dropped if the queue (16 MiB) has no room for it. */
FILE *outlet_stream(struct outlet *o);

/* Waits until the queue is written, but at most wait_us, or until a signal that ends programs is
 * pending. Frees the outlet. Returns 0, the negative errno of the first write that failed, or
 * -ENOBUFS: lines were dropped. */
int outlet_free(struct outlet *o, int64_t wait_us);

#endif
