/* nvml_old.c - the library of an old driver. It has only the first versions of the functions for
 * memory and throttling, and no function for power. */
#define OLD
#include "tests/nvml.c"
