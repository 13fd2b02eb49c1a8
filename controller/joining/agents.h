/* agents.h - handles the messages with which agents join, report and leave. */
#ifndef CONTROLLER_JOINING_AGENTS_H
#define CONTROLLER_JOINING_AGENTS_H

#include <stdbool.h>

#include "wire/post.h"

struct iteration;
struct member;
struct members;
struct msg_heartbeat;
struct msg_hello;
struct msg_links;
struct msg_log;
struct msg_ready;
struct msg_trouble;
struct planning;
struct run;
struct backups;

/* Removes the previous process of a node that takes part, if another process has sent HELLO for
 * that node. Call before members_hello. */
void members_replaced(struct members *members, post_peer_id peer, const struct msg_hello *m);
void members_hello(struct backups *backups, post_peer_id peer, const struct msg_hello *m);
/* Refuses an agent with a reason. final: the controller would refuse the same process again, so the
 * agent should not try again. */
void members_refuse(struct run *run, post_peer_id peer, const char *reason, bool final);
/* Refuses a process whose messages have another version. The process cannot read this answer
 * either, but sees the answer's version. */
void members_refuse_version(struct members *members, post_peer_id peer);
void members_ready(struct members *members, struct member *m, const struct msg_ready *r);
void members_heartbeat(struct iteration *it, struct member *m, const struct msg_heartbeat *h);
/* Writes a line of an agent's log to the journal. */
void members_log(struct run *run, struct member *m, const struct msg_log *l);
void members_trouble(struct members *members, struct member *m, const struct msg_trouble *t);
void members_links(struct planning *planning, struct member *m, const struct msg_links *l);
/* Sends every gathered agent the description of the run, once the first plan has set the time
 * scale. */
void members_welcome(struct members *members);
/* Returns true fifty times a second, when it is time to check the members */
bool members_due(const struct members *members);
/* Measures how long each node has been silent, and removes nodes that have been silent for too
 * long */
void members_hear_silence(struct members *members);
void members_check_joiners(struct backups *backups); /* Restarts joiners whose fetch hangs */
/* Sends each node the controller's clock from time to time */
void members_ping(struct members *members);

#endif
