#define EXACT(name) exact_##name##_v4
#define EXACT_LANES 16

#include "model/cpu/exact_body.h"
#include "model/cpu/exact_leaves.h"
