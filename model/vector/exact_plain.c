#define EXACT(name) exact_##name##_plain

#include "model/vector/exact_body.h"
