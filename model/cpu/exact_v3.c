#define EXACT(name) exact_##name##_v3

#include "model/cpu/exact_body.h"
