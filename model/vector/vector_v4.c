/* The operations of vector.h for AVX-512. */
#include "model/vector/vector_sets.h"

#define EXACT(name) exact_##name##_v4
#define VECTOR_SET vector_ops_v4
#define VECTOR_SET_NAME "v4"

#include "model/vector/vector_body.h"
