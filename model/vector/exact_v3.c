/* The operations of exact.h for AVX2. */
#define EXACT(name) exact_##name##_v3
#define EXACT_LANES 8

#include "model/vector/exact_body.h"
#include "model/vector/codec_body.h"
#include "model/vector/exact_leaves.h"
