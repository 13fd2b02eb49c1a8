/* member.h - the state of one node, questions about it, and sending to it. */
#ifndef CONTROLLER_MEMBERS_MEMBER_H
#define CONTROLLER_MEMBERS_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/members/heartbeat_timeout.h"
#include "controller/members/lifecycle.h"
#include "controller/trust/rate_limit.h"
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
	uint64_t *slices; /* (n) hashes of the slices; malloc */
};

/* Bytes that a node has received, as it reports (stall_detector.c). */
struct flow {
	uint64_t bytes;
	int64_t since_us; /* when this count was reached */
	int64_t much_us;  /* when much last arrived in a short time; 0: never */
};

/* Addresses and keys that this node and the others were sent of one another (peers.c). */
struct member_peers {
	uint64_t arrival;       /* number of its HELLO */
	uint64_t arrivals_sent; /* it was sent all arrivals up to this number */
	bool key_revoked;       /* the others have to forget its key for good */
	/* The others have to forget its key while the exclusion lasts (exclude.c) */
	bool is_excluded;
};

/* The newest MSG_ASSIGN (assign.c) and its answer. */
struct member_assignment {
	uint64_t number; /* 0: none was sent */
	int64_t at_us;
	uint16_t source;  /* the node from which it fetches its state */
	bool is_welcomed; /* it was sent the description of the run (MSG_WELCOME) */
	/* Sequence numbers of that answer and of its current message, because messages can overtake
	 * each other */
	uint64_t ready_sequence, message_sequence;
	uint64_t plan_epoch; /* the newest plan that it was sent */
};

/* States of a standby copy, changed by weights/copies.c only, but for the sum of a member that is
 * lost (lifecycle.c):
 *
 *     FETCHING -- is complete --> WHOLE <-- is needed again / not needed --> DROPPED
 *
 * A copy that differs or missed a commit is fetched again. DROPPED ends with the next commit, or
 * once another node has a copy: until then no other node may have the stage. */
enum copy_state { COPY_FETCHING, COPY_WHOLE, COPY_DROPPED };

/* The sum under way, as far as the copy needs it. */
enum copy_sum {
	COPY_NO_SUM,       /* it is sent none */
	COPY_SUM_ORDERED,  /* it is sent this iteration's sum */
	COPY_SUM_REPORTED, /* it has reported that sum */
};

/* The standby copy of another stage that it keeps or fetches (copies.c, standbys.c). */
struct member_copy {
	int stage;           /* -1: none */
	uint64_t order;      /* number of the MSG_KEEP */
	uint64_t iterations; /* committed iterations that the copy holds */
	uint64_t hash;       /* of those weights; 0: not reported */
	enum copy_state state;
	enum copy_sum sum_state;
	uint64_t last_commit_sent; /* newest commit announced to this standby */
	struct reported_sum sum;
	int64_t refused_us; /* when it last failed to keep a copy; 0: never */
	uint32_t n_refused; /* times, since it last was a replica */
};

/* Changes of stage (rebalance.c, stage_moves.c). */
struct member_move {
	int home;          /* stage in the first plan; -1: none */
	bool is_returning; /* it keeps a copy of its home stage in order to return there */
	/* Ordered between iterations to load its copy; the next iteration waits a moment */
	bool is_loading;
};

/* The weights of its stage, as it reported them. */
struct member_weights {
	uint64_t iterations; /* committed iterations that they hold */
	/* The stage that they belong to; MSG_NO_STAGE: none. Heartbeats report when they are loaded
	 */
	uint8_t stage;
	uint64_t hash;
	bool hash_agrees;
	/* they differed from those of its stage, and the stage's have not been fetched yet */
	bool differ;
	uint64_t differed_in;      /* the last iteration in which they differed; 0: none */
	uint64_t last_commit_sent; /* newest commit announced to this node */
};

/* Files of its stage: saving (checkpoints.c) and restoring (restore.c). */
struct member_checkpoint {
	uint64_t saving; /* the commit whose weights it was ordered to save; 0: it has answered */
	uint8_t saving_stage;
	uint64_t failed; /* the checkpoint that the node could not read; 0: none */
	/* When the node reported that failure, or joined: its next heartbeat reports what it
	 * holds */
	int64_t unready_us;
	/* The last iteration in which it did not answer an order to restore; 0: none */
	uint64_t silent_in;
};

/* Speed of its machine in real seconds, measured before the run and corrected during it (drift.c).
 */
struct member_compute {
	uint16_t machine;     /* the lowest node on the same machine */
	uint8_t slots;        /* microbatches that fit into its memory at once */
	uint64_t corpus_hash; /* of the corpus that it reads, if in stage 0 */
	double forward_s, backward_s, loss_s;
	/* While no other agent of the machine computes; 0: unknown */
	double alone_forward_s, alone_backward_s, alone_loss_s;
	double pace;          /* current time of tasks over these; used without emulation */
	uint32_t times_paced; /* corrections so far; counted at the machine's lowest node */
};

/* The node's part in the sum of its stage's gradients. */
struct member_sum {
	bool is_done;
	bool counts; /* its contribution is in the sum of `stage`, even if it has died since */
	uint8_t stage;
	uint32_t slice; /* the slice that it adds up */
	struct reported_sum reported;
};

/* When it was heard, and how long it may be silent (failure_detector.c, heartbeat_timeout.h). */
struct member_heard {
	int64_t message_us;  /* its newest message */
	int64_t any_us;      /* its newest sign of life of any kind */
	int64_t late_us;     /* its largest recent lateness, by its own clock */
	int64_t gap_us;      /* the longest recent gap between two messages */
	int64_t allowed_us;  /* allowed silence, when last computed */
	int64_t patience_us; /* allowed lateness of its heartbeats, without transfer time */
	struct timeout_rounds rounds;
	/* Connections opened before it was removed for silence, which may still end */
	uint32_t lingering_connections;
	/* The iteration that it reported on while it counted as dead */
	uint64_t reported_while_dead_in;
	struct flow received;
};

/* Links on which it reports that nothing moves (link_failures.c). */
struct member_stuck {
	struct msg_stuck links[MSG_STUCK]; /* (n) */
	uint32_t n;
	bool is_cut_off; /* it was removed for that reason, and returns once its links work */
	int64_t seen_us; /* when such a link was last reported */
};

struct member_clock {
	int64_t offset_us;     /* its clock + this = ours */
	int64_t round_trip_us; /* of the sample that the offset comes from: the shortest lately */
	int64_t sampled_us;
};

/* Links from this node to others, as observed (observed_links.c), and their drift from the plan
 * (drift.c). */
struct member_links {
	struct observed_link *list; /* (n) */
	uint32_t n;
	size_t room;
	double ratio;       /* time over all links from here, relative to the plan */
	double delay_ratio; /* last reported delay, relative to the plan; 0: not reported */
	uint32_t strikes;
};

/* Times of this iteration's tasks in real seconds (drift.c). */
struct member_tasks {
	int64_t started_us;
	double took_s, planned_s;
	uint32_t n, strikes;
};

struct member_quota {
	/* Unsolicited messages; log lines about ignoring it (admission.c) */
	struct rate_limit strays, ignored;
	/* Journal lines about the node; rows of the store; accepted link reports */
	struct rate_limit troubles, rows, corrections;
};

/* State of this node as consoles show it (consoles.c). */
struct member_shown {
	bool is_stale;   /* consoles lack its newest state */
	int64_t sent_us; /* numbers are sent twice a second, a new state at once (0) */
};

struct member {
	uint16_t id;
	enum member_state state; /* changed by member_apply only (lifecycle.c) */
	char why[96];
	int64_t since_us;
	post_peer_id peer; /* 0: never seen, or has left */
	struct keys_public key;
	struct msg_hello hello;
	struct msg_heartbeat beat; /* the newest one */

	bool is_marked;     /* removed by the operator, or because of data that it sent */
	bool fault_pending; /* an injected death or sleep has not been detected yet */
	/* this controller resumed the run, and the node took part in the last commit */
	bool is_awaited;

	struct member_peers peers;
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
	struct member_quota quota;
	struct member_shown shown;
};

/* Returns true if an agent's clock can have this value. Sums and differences with this clock then
 * cannot overflow. */
static inline bool is_clock(int64_t us)
{
	return us >= 0 && us <= INT64_MAX / 8;
}
struct member *member_of_peer(struct members *members, post_peer_id peer);
bool member_alive(const struct member *m); /* connected, whatever its weights */
/* Returns true if m takes part in sums and commits. */
bool member_is_replica(const struct member *m);
/* Returns true if m is a replica and connected. */
bool member_takes_part(const struct member *m);
/* Returns true if m takes part in the iteration under way, which it began with the others. */
bool member_computes(const struct member *m);
bool member_is_ready(const struct member *m);         /* has the stage that it was given */
bool member_is_restoring(const struct member *m);     /* or has restored it, and waits for others */
enum node_state member_shown(const struct member *m); /* as consoles and the record show it */
bool member_has_key(const struct member *m); /* a process has had this node, and may return */
/* Returns true if m has the weights of the last commit and takes part from the next iteration or
 * sum on. */
bool member_joins(const struct run *run, const struct member *m);
/* Returns true if m holds the stage's weights of the last commit, by its assignment and by its
 * newest heartbeat. */
bool member_holds(const struct run *run, const struct member *m, int stage);
uint32_t members_live(const struct members *members); /* number that computes */
uint32_t stage_replicas(const struct members *members, int stage, const struct member *without);
int member_send(struct run *run, struct member *m, const struct msg *message);
int member_stage(const struct run *run, const struct member *m); /* -1: none */
bool replicas_everywhere(const struct members *members);
void send_replicas(struct members *members, const struct msg *m);
bool members_share_machine(const struct member *a, const struct member *b);

#endif
