/* members.h - who is there. */
#ifndef CONTROLLER_MEMBERS_MEMBERS_H
#define CONTROLLER_MEMBERS_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/trust/rate_limit.h"
#include "wire/post.h"

struct controller;
struct member;
struct msg_heartbeat;
struct msg_hello;
struct msg_links;
struct msg_ready;
struct msg_trouble;

struct membership {
	int64_t next_look_us, next_ping_us;
	struct rate_limit refusals; /* lines of agents that are refused */
};

/* Before members_hello: where another process says hello for a node that takes part, the one before is gone. */
void members_replaced(struct controller *c, post_peer_id peer, const struct msg_hello *m);
void members_hello(struct controller *c, post_peer_id peer, const struct msg_hello *m);
void members_ready(struct controller *c, struct member *m, const struct msg_ready *r);
void members_heartbeat(struct controller *c, struct member *m, const struct msg_heartbeat *h);
void members_trouble(struct controller *c, struct member *m, const struct msg_trouble *t);
void members_links(struct controller *c, struct member *m, const struct msg_links *l);
/* Tells everyone gathered what the run is, once the first plan says how fast time goes. */
void members_welcome(struct controller *c);
bool members_due(const struct controller *c); /* fifty times a second: to look at everybody */
void members_hear_silence(struct controller *c);  /* then: who is not heard any more goes, */
void members_check_joiners(struct controller *c); /* joiners that hang start over, */
void members_ping(struct controller *c);          /* and now and then all are sent a clock */

#endif
