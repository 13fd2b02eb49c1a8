/* recut_files.c - the source of the controller's thread that cuts the model into other stages,
 * built to run without a thread. */
#include "tests/sim/file_threads.h"

#include "controller/joining/recut_files.c"
