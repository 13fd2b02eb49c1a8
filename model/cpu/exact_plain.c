#define EXACT(name) exact_##name##_plain

#include "model/cpu/exact_body.h"
