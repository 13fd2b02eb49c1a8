/* recover.h - a stage has lost its last replica: who takes it over, and from what. */
#ifndef CONTROLLER_WEIGHTS_RECOVER_H
#define CONTROLLER_WEIGHTS_RECOVER_H

#include <stdint.h>

struct controller;

void recover_turn(struct controller *c); /* while stalled */
/* How long a node that may only sleep is waited for when its stage is lost. */
int64_t recover_patience_us(const struct controller *c);

#endif
