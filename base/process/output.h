/* output.h - standard output as a place for results: a write that fails makes the program fail. */
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include "base/error.h"

/* Makes the end of the program check standard output. If a write failed, or if the bytes that are
 * still buffered cannot be written, the program prints "PROGRAM: stdout: CAUSE" on standard error
 * and exits with status 1, whatever main returned. Also opens /dev/null at standard descriptors
 * that are closed, so that no other file gets their numbers. Ignores SIGXFSZ, so that a write to a
 * file that may not grow (ulimit -f) fails with an error. Every program calls this once, first in
 * main. program: a string that outlives the call, for example "skippipe verify". */
void output_check_at_exit(const char *program);

/* Writes what is buffered. Returns 0, or the negative errno of the first write that failed since
 * the program began; err then holds the cause, and the program does not print the cause again when
 * it ends. err may be NULL. */
int output_flush(struct error *err);

#endif
