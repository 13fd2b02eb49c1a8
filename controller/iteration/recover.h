/* recover.h - restores a stage that has lost its last replica. */
#ifndef CONTROLLER_ITERATION_RECOVER_H
#define CONTROLLER_ITERATION_RECOVER_H

#include <stdint.h>

struct iteration;
struct member;
struct run;
struct backups;

/* Stops the run after the death of a stage's last replica, or when it hands its stage over before
 * it leaves. If the node's process was only suspended, the weights return with it
 * (iteration_readmit). Until then nothing can continue. */
void recover_begin(struct backups *backups, const struct member *gone);
void recover_turn(struct iteration *it); /* call while stalled */
/* Returns how long the controller waits for a silent node when its stage is lost. Public for tests.
 */
int64_t recover_patience_us(const struct run *run);

#endif
