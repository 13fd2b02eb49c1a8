/* members.h - the nodes of the run: how agents join, report and leave. */
#ifndef CONTROLLER_MEMBERS_MEMBERS_H
#define CONTROLLER_MEMBERS_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/members/admission.h"
#include "controller/members/failure_detector.h"
#include "controller/members/member.h"
#include "controller/network/failed_links.h"
#include "controller/network/link_table.h"
#include "controller/run/rate_limit.h"
#include "controller/run/run.h"
#include "controller/trust/exclude.h"
#include "wire/post.h"

struct member;
struct msg_heartbeat;
struct msg_hello;
struct msg_links;
struct msg_ready;
struct msg_trouble;

struct planning;
struct weights;
struct measuring; /* measuring.c */

struct membership {
	int64_t next_look_us, next_ping_us;
	struct rate_limit refusals; /* journal lines about refused agents */
	/* The journal's lines about the agents that have joined before the run begins */
	int64_t joined_next_us; /* when the next line may be written */
	int64_t joined_noted;   /* 1 + the number in the last line; 0: none was written */
};

struct members {
	struct run *run;
	struct member *list;  /* (n) indexed by node */
	uint32_t n;           /* number of nodes in the cluster */
	uint64_t assignments; /* number of the newest MSG_ASSIGN */
	uint64_t arrivals;    /* number of HELLOs received so far */
	int64_t moved_us;     /* the wait for nodes that load a copy counts from here */
	enum gather_step gathering;
	struct link_table *links;    /* measured links; NULL: the network is emulated */
	struct link_table *emulated; /* links of the emulated network; NULL: none, or unknown */
	/* State of the link measurement; NULL: the network is emulated */
	struct measuring *measuring;
	struct membership membership;
	struct failure_detector detector;
	struct admission admission;
	struct failed_links failed_links;
	struct bad_numbers bad_numbers;
};

/* Removes the previous process if another one says hello for a node that takes part. Call before
 * members_hello. */
void members_replaced(struct members *members, post_peer_id peer, const struct msg_hello *m);
void members_hello(struct weights *weights, post_peer_id peer, const struct msg_hello *m);
/* Refuses an agent with a reason. final: the same process started again would be refused again. */
void members_refuse(struct run *run, post_peer_id peer, const char *reason, bool final);
/* Answers a process whose messages are of another version. It cannot read the answer either, but
 * sees the answer's version. */
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
bool members_due(const struct members *members); /* returns true fifty times a second */
/* Measures how long each node has been silent, and removes silent nodes */
void members_hear_silence(struct members *members);
void members_check_joiners(struct weights *weights); /* restarts joiners that hang */
/* Sends each node the controller's clock now and then */
void members_ping(struct members *members);

#endif
