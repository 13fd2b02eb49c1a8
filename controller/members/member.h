/* member.h - the state of one node, questions about it, and sending to it. */
#ifndef CONTROLLER_MEMBERS_MEMBER_H
#define CONTROLLER_MEMBERS_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/members/gpu_reports.h"
#include "controller/members/heartbeat_timeout.h"
#include "controller/members/lifecycle.h"
#include "controller/members/shared_machines.h"
#include "controller/run/rate_limit.h"
#include "wire/keys.h"
#include "wire/msg.h"
#include "wire/post.h"

struct members;
struct run;
struct observed_link;

/* A summed gradient, as one agent reported it. */
struct reported_sum {
	uint64_t iteration;
	uint32_t attempt;
	uint8_t stage;
	double squares;
	uint32_t n;
	uint64_t *slices; /* array of n, malloc: the hash of each slice */
};

/* Bytes that a node has received in total, as it reports (stall_detector.c). */
struct received_bytes {
	uint64_t bytes;
	int64_t since_us; /* time at which the node's total reached `bytes` */
	/* Time at which the node last received MUCH_BYTES (stall_detector.c) in a short time; 0:
	 * never. */
	int64_t last_burst_us;
};

/* The exchange of addresses and keys between this node and the other nodes (peers.c). */
struct member_peers {
	/* Number of the newest change to this node's address or key. The changes of all nodes are
	 * counted together. A HELLO and the withdrawal of a key each count as a change. */
	uint64_t arrival;
	/* Number of the newest change, of any node, that this node has received */
	uint64_t arrivals_sent;
	bool key_revoked; /* all other nodes have to forget this node's key permanently */
	/* The other nodes have to forget this node's key while it is excluded (exclude.c). */
	bool is_excluded;
};

/* The newest MSG_ASSIGN to the node (assign.c), and the node's answer to it. */
struct member_assignment {
	/* The choice of stages has marked the node, because the run is faster without the
	 * node. */
	bool is_left_out;
	uint64_t number; /* number of the newest MSG_ASSIGN to this node; 0: none was sent */
	int64_t at_us;
	uint16_t source;  /* the node from which this node fetches its state */
	bool is_welcomed; /* the node has received the description of the run (MSG_WELCOME) */
	/* Sequence numbers of the node's answer (MSG_READY) and of the message that is being
	 * handled. Messages can overtake each other. */
	uint64_t ready_sequence, message_sequence;
	uint64_t plan_epoch; /* epoch of the newest plan that the node has received */
	/* Number of the order to connect (preparation.c) that the node has not answered yet; 0:
	 * none */
	uint64_t connect_id;
};

/* States of a standby copy. Only weights/copies.c changes a copy's state.
 *
 *     FETCHING -- is complete --> WHOLE <-- is needed again / not needed --> DROPPED
 *
 * If a copy differs from its stage or missed a commit, the node fetches it again. A dropped copy is
 * kept until the next commit, or until another node has a copy. Otherwise the last copy of a
 * stage could be lost. */
enum copy_state { COPY_FETCHING, COPY_WHOLE, COPY_DROPPED };

/* Purposes of a standby copy. Every copy also serves as a backup of its stage. */
enum copy_purpose {
	COPY_FOR_SAFETY,
	COPY_FOR_STACKING, /* the node's own stage will start from this copy (stacking.c) */
	COPY_FOR_MOVE      /* the node will have this stage in the next phase (phase_moves.c) */
};

/* The standby copy's part in the current sum of its stage. */
enum copy_sum {
	COPY_NO_SUM,       /* the copy receives no sum */
	COPY_SUM_ORDERED,  /* the copy receives this iteration's sum */
	COPY_SUM_REPORTED, /* the copy has reported this iteration's sum */
};

/* Use of a node in plans (spares.c).
 *
 *     is lost, joins during the run, or has no stage when the run begins -> UNDECIDED
 *     UNDECIDED -- becomes a replica --> ALWAYS or SPARE
 *     SPARE -- takes a lost node's place, shortens the iteration, changes its stage --> ALWAYS */
enum member_use { USE_ALWAYS, USE_UNDECIDED, USE_SPARE };

/* The standby copy that the node keeps or fetches (copies.c, standbys.c). */
struct member_copy {
	int stage;           /* -1: none */
	uint64_t order;      /* number of the MSG_KEEP with which this copy was ordered */
	uint64_t iterations; /* number of committed iterations that the copy contains */
	uint64_t hash;       /* hash of the copy's weights; 0: the node has not reported it */
	enum copy_state state;
	enum copy_sum sum_state;
	/* newest commit that the controller announced to this node for its copy */
	uint64_t last_commit_sent;
	struct reported_sum sum;
	enum copy_purpose purpose;
	/* time of the node's newest report that it cannot keep a copy; 0: never */
	int64_t refused_us;
	/* Number of reports that the node cannot keep a copy. The count restarts at 0 when a
	 * process joins as the node, and when the node becomes a replica. */
	uint32_t n_refused;
};

/* State for changes of stage (rebalance.c, stage_moves.c), for leaving (drain.c), and for use after
 * failures (failures.c, spares.c). */
struct member_move {
	uint32_t failures; /* number of recent losses of this node's key */
	int64_t failed_s;  /* time of the last loss of this node's key, seconds since 1970 */
	/* Plans use the node although it failed often, because the run is much faster with it */
	bool is_used;
	uint64_t replaced_in; /* epoch of the last plan in which a spare replaced this node */
	enum member_use use;
	enum member_drain drain;
	int home;          /* the node's stage in the run's first plan; -1: none */
	/* the node keeps a copy of its home stage in order to return to that stage */
	bool is_returning;
	/* Between two iterations, the node was ordered to load its copy. The next iteration waits
	 * a moment for the loading. */
	bool is_loading;
};

/* The weights of the node's stage, as the node reported them. */
struct member_weights {
	uint64_t iterations; /* number of committed iterations that these weights contain */
	/* The stage of these weights; MSG_NO_STAGE: none. The node's heartbeats report the stage
	 * once it is loaded. */
	uint8_t stage;
	uint64_t hash;
	bool hash_agrees;
	/* The node's weights differed from the weights of its stage, and the node has not fetched
	 * the correct weights yet. */
	bool differ;
	/* The last iteration after which the weights differed from those of the stage; 0: none */
	uint64_t differed_in;
	uint64_t last_commit_sent; /* newest commit that was announced to this node */
};

/* Files of the node's stage: saving (checkpoints.c) and restoring (restore.c). */
struct member_checkpoint {
	/* The commit whose weights the node was ordered to save; 0: no order is unanswered */
	uint64_t saving;
	uint8_t saving_stage;
	uint64_t failed; /* the checkpoint that the node could not read; 0: none */
	/* Time at which the node reported that it could not read the checkpoint, or at which it
	 * joined. Until its next heartbeat, the controller does not know which weights the node
	 * holds. */
	int64_t unready_us;
	/* The last iteration in which the node did not answer an order to restore; 0: none */
	uint64_t silent_in;
};

/* Speed of the node's machine: task times in real seconds, measured before the run and corrected
 * during it (drift.c). */
struct member_compute {
	uint16_t machine;     /* number of the machine: the lowest node number on it */
	uint8_t slots;        /* number of microbatches that fit into the node's memory at once */
	uint64_t corpus_hash; /* hash of the corpus that the node reads, if it is in stage 0 */
	double forward_s, backward_s, loss_s;
	/* Task times in seconds, for a stage with one unit of work (cluster.work), while no other
	 * agent of the machine computes; 0: unknown */
	double alone_forward_s, alone_backward_s, alone_loss_s;
	/* Current task times as a multiple of the times measured alone; used without emulation. */
	double pace;
	/* Number of corrections of `pace` so far. Only the machine's node with the lowest number
	 * counts them. */
	uint32_t times_paced;
	/* How long the node's device was in each state in the newest committed iteration; zeros:
	 * not reported */
	struct device_time spent;
	uint64_t spent_in; /* number of the iteration in which `spent` was measured */
	/* Time of the commit before the newest commit. The node still has to report its device's
	 * times since then. 0: the node has reported these times. */
	int64_t spent_from_us;
};

/* The node's part in the sum of its stage's gradients. */
struct member_sum {
	bool is_done;
	/* The sum of `stage` contains the node's gradients, even if the node has died since */
	bool counts;
	uint8_t stage;
	uint32_t slice; /* the slice of the gradient that this node adds up */
	struct reported_sum reported;
};

/* Times of the node's last messages, and how long it may be silent (failure_detector.c,
 * heartbeat_timeout.h). */
struct member_heard {
	int64_t message_us; /* time at which the node sent its newest message */
	/* time at which the controller last received any message or acknowledgement from the
	 * node */
	int64_t any_us;
	/* Largest recent lateness of the node's heartbeats, by the node's own clock */
	int64_t late_us;
	int64_t gap_us;      /* the longest recent gap between two messages of the node */
	int64_t allowed_us;  /* newest limit of the node's silence */
	/* how late the node's heartbeats may be, in addition to the transfer time */
	int64_t patience_us;
	struct timeout_rounds rounds;
	/* Number of connections that the node had when it was removed for silence, and that have
	 * not ended yet */
	uint32_t lingering_connections;
	/* The iteration in which the node, although it counted as dead, sent a report. */
	uint64_t reported_while_dead_in;
	struct received_bytes received;
};

/* Links on which the node reports that nothing moves (link_failures.c). */
struct member_stuck {
	struct msg_stuck links[MSG_STUCK]; /* array of n */
	uint32_t n;
	/* The node was removed because its links were cut, and returns once they work */
	bool is_cut_off;
	int64_t seen_us; /* time of this node's newest report of a cut link */
};

struct member_clock {
	int64_t offset_us; /* the node's clock + offset_us = the controller's clock */
	/* Round trip of the sample from which offset_us follows. Of the recent samples, this one
	 * has the shortest round trip. */
	int64_t round_trip_us;
	int64_t sampled_us;
};

/* Links from this node to other nodes as observed (observed_links.c), and how far their times
 * differ from the plan (drift.c). */
struct member_links {
	struct observed_link *list; /* array of n */
	uint32_t n;
	size_t room;
	/* Measured transfer time as a multiple of the planned time, over all links from this
	 * node */
	double ratio;
	/* The delay that the node last reported, as a multiple of the planned delay; 0: not
	 * reported */
	double delay_ratio;
	uint32_t strikes;
	/* Seconds in which the node's host encodes an activation, and decodes one; 0: unknown */
	double encode_s, decode_s;
};

/* Times of this iteration's tasks in real seconds (drift.c). */
struct member_tasks {
	int64_t started_us;
	uint32_t late_us; /* microseconds for which the host has delayed the running task */
	double took_s, planned_s;
	uint32_t n, strikes;
};

/* A second process with the node's key, which wants to be this node (rivals.c). */
struct member_rival {
	post_peer_id peer; /* the connection to the second process; 0: there is none */
	/* Time of the second process's HELLO, and time of the newest ping to the node's first
	 * process */
	int64_t since_us, ping_us;
	struct msg_hello hello;
};

struct member_quota {
	/* Limits on the node's unsolicited messages, and on log lines which report that the
	 * controller ignores the node (admission.c). */
	struct rate_limit strays, ignored;
	/* Limits on journal lines about the node's errors, and on journal lines from the node's
	 * log. */
	struct rate_limit troubles, log_lines;
	/* Limits on the node's rows in the store, and on corrections of links after the node's
	 * reports. */
	struct rate_limit rows, corrections;
	/* Limit on alerts about a second process with the node's key. */
	struct rate_limit rivals;
};

/* State of this node as consoles show it (consoles.c). */
struct member_shown {
	bool is_stale;   /* consoles do not have the node's newest state */
	/* Time at which the node's state was last sent to consoles. The state is sent at most twice
	 * a second. 0: the state has changed and is sent at once */
	int64_t sent_us;
};

struct member {
	uint16_t id;
	enum member_state state; /* only member_apply (lifecycle.c) changes this */
	char why[96];
	int64_t since_us;
	/* Connection to the node's process; 0: no process has connected, or it has left */
	post_peer_id peer;
	struct keys_public key;
	char name[KEYS_NAME_SIZE]; /* name of the admitted key; "": no process has joined */
	struct msg_hello hello;
	struct msg_heartbeat beat; /* the newest heartbeat of the node */

	bool is_marked; /* the node is excluded, by the operator or because it sent bad data */
	/* A death or suspension of the node was injected, and the failure detector has not found it
	 * yet */
	bool fault_pending;
	/* This controller resumed the run, and waits for the node because the node took part in
	 * the last commit. */
	bool is_awaited;

	struct member_peers peers;
	struct member_rival rival;
	struct member_assignment assigned;
	struct member_copy copy;
	struct member_move move;
	struct member_weights weights;
	struct member_checkpoint checkpoint;
	struct member_compute compute;
	struct member_sum sum;
	struct member_heard heard;
	struct member_stuck stuck;
	struct member_clock clock;
	struct member_links links;
	struct member_tasks tasks;
	struct member_gpu gpu;
	struct member_processor processor;
	struct member_quota quota;
	struct member_shown shown;
};

/* Returns true if the value is plausible for an agent's clock. Sums and differences with such a
 * clock cannot overflow. */
static inline bool is_clock(int64_t us)
{
	return us >= 0 && us <= INT64_MAX / 8;
}
struct member *member_of_peer(struct members *members, post_peer_id peer);
/* Returns true if the node is connected, even if it does not have the current weights. */
bool member_alive(const struct member *m);
/* Returns true if m takes part in sums and commits. */
bool member_is_replica(const struct member *m);
/* Returns true if m is a replica and connected. */
bool member_takes_part(const struct member *m);
/* Returns true if m computes in the iteration under way, because m was a replica when it began. */
bool member_computes(const struct member *m);
/* Returns true if the node has the stage that it was assigned */
bool member_is_ready(const struct member *m);
/* Returns true if the node restores a stage, or has restored it and waits for other nodes */
bool member_is_restoring(const struct member *m);
/* Returns the node's state as consoles and the record show it */
enum node_state member_shown(const struct member *m);
/* Returns true if a process has joined as this node, and may return */
bool member_has_key(const struct member *m);
/* Returns true if m has the weights of the last commit and takes part from the next iteration or
 * sum on. */
bool member_joins(const struct run *run, const struct member *m);
/* Returns true if m holds the stage's weights of the last commit, according to both m's assignment
 * and m's newest heartbeat. */
bool member_holds(const struct run *run, const struct member *m, int stage);
/* Returns the number of nodes that compute */
uint32_t members_live(const struct members *members);
uint32_t stage_replicas(const struct members *members, int stage, const struct member *without);
int member_send(struct run *run, struct member *m, const struct msg *message);
/* Asks the node's process for its clock, which the next heartbeat reports. */
void member_ping(struct run *run, const struct member *m);
int member_stage(const struct run *run, const struct member *m); /* returns m's stage; -1: none */
/* Returns the amount of work of m's stage (cluster_work). */
double member_work(const struct run *run, const struct member *m);
/* Returns the number of layers of m's stage; 0: it has no stage. */
uint32_t member_layers(const struct run *run, const struct member *m);
bool replicas_everywhere(const struct members *members);
void send_replicas(struct members *members, const struct msg *m);
bool members_share_machine(const struct member *a, const struct member *b);
/* Returns true if the tasks of both members run on the same processors: on one GPU, on the cores of
 * one machine, or in one container with a quota of processor time. */
bool members_share_processors(const struct member *a, const struct member *b);
/* Returns how many tasks of agents run at once on m's processors at full speed: 1 on a GPU, else
 * the number of cores; 0: unknown. */
uint32_t member_processors(const struct member *m);
/* Returns the bytes of free memory that m can use. Agents with the same device share its memory
 * equally, and agents on one machine share the machine's memory equally. The smaller of m's two
 * shares counts. 0: m did not report its memory. */
double members_memory(const struct members *members, const struct member *m);

#endif
