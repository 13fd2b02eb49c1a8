#define EXACT(name) exact_##name##_v3

#include "model/vector/exact_body.h"
