/* recover.h - restores a stage that has lost its last replica. */
#ifndef CONTROLLER_ITERATION_RECOVER_H
#define CONTROLLER_ITERATION_RECOVER_H

#include <stdint.h>

struct iteration;
struct run;

void recover_turn(struct iteration *it); /* call while stalled */
/* Returns how long the controller waits for a silent node when its stage is lost. Public for tests.
 */
int64_t recover_patience_us(const struct run *run);

#endif
