/* member.h - what is known of a node at the moment, as questions, and what is sent to it. */
#ifndef CONTROLLER_MEMBERS_MEMBER_H
#define CONTROLLER_MEMBERS_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/members/heartbeat_timeout.h"
#include "controller/trust/rate_limit.h"
#include "wire/keys.h"
#include "wire/msg.h"
#include "wire/post.h"

struct controller;
struct observed_link;

/* A summed gradient as one agent has it. */
struct told_sum {
	uint64_t iteration;
	uint32_t attempt;
	uint8_t stage;
	double squares;
	uint32_t n;
	uint64_t *slices; /* (n) their hashes; malloc */
};

/* Bytes that a node has received, as it reports (stall_detector.c). */
struct flow {
	uint64_t bytes;
	int64_t since_us; /* when they were so many */
	int64_t much_us;  /* when it last was much in a short time; 0 never */
};

struct member {
	uint16_t id;
	enum node_state state;
	char why[96];
	int64_t since_us;

	post_peer_id peer; /* 0: never seen, or gone */
	struct keys_public key;
	struct msg_hello hello;
	uint64_t assignment; /* the last MSG_ASSIGN sent; 0 none */
	int64_t assigned_us;
	uint16_t source;     /* of the state it was told to fetch */
	int keeps;           /* stage of the copy it keeps or fetches (copies.c); -1 none */
	uint64_t keeping;    /* the MSG_KEEP that says so */
	bool kept;           /* the copy is whole */
	uint64_t kept_holds; /* committed iterations it holds */
	uint64_t kept_hash;  /* of those; 0 not told */
	bool copies;         /* gets this reduction's sum for it */
	uint64_t copy_told;  /* the last commit that it was told of for it */
	bool copy_reduced;   /* has got it */
	bool behind;         /* gets no sums: let go with the next commit, or when another has a copy */
	struct told_sum copy_sum;
	int64_t refused_copy_us; /* it could not; 0 never */
	uint32_t n_refused;      /* times, since it last was at work */
	int home;                /* stage of the first plan; -1 none (rebalance.c) */
	bool homing;             /* it keeps that copy to change places */
	bool moving;             /* told between iterations to load its copy: the next waits a moment */
	bool restoring;          /* it puts its stage back (restore.c) */
	uint64_t failed_restore; /* the checkpoint that it could not read; 0 none */
	int64_t unready_us;      /* when it said so, or came: its next beat tells what it holds */
	bool welcomed;
	uint64_t arrival;      /* the number of its hello */
	uint64_t told_arrival; /* it knows of arrivals up to this one */
	bool disowned; /* of its key: the others are to forget it */
	bool shunned;  /* excluded (exclude.c): the others are to forget its key while that lasts */
	bool ready;            /* answered it */
	uint64_t sequence, ready_sequence; /* of its message at hand, and of that answer: some overtake others */
	bool awaited;          /* after a takeover: it was there when the last commit was made */
	uint64_t holds;        /* committed iterations its weights hold */
	uint8_t held_stage;    /* of which stage; MSG_NO_STAGE: none. Its beats say when it has loaded them */
	uint64_t hash;
	bool hash_agrees;
	bool differs;         /* it holds other weights than its stage, until it has fetched those */
	uint64_t differed_in; /* the last iteration in which it was found so; 0 none */
	uint64_t commit_told; /* the last commit that it was told of */
	uint64_t corpus_hash; /* of what it reads, in stage 0 */
	uint64_t saving;      /* the commit of which it was told to save its stage; 0 it has answered */
	uint8_t saving_stage;
	double measured_forward_s, measured_backward_s, measured_loss_s;
	double alone_forward_s, alone_backward_s, alone_loss_s; /* while no other agent of its machine computed; 0
								 * not known */
	uint32_t times_paced; /* the first of a machine's agents: how often its pace was judged */
	double pace; /* drift.c: of these, what tasks take now; without emulation */

	bool replica; /* takes part in reductions and commits */
	bool marked;  /* the operator wants it out */
	bool doomed; /* a death or a sleep was injected, and is not noticed yet */
	bool reduced;
	uint32_t slice; /* of the sum, that it adds up */
	bool in_sum;    /* what it counted is in the sum of this stage, even if it has died since */
	uint8_t sum_stage;
	struct told_sum sum;
	uint64_t unheard; /* an iteration of which it reported while it passed for dead */
	uint64_t plan_epoch; /* the newest plan it was sent */

	int64_t heard_us;    /* its newest word */
	uint32_t lingering;  /* connections of when it was taken out in silence, that may end yet */
	int64_t lived_us;    /* or anything else of it */
	struct msg_stuck stuck[MSG_STUCK]; /* links that it tells nothing moves on */
	uint32_t n_stuck;
	bool cut;            /* dead for that reason: comes back when its links do (link_failures.c) */
	int64_t cut_seen_us; /* a link of it was stuck */
	struct flow received;
	uint64_t silent_restore_in; /* the last iteration in which it did not answer when it was to restore a stage; 0 none */
	int64_t late_us; /* the latest lately that it said a word, by its own clock: heartbeat_timeout.h */
	int64_t gap_us;  /* the longest lately until one came */
	struct timeout_rounds rounds;
	int64_t allowed_us;  /* it may be quiet for so long, as last looked at (failure_detector.c), */
	int64_t patience_us; /* and its words be late, the way apart */
	uint16_t machine;    /* the least member on the same one */
	bool going;          /* taken out with others at this moment: nothing goes to it */
	struct msg_heartbeat beat;
	int64_t clock_offset_us; /* its clock + this = ours */
	int64_t round_trip_us;   /* of the sample the offset comes from: the least lately */
	int64_t offset_at_us;
	uint8_t slots;
	struct observed_link *links; /* from here to others */
	uint32_t n_links;
	size_t room_links;
	double links_ratio; /* drift.c: all links from here, of what was planned */
	uint32_t link_strikes;
	/* drift.c: this iteration's tasks */
	int64_t task_started_us;
	double way_ratio; /* of its links, as told last, over what was planned; 0: not told */
	double task_took_s, task_planned_s;
	uint32_t n_tasks, strikes;
	struct rate_limit strays, ignored; /* admission.c: words that nobody asked for; lines that it is not listened to */
	struct rate_limit troubles, rows, corrections; /* of the journal, told by it; of the store; of what
							    * is believed of its links */
	bool changed;    /* consoles have not been told */
	int64_t told_us; /* numbers go out twice a second; a new state at once (0) */
};

/* Whether an agent's clock can say so: then sums and differences with ours are numbers, too. */
static inline bool is_clock(int64_t us)
{
	return us >= 0 && us <= INT64_MAX / 8;
}
struct member *member_of_peer(struct controller *c, post_peer_id peer);
bool member_alive(const struct member *m);         /* answers, whatever its weights */
bool member_has_key(const struct member *m);       /* somebody was that node, and may come back */
/* Whether m has the weights of the last commit, and takes part from the next iteration or sum on. */
bool member_joins(const struct controller *c, const struct member *m);
/* Whether m's weights are the stage's, of the last commit: by what it was told, and by its last beat. */
bool member_holds(const struct controller *c, const struct member *m, int stage);
uint32_t members_live(const struct controller *c); /* in state NODE_LIVE */
uint32_t stage_replicas(const struct controller *c, int stage, const struct member *without);
int member_send(struct controller *c, struct member *m, const struct msg *message);
int member_stage(const struct controller *c, const struct member *m); /* -1 none */
bool replicas_everywhere(const struct controller *c);
void send_replicas(struct controller *c, const struct msg *m);
bool members_share_machine(const struct member *a, const struct member *b);

#endif
