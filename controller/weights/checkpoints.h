/* checkpoints.h - every so many commits, and at the end, the stages on their nodes' disks. */
#ifndef CONTROLLER_WEIGHTS_CHECKPOINTS_H
#define CONTROLLER_WEIGHTS_CHECKPOINTS_H

#include <stdbool.h>

struct controller;
struct member;
struct msg_saved;

void checkpoint_when_due(struct controller *c); /* after a commit */
void checkpoint_saved(struct controller *c, struct member *m, const struct msg_saved *r);
/* Before the end: the last commit is written, too. True while the run is to wait for that. */
bool checkpoint_last(struct controller *c);

#endif
