/* The controller's thread that compares the files of a checkpoint with the record. */
#include "tests/sim/file_threads.h"

#include "controller/weights/offsite.c"
