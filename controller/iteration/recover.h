/* recover.h - restores a stage that has lost its last replica. */
#ifndef CONTROLLER_ITERATION_RECOVER_H
#define CONTROLLER_ITERATION_RECOVER_H

#include <stdint.h>

struct iteration;
struct member;
struct run;
struct backups;

/* Stops the run because `gone`, the last replica of its stage, has died, or drains and hands its
 * stage over. The run continues when another node has the stage, or when the process of `gone` was
 * only suspended and returns with the weights (iteration_readmit). */
void recover_begin(struct backups *backups, const struct member *gone);
void recover_turn(struct iteration *it); /* call while stalled */
/* Returns how long the controller waits for a silent node when its stage is lost. Public for tests.
 */
int64_t recover_patience_us(const struct run *run);

#endif
