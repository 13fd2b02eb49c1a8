#define EXACT(name) exact_##name##_v4

#include "model/vector/exact_body.h"
