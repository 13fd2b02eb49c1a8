/* recover.h - restores a stage that has lost its last replica. */
#ifndef CONTROLLER_ITERATION_RECOVER_H
#define CONTROLLER_ITERATION_RECOVER_H

#include <stdint.h>

struct iteration;
struct member;
struct run;
struct backups;

/* Stops the run because `gone`, the last replica of its stage, has died, or drains and gives its
 * stage up. The run continues when another node has the stage, or when the process of `gone`
 * returns with the weights because it was only suspended (iteration_readmit). */
void recover_begin(struct backups *backups, const struct member *gone);
/* Continues the recovery; called in each turn while the run is stalled */
void recover_turn(struct iteration *it);
/* Returns how long the controller waits for a silent node when its stage is lost. Public for tests.
 */
int64_t recover_patience_us(const struct run *run);

#endif
