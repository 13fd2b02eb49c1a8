/* offsite.c - the source of the controller's thread that compares the files of a checkpoint with
 * the record, built to run without a thread. */
#include "tests/sim/file_threads.h"

#include "controller/weights/offsite.c"
