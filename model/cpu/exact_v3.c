#define EXACT(name) exact_##name##_v3
#define EXACT_LANES 8

#include "model/cpu/exact_body.h"
#include "model/cpu/exact_leaves.h"
