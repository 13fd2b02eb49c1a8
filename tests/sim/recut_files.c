/* The controller's thread that cuts the model into other stages. */
#include "tests/sim/file_threads.h"

#include "controller/joining/recut_files.c"
