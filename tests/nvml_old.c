/* nvml_old.c - the library of an old driver: memory and throttling by their first functions, and no
 * power. */
#define OLD
#include "tests/nvml.c"
