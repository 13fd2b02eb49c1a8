/* The operations of vector.h for x86-64 without extensions. */
#include "model/vector/vector_sets.h"

#define EXACT(name) exact_##name##_plain
#define VECTOR_SET vector_ops_plain
#define VECTOR_SET_NAME "plain"

#include "model/vector/vector_body.h"
