#define EXACT(name) exact_##name##_v4

#include "model/cpu/exact_body.h"
