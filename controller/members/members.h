/* members.h - the state of all nodes of the run. joining/agents.c changes it as agents join, report
 * and leave. */
#ifndef CONTROLLER_MEMBERS_MEMBERS_H
#define CONTROLLER_MEMBERS_MEMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "controller/members/admission.h"
#include "controller/members/failure_detector.h"
#include "controller/members/member.h"
#include "controller/run/rate_limit.h"
#include "controller/run/run.h"
#include "wire/post.h"

struct link_failure; /* network/failed_links.h defines it */
struct link_table;   /* network/link_table.h defines it */
struct measuring;    /* network/measuring.c defines it */

struct membership {
	int64_t next_look_us, next_ping_us;
	struct rate_limit refusals; /* limits journal lines about refused agents */
	/* Before the run begins: earliest time at which the journal may report again how many
	 * agents have joined */
	int64_t joined_next_us;
	/* 1 + the number of joined agents that the journal last reported; 0: none was reported */
	int64_t joined_noted;
};

/* The links that are cut now or were cut earlier. */
struct failed_links {
	struct link_failure *of; /* array of n: every link that was cut at any time */
	uint32_t n;
	size_t room;
	/* Time of the journal's newest report that neither end of a cut link can be spared. */
	int64_t noted_us;
};

/* Response of the controller to impossible numbers in one iteration. */
struct bad_numbers {
	uint64_t iteration;      /* the iteration with impossible numbers; 0: none yet */
	struct member *excluded; /* the node that was excluded for impossible numbers; NULL: none */
	uint32_t n_skipped;      /* how often the iteration's data was skipped */
	/* plan epoch of the last attempt whose data was skipped; 0: none */
	uint64_t skipped_epoch;
};

struct members {
	struct run *run;
	struct member *list;  /* array of n, indexed by node number */
	uint32_t n;           /* number of nodes in the cluster */
	uint64_t assignments; /* number of the newest MSG_ASSIGN */
	uint64_t arrivals;    /* number of changes to nodes' addresses or keys (peers.c) */
	int64_t moved_us;     /* start of the wait for nodes that load a copy */
	enum gather_step gathering;
	struct link_table *links;    /* measured links; NULL: the network is emulated */
	/* The record lacks links or slots of nodes that joined after the first plan */
	bool has_unrecorded_nodes;
	struct link_table *emulated; /* links of the emulated network; NULL: none, or unknown */
	/* State of the link measurement; NULL: the network is emulated */
	struct measuring *measuring;
	struct membership membership;
	struct failure_detector detector;
	struct admission admission;
	struct failed_links failed_links;
	struct bad_numbers bad_numbers;
};

#endif
