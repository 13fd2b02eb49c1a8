#define EXACT(name) exact_##name##_plain
#define EXACT_LANES 4

#include "model/cpu/exact_body.h"
#include "model/cpu/exact_leaves.h"
