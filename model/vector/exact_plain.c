/* The operations of exact.h for x86-64 without extensions. */
#define EXACT(name) exact_##name##_plain
#define EXACT_LANES 4

#include "model/vector/exact_body.h"
#include "model/vector/codec_body.h"
#include "model/vector/exact_leaves.h"
