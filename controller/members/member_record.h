/* member_record.h - writes the nodes' states and the figures of their GPUs to the record. */
#ifndef CONTROLLER_MEMBERS_MEMBER_RECORD_H
#define CONTROLLER_MEMBERS_MEMBER_RECORD_H

struct member;
struct members;
struct run;

/* Records the node's new state. */
void record_node(struct run *run, const struct member *m);
/* Records the figures of all GPUs, if they were last recorded some time ago. */
void record_gpus(struct members *members);

#endif
