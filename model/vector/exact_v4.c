/* The operations of exact.h for AVX-512. */
#define EXACT(name) exact_##name##_v4
#define EXACT_LANES 16

#include "model/vector/exact_body.h"
#include "model/vector/codec_body.h"
#include "model/vector/exact_leaves.h"
