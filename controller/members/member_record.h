/* member_record.h - writes the nodes' states, the times of their devices and the figures of their
 * GPUs to the record. */
#ifndef CONTROLLER_MEMBERS_MEMBER_RECORD_H
#define CONTROLLER_MEMBERS_MEMBER_RECORD_H

struct member;
struct members;
struct run;

/* Records the node's new state. */
void record_node(struct run *run, const struct member *m);
/* Records the figures of all GPUs, if they were last recorded some time ago. */
void record_gpus(struct members *members);
/* Records the times of the node's device in the newest committed iteration, for replays. */
void record_device(struct run *run, const struct member *m);
/* Writes the event `device`: the times of all devices that were reported for the newest committed
 * iteration. Called before the next commit and at the end of the run, so that the reports have
 * had time to arrive. */
void record_devices_event(const struct members *members);

#endif
