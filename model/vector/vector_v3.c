/* The operations of vector.h for AVX2. */
#include "model/vector/vector_sets.h"

#define EXACT(name) exact_##name##_v3
#define VECTOR_SET vector_ops_v3
#define VECTOR_SET_NAME "v3"

#include "model/vector/vector_body.h"
