/* recover.h - restores a stage that has lost its last replica. */
#ifndef CONTROLLER_ITERATION_RECOVER_H
#define CONTROLLER_ITERATION_RECOVER_H

#include <stdint.h>

struct iteration;
struct member;
struct run;
struct backups;

/* Stalls the run because a stage has lost `gone`, its last replica. The node `gone` has died, or
 * drains and gives the stage up. The run continues when another node has the stage. It also
 * continues when `gone` returns with the weights, because its process was only suspended
 * (iteration_readmit). */
void recover_begin(struct backups *backups, const struct member *gone);
/* Continues the recovery; called in each turn while the run is stalled */
void recover_turn(struct iteration *it);
/* Returns how long the controller waits for a silent node whose stage is lost. Public for
 * tests. */
int64_t recover_patience_us(const struct run *run);

#endif
