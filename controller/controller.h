/* controller.h - the controller's state, and what its parts offer one another.
 *
 * One thread runs the loop (loop.c); one worker thread plans (planner.h), and another one ahead, in idle time
 * (ahead.c). A part decides about its own state. What it wants done about the iteration under way it requests
 * (requests.h), and the loop does it. The parts, by folder:
 *
 *     members/    member.c what is known of a node, and what is sent to it;  node_state.c its state, and who is gone;
 *                 peers.c what agents are told of one another;  assign.c who holds which stage;  places.c where a
 *                 joiner goes;  members.c what agents say;  quiet.c who is not heard any more;  cuts.c who is cut off;
 *                 door.c who is refused, expelled;  gather.c the run's beginning, and its going on after a takeover
 *     network/    link_table.c, measuring.c every link measured before the first plan, and a joiner's;
 *                 seen_links.c what consoles see of links;  cut_links.c which are cut
 *     planning/   question.c what a planner is asked;  ahead.c plans made ahead;  replan.c when it is asked;
 *                 answers.c what is done with the answers;  drift.c what strays from the plan
 *     iteration/  iteration.c its phases, recovery when a node dies in one;  reroute.c other ways;  anew.c;  commit.c the
 *                 decision, durable before it is announced;  evaluate.c validation;  standstill.c nothing goes on;
 *                 carry_record.c, carry.c how it outlives its controller;  predict.c what a plan takes
 *     trust/      agree.c what all of a stage hold alike;  doubt.c who is left out for what it said;  pairs.c who
 *                 contradicted whom;  held_sums.c sums that do not come
 *     weights/    copies.c who holds copies;  keepers.c every stage in two places after every commit;  moves.c nodes
 *                 change stages;  home.c;  checkpoints.c;  recover.c a stage without a replica;  restore.c
 *     history/    record.c the store and the JSON lines on stdout;  run_state.c what a successor must know;  resume.c;
 *                 disk.c;  finish.c the end
 *     operator/   stream.c messages to consoles;  journal.c;  announce.c what the run is and how it goes;  consoles.c
 *                 snapshots and live messages;  command.c acts, their previews and their undoing, faults;  drill.c
 *
 * Times are microseconds of this process's monotonic clock; agents' times are translated on
 * arrival. "Plan seconds" are the plan's own: real seconds / unit_s.
 */
#ifndef CONTROLLER_CONTROLLER_H
#define CONTROLLER_CONTROLLER_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "controller/trust/budget.h"
#include "controller/network/link_table.h"
#include "controller/operator/once.h"
#include "controller/options.h"
#include "controller/requests.h"
#include "controller/trust/pairs.h"
#include "controller/planning/planner.h"
#include "controller/iteration/routes.h"
#include "controller/members/silence.h"
#include "model/config.h"
#include "schedule/format/cluster.h"
#include "store/store.h"
#include "wire/keys.h"
#include "wire/msg.h"
#include "wire/post.h"

/* Of what consoles are told when they come; the store has all of it. */
enum { KEPT_CURVE = 4096, KEPT_NOTES = 500 };

struct seen_link {
	struct msg_link link; /* as its sender last told */
	struct msg_link told; /* as consoles were last told */
	float took_s;         /* what activations took when some last travelled; 0: none did */
	uint8_t strikes;      /* drift.c: reports in a row that contradict the plan */
};

/* A summed gradient as one agent has it. */
struct told_sum {
	double squares;
	uint32_t n;
	uint64_t *slices; /* (n) their hashes; malloc */
};

/* Bytes of a node, as it says. */
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
	struct told_sum copy_sum;
	int64_t refused_copy_us; /* it could not; 0 never */
	uint32_t n_refused;      /* times, since it last was at work */
	int home;                /* stage of the first plan; -1 none (home.c) */
	bool homing;             /* it keeps that copy to change places */
	bool moving;             /* told between iterations to load its copy: the next waits a moment */
	bool restoring;          /* it puts its stage back (restore.c) */
	uint64_t failed_restore; /* the checkpoint that it could not read; 0 none */
	int64_t unready_us;      /* when it said so: its next beat tells what it still holds */
	bool welcomed;
	uint64_t arrival;      /* the number of its hello */
	uint64_t told_arrival; /* it knows of arrivals up to this one */
	bool disowned; /* of its key: the others are to forget it */
	bool shunned;  /* left out for what it did: they are to forget it as well, as long as that holds */
	bool ready;            /* answered it */
	bool awaited;          /* after a takeover: it was there when the last commit was made */
	bool recalling;        /* asked for all that happened; until then its reports are not heard */
	uint64_t recalled_beat; /* its last heartbeat then */
	bool lost_here;        /* what it did in this iteration was given up */
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
	int64_t lived_us;    /* or anything else of it */
	struct msg_stuck stuck[MSG_STUCK]; /* links that it tells nothing moves on */
	uint32_t n_stuck;
	bool cut;            /* dead for that reason: comes back when its links do (cuts.c) */
	int64_t cut_seen_us; /* a link of it was stuck */
	struct flow sent, received;
	uint64_t tasks_then; /* that it had ended when nothing had ended for a moment */
	uint64_t overdue_in; /* the last iteration that it kept waiting; 0 none */
	uint64_t accuses_in; /* the last in which it told of an impossible number */
	uint64_t accused_in; /* the last in which it accused anybody, */
	uint8_t accused[MSG_NODES / 8]; /* and these then: a bit each */
	int64_t late_us; /* the latest lately that it said a word, by its own clock: silence.h */
	int64_t gap_us;  /* the longest lately until one came */
	struct silence_rounds rounds;
	int64_t allowed_us;  /* it may be quiet for so long, as last looked at (quiet.c), */
	int64_t patience_us; /* and its words be late, the way apart */
	uint16_t machine;    /* the least member on the same one */
	bool going;          /* taken out with others at this moment: nothing goes to it */
	struct msg_heartbeat beat;
	int64_t clock_offset_us; /* its clock + this = ours */
	int64_t round_trip_us;   /* of the sample the offset comes from: the least lately */
	int64_t offset_at_us;
	uint8_t slots;
	struct seen_link *links; /* from here to others */
	uint32_t n_links, room_links;
	double links_ratio; /* drift.c: all links from here, of what was planned */
	uint32_t link_strikes;
	/* drift.c: this iteration's tasks */
	int64_t task_started_us;
	double way_ratio; /* of its links, as told last, over what was planned; 0: not told */
	double task_took_s, task_planned_s;
	uint32_t n_tasks, strikes;
	struct budget strays, ignored; /* door.c: words that nobody asked for; lines that it is not listened to */
	struct budget lines, troubles, rows, corrections; /* of the journal, about it, and told by it; of the store; of what
							    * is believed of its links */
	bool changed;    /* consoles have not been told */
	int64_t told_us; /* numbers go out twice a second; a new state at once (0) */
};

/* cuts.c: a link between two nodes that was cut. */
struct cut {
	uint16_t from, to; /* who told of it first, this time, and of whom */
	bool active;       /* it is not there; false: it has been believed again */
	uint32_t times;    /* it was cut */
	int64_t since_us, seen_us; /* so; the last complaint */
	double quiet_s, expected_s; /* as first told */
	double delay_s[2], sync_s[2]; /* what was believed of it, there and back */
};

struct console {
	post_peer_id peer;
	char name[64];
	bool may_command;
	bool live;    /* has its snapshot, gets the stream */
	bool lagging; /* lost messages for want of room; gets a fresh snapshot when there is
			 some */
	uint64_t sequence;
	uint64_t dropped;
};

struct ahead;     /* ahead.c */
struct measuring; /* measuring.c */

struct fault {
	uint32_t id;
	enum fault_kind kind;
	int node, peer; /* -1: none, all */
	float factor;
	uint32_t ttl_ms;
	int64_t started_us, ends_us, started_wall_us;
	bool active;
};

/* checkpoints.c: the one being written. */
struct checkpointing {
	uint64_t iteration; /* 0 none */
	bool saved[MSG_STAGES];
	uint64_t hashes[MSG_STAGES];
	uint32_t n_saved; /* stages */
	uint64_t bytes;
	uint64_t last, before_last; /* whole ones; 0 none */
	int64_t asked_us;
	bool awaited; /* then the run ends */
};

/* restore.c: a stage, or all, are being put back. */
struct kept_shard {
	uint64_t iteration, hash;
	uint8_t stage;
	char host[64];
};

struct restoring {
	bool active;
	uint64_t lost; /* bits: stages that nobody holds */
	uint64_t iteration;
	uint64_t below; /* checkpoints from here on are of no use; 0 none */
	int who[MSG_STAGES]; /* puts it back; -1 nobody was asked yet */
	struct kept_shard *shards;
	uint32_t n_shards;
	int64_t asked_us; /* the last time that a node was told to put its stage back */
	bool all_silent;  /* once none of several answered */
	bool average; /* of the stages below, for `stage` */
	int stage;
	uint32_t n_from;
	uint16_t from_nodes[2];
	uint8_t from[2];
	float weights[2];
};

/* The iteration under way, as measured. */
struct progress {
	int64_t started_us, last_backward_us, reduce_us, reduced_us;
	uint32_t collisions;
	double wait_s, busy_s;         /* real seconds */
	struct once told_of;           /* its events, each once (iteration.c) */
	struct msg_task_event *events; /* of the iteration, for the store */
	uint32_t n_events, room_events;
	uint32_t told; /* of them, consoles were told */
	uint32_t ended, voided; /* tasks; those of tries before, when the iteration began anew */
	bool rerouted; /* routes are no longer those of the plan */
	bool taken_up; /* from a controller that died: it began before we know */
	uint32_t reroutes, anew; /* for news of links or compute: times that ways changed, and that it began anew */
};

struct evaluation {
	bool wanted, final;
	uint64_t iteration;
	uint32_t n, done;
	double loss;
	struct microbatch *microbatches;
	bool *answered;
	int64_t started_us;
	uint32_t attempt;
};

/* standstill.c */
struct standstill {
	int64_t look_us;    /* the next look */
	uint64_t tasks;     /* that agents said they had ended, at the last */
	uint32_t rounds;    /* looks since in which all were at rest */
	uint64_t steps;     /* controller.steps, at the last */
	uint32_t hung;      /* looks since there were more, or data moved, */
	int64_t hung_us;    /* and when that was */
	uint64_t iteration; /* the last that stood still */
};

struct prediction_record {
	float errors[64]; /* |measured - predicted| / measured, newest overwrites oldest */
	uint32_t n, next;
};

/* What a new plan promised, until an undisturbed iteration has shown what it keeps. */
struct receipt {
	bool due;
	char what[96];
	double before_s, said_s; /* plan seconds */
};

struct controller {
	struct options options;
	struct log log;
	struct post *post;
	struct keys_identity *identity;
	struct keys_list *admitted;
	struct store *store;
	struct planner *planner;
	FILE *jsonl;    /* NULL: not asked for */
	int supervisor; /* fd; -1 none */
	int64_t now_us, started_us, finished_us, next_refresh_us;

	/* The run. */
	uint64_t run;
	struct model_config model;
	struct recipe recipe;
	uint64_t parameters;
	uint64_t stage_parameters[MSG_STAGES];
	char *model_json;
	struct cluster *cluster; /* as planned against; shape never changes */
	struct cluster *planned; /* as it was said to be: delays only */
	double unit_s;           /* real seconds of one plan second */
	uint32_t n_shards, per_shard;
	int *shard_of; /* (n_nodes) -1: not a data node when the run began */
	double baseline_s;
	int64_t started_wall_us;

	struct member *members; /* (n_nodes) */
	uint32_t n_members;
	uint64_t assignments; /* MSG_ASSIGN numbers given out */
	enum gather_step gathering;
	struct link_table *links;     /* as measured; NULL: nothing is */
	struct measuring *measuring;  /* NULL: nothing was */
	uint64_t corpus_hash;
	uint64_t accused_in; /* the iteration of the last accusation */
	uint32_t n_accused;  /* in it */
	struct pairs pairs; /* who contradicted whom */
	uint64_t arrivals;
	int64_t next_door_us;
	uint64_t keys_seen; /* version of the admitted */
	uint64_t refused_told[LINK_REASON_COUNT]; /* of the post's counters, in the journal */
	int64_t next_beat_check_us, next_ping_us, next_status_us, next_stream_us, next_links_us,
		next_copies_us, moved_us, next_ask_us, next_anew_us, cut_told_us;
	uint64_t hung_up;    /* connections that have ended, and when the last did; */
	int64_t hung_up_us;
	uint32_t n_hung_up;  /* of them lately, whose is not known */
	uint32_t connections; /* that a process has with this one */
	uint32_t n_suspected; /* agents that have not been heard since */

	struct cut *cuts; /* (n_cuts) all that there ever were */
	uint32_t n_cuts, room_cuts;

	/* home.c */
	struct member *homing[2]; /* who are to change places; NULL nobody */
	int64_t next_homing_us;

	/* Planning. */
	uint32_t path_length;    /* what the operator wants */
	struct planned *current; /* in force */
	struct planned *pending; /* takes over at the next start; NULL none */
	uint64_t epoch;          /* of current */
	uint64_t plan_wanted;    /* id of the newest request that matters; 0 none under way */
	int64_t replanned_us;    /* when a change was last asked about */
	bool refine_wanted;      /* ask for a better plan for the same members once idle */
	struct ahead *ahead;     /* NULL: no plans are made ahead */
	char plan_reason[96];
	char stand_in[192]; /* what the journal last said of a plan that is not the algorithm's own */

	struct requests requests; /* of the parts, until the loop has carried them out */

	/* The iteration. */
	enum run_phase phase;
	uint64_t committed;
	uint64_t iteration; /* under way; committed + 1 */
	struct routes routes;
	struct progress progress;
	uint32_t first_attempt; /* of microbatches and reductions: above any earlier
				   controller's */
	uint32_t own_attempt;   /* this controller's first */
	char *carried_text;      /* carry.c: as the store has it; NULL */
	uint32_t recorded_first; /* the first attempt that stands there */
	struct planned *carried; /* the predecessor's plan; NULL none */
	uint32_t carried_first;  /* its first attempt */
	uint32_t reduce_attempt;
	uint32_t summing[MSG_STAGES]; /* replicas told to sum in this attempt; 0: not yet */
	uint32_t copy_looks;          /* at copies that keep the replicas waiting, in this phase */
	uint32_t n_differing;         /* sums of this iteration of which there were two */
	uint64_t steps; /* tasks that ended and were begun, sums, answers: what brings the run on */
	struct standstill still;
	bool resumed;                  /* this controller took the run over */
	struct msg_commit last_commit; /* as announced: told again to whom it may have missed */
	struct evaluation evaluation;
	double stage_squares[MSG_STAGES]; /* of the last commit's gradient */
	struct checkpointing saving;
	struct restoring restore;
	uint32_t n_rewinds;   /* how often the run went back: another run, for consoles */
	int64_t committed_us; /* when the last commit was decided */
	bool pause, step;
	struct {
		bool full;         /* the run waits, since then */
		bool room;         /* by this turn's look, there is some */
		bool commit_waits; /* even what was held back is taken: no commit can be written */
		bool warned;
		int64_t since_us, next_look_us, next_said_us;
	} disk;
	const char *stopping; /* the run is to end, and why; NULL */
	int exit_status;
	bool unrecorded; /* it ends because the run cannot be recorded */
	bool redo;                 /* the iteration begins anew, by another plan */
	bool taken_over;           /* while stalled: somebody takes the lost stage over */
	enum run_phase stalled_in; /* the phase a lost stage interrupted */
	int64_t stalled_us;
	int64_t rerun_us; /* when microbatches were told to run again, until one starts; 0 */
	uint64_t sooner_plan;   /* a request whose answer may end the iteration sooner; 0 answered */
	uint64_t recovery_plan; /* the request for a plan without who died last; 0 answered */
	double last_validation;
	struct prediction_record record;
	struct receipt receipt;

	/* What happened. */
	struct msg_see_iteration *history; /* the newest KEPT_CURVE at least */
	uint32_t n_history, room_history;
	struct msg_see_validation *validations;
	uint32_t n_validations, room_validations;
	struct msg_see_note *notes;
	uint32_t n_notes, room_notes;
	struct fault *faults;
	uint32_t n_faults, room_faults;
	uint32_t first_fault; /* ids go on from an earlier controller's: faults[i] has
				 first_fault + i + 1 */
	bool links_changed;
	bool drifted; /* the cluster was corrected since the plan was made */
	int64_t bettered_us; /* when a better plan was last asked for on that account */
	uint64_t last_note;

	struct budget wrong, visits, refusals; /* lines of messages that nobody understands, of consoles that come
						* and go, of agents that are refused */
	struct asker *askers; /* (n_askers) command.c: who had plans compared */
	uint32_t n_askers, room_askers;

	/* Operators. */
	struct console *consoles;
	uint32_t n_consoles, room_consoles;
	char lease[64];
	int64_t lease_ends_us;
	struct act *acts; /* command.c: for undo */
	uint32_t n_acts, room_acts;
	struct awaited *awaited; /* command.c: previews under way */
	uint32_t n_awaited;
	struct json_t *drill; /* drill.c: the acts so far; NULL none */
	uint64_t commands;
};

/* ---- members.c ---- */
/* Whether an agent's clock can say so: then sums and differences with ours are numbers, too. */
static inline bool is_clock(int64_t us)
{
	return us >= 0 && us <= INT64_MAX / 8;
}

/* Before members_hello: where another process says hello for a node that takes part, the one before is gone. */
void members_replaced(struct controller *c, post_peer_id peer, const struct msg_hello *m);
void members_hello(struct controller *c, post_peer_id peer, const struct msg_hello *m);
void members_ready(struct controller *c, struct member *m, const struct msg_ready *r);
void members_heartbeat(struct controller *c, struct member *m, const struct msg_heartbeat *h);
void members_tell_peers(struct controller *c); /* who is to be known, and whose key to be forgotten */
void members_trouble(struct controller *c, struct member *m, const struct msg_trouble *t);
void members_links(struct controller *c, struct member *m, const struct msg_links *l);
/* Of a link from m; NULL: out of memory. */
struct seen_link *seen_link(struct member *m, uint16_t to);
void members_link_seen(struct controller *c, struct member *m, uint16_t to); /* c->links has changed */
/* Tells everyone gathered what the run is, once the first plan says how fast time goes. */
void members_welcome(struct controller *c);
bool members_due(const struct controller *c); /* fifty times a second: to look at everybody */
void members_hear_silence(struct controller *c);  /* then: who is not heard any more goes, */
void members_check_joiners(struct controller *c); /* joiners that hang start over, */
void members_ping(struct controller *c);          /* and now and then all are sent a clock */
void members_gone(struct controller *c, struct member *m, const char *why);
void members_mark(struct controller *c, struct member *m, bool out); /* it is to take no part */
void members_assign(struct controller *c, struct member *m, int stage, bool fetch);
void members_set(struct controller *c, struct member *m, enum node_state state,
		 const char *why);
struct member *member_of_peer(struct controller *c, post_peer_id peer);
bool member_alive(const struct member *m);         /* answers, whatever its weights */
bool member_has_key(const struct member *m);       /* somebody was that node, and may come back */
/* It has the weights of the last commit, and takes part from the next iteration or sum on. */
bool member_joins(const struct controller *c, const struct member *m);
/* Its weights are the stage's, of the last commit: by what it was told, and by its last beat. */
bool member_holds(const struct controller *c, const struct member *m, int stage);
uint32_t members_live(const struct controller *c); /* in state NODE_LIVE */
uint32_t stage_replicas(const struct controller *c, int stage, const struct member *without);
int member_send(struct controller *c, struct member *m, const struct msg *message);
int member_stage(const struct controller *c, const struct member *m); /* -1 none */

/* ---- places.c ---- */
/* Its links to the stage's replicas do not hold up the sums. */
/* Seconds to move a gradient, or an activation where that is not known; < 0: no link. */
double place_distance_s(const struct controller *c, const struct member *from,
			const struct member *to);
/* Real seconds that so many bytes take from one to the other, as measured; 0: not known. */
double place_transfer_s(const struct controller *c, const struct member *from, const struct member *to,
			double bytes);
bool place_near(const struct controller *c, const struct member *m, int stage);
/* The stage that m, which is to join this one, takes: this one, another (its place is exchanged
 * with that of a node that is away), or -1 none. */
int place_for(struct controller *c, struct member *m, int stage);

/* ---- quiet.c ---- */
void quiet_begin(struct controller *c, struct member *m); /* its process has said hello */
/* A word of it has come. False: not the newest, which tells only that it lives. */
bool quiet_hear(struct controller *c, struct member *m, const struct msg_heartbeat *h);
void quiet_hung_up(struct controller *c); /* whose connections have ended is known: one process' */
/* Takes out who has been quiet for too long. slept_us: so long this loop was late itself. */
void quiet_check(struct controller *c, int64_t slept_us);
/* The usual round trip of the farthest of those that are here. */
int64_t quiet_farthest_us(const struct controller *c);

/* ---- cuts.c ---- */
void cuts_hear(struct controller *c, struct member *m, const struct msg_heartbeat *h);
void cuts_check(struct controller *c);
struct cut *cuts_find(const struct controller *c, uint16_t a, uint16_t b); /* of that link; NULL: it never was cut */
bool cuts_between(const struct controller *c, uint16_t a, uint16_t b); /* that link is not there */
/* There is no plan without some link that is cut: one of its ends is taken out. False: there is none. */
bool cuts_give_way(struct controller *c);
/* Not cut off, or no more: it may take part again. */
bool cuts_healed(const struct controller *c, const struct member *m);

/* ---- door.c ---- */
void door_charge(struct controller *c, post_peer_id from, const struct msg *m);
/* A message that its sender should not send: charged, and a line in the log now and then. */
void door_wrong(struct controller *c, post_peer_id from, const char *what);
/* One more word that m was not asked for, or says again: some are honest. Of many the journal says so, now and then. */
void door_stray(struct controller *c, struct member *m, const char *what);
/* It is not listened to: what it does, in words. */
void door_ignored(struct controller *c, struct member *m, const char *what);
void door_down(struct controller *c, post_peer_id peer, enum link_reason reason);
/* No agent may come to the others as this node, until one has said hello. */
void member_disown(struct controller *c, struct member *m);
/* Until told otherwise the others do not let it in. */
void member_shun(struct controller *c, struct member *m, bool shunned);
void door_turn(struct controller *c);

/* ---- copies.c ---- */
/* So long after that moment the next iteration waits for copies to be loaded. */
bool copies_settle(const struct controller *c, int64_t since_us);
/* Fetches a copy of the stage in the background, and keeps it: false when nobody has it. */
bool copies_fetch(struct controller *c, struct member *m, int stage);
bool copies_keep(struct controller *c, struct member *m, int stage, const struct member *source); /* so, of that one */
void copies_fetch_again(struct controller *c, struct member *m);
/* False: its copy is not the stage's, and is fetched again. */
bool copies_hash_right(struct controller *c, struct member *m, uint64_t iteration, uint64_t hash);
/* Who was left out and has given nothing, or something else, is not asked again. */
void copies_blame_source(struct controller *c, const struct member *m);
void copies_release(struct controller *c, struct member *m);
/* Its copy is of no use: another keeps one, or it joins anew. */
void copies_refuse(struct controller *c, struct member *m, const char *why);
/* The commit waits until it has the sum; not so a joiner that still fetches. */
bool copies_awaited(const struct member *m);
void copies_forget(struct member *m); /* it has none, or as good as none */
void copies_kept(struct controller *c, struct member *m, const struct msg_kept *k);
void copies_committed(struct controller *c, struct member *m, const struct msg_committed *r);
bool copy_whole(const struct member *m, int stage); /* it keeps one, maybe of an older commit, and is here */
bool copy_usable(const struct controller *c, const struct member *m, int stage); /* of the last commit */
/* Its own weights are the stage's, of that commit, as a replica's hash proves: it need not fetch them. */
bool copies_own(const struct controller *c, const struct member *m, int stage);
/* It is that, or will be once its word of the commit is here. */
bool copy_coming(const struct controller *c, const struct member *m, int stage);
bool copy_needed(const struct controller *c, const struct member *m);            /* so, of a stage without a replica */
bool copy_asleep(const struct controller *c, const struct member *m, int stage); /* so, but it is not heard */
/* What the replicas of the stage told for that iteration; 0: nothing yet. */
uint64_t copies_hash(const struct controller *c, int stage, uint64_t iteration);
struct member *copies_holder(struct controller *c, int stage, const struct member *but); /* of a usable one; NULL */
/* It was left out, and its own weights are those of the stage's last commit. */
bool copy_left_out(const struct controller *c, const struct member *m, int stage);
/* Who gets the stage's sum without being a replica: marks them, fills nodes (n_members). */
uint32_t copies_of(struct controller *c, int stage, uint16_t *nodes);
/* Now and then: appoints keepers, lets them go. Whether it was time, and nodes may go home as well (home_turn). */
bool copies_turn(struct controller *c);
/* Between iterations: keepers that can be spared move over. Whether the next one is to wait for that. */
bool copies_balance(struct controller *c);
/* Its copy of the stage, which is its place now, becomes its weights. */
void copies_load(struct controller *c, struct member *m, int stage);
void copies_move(struct controller *c, struct member *m, int stage);
struct member *copies_place(struct controller *c, int stage); /* of one that is away; NULL: none */
void copies_exchange(struct controller *c, struct member *m,
		     int stage); /* places, nothing else */

bool copies_room(const struct controller *c, const struct member *m, int stage); /* memory for one */

/* ---- home.c ---- */
void home_turn(struct controller *c); /* who stands where another belongs fetches that stage */
/* Between iterations: two change places once both can. Whether the next is to wait for that. */
bool home_awaited(struct controller *c);

/* ---- checkpoints.c ---- */
void checkpoint_when_due(struct controller *c); /* after a commit */
void checkpoint_saved(struct controller *c, struct member *m, const struct msg_saved *r);
/* Before the end: the last commit is written, too. True while the run is to wait for that. */
bool checkpoint_last(struct controller *c);

/* ---- restore.c ---- */
bool restore_checkpoint(struct controller *c); /* begins; false: there is none */
/* Begins; false: nothing can stand in the stage's place. */
bool restore_average(struct controller *c, int stage, struct member *taker);
void restore_look_again(struct controller *c); /* a process has come: what could not be read may be there now */
void restore_failed(struct controller *c, struct member *m, const struct msg_unready *u);
void restore_turn(struct controller *c); /* while one is active */
/* A node is back with the stage's weights: they need not be made. False: the run goes back already. */
bool restore_averted(struct controller *c, int stage);

/* ---- recover.c ---- */
void recover_turn(struct controller *c); /* while stalled */
/* How long a node that may only sleep is waited for when its stage is lost. */
int64_t recover_patience_us(const struct controller *c);
/* The iteration that was under way begins anew. */
void recover_restart(struct controller *c, const char *why);
/* So too where the plan that is pending ends it clearly sooner than what runs again does. */
void recover_sooner(struct controller *c);

/* ---- reroute.c ---- */
void reroute_show(struct controller *c); /* to consoles */
/* Agents hear the new routes of `changed` (n ids), and who is gone (NULL nobody). */
void reroute_tell(struct controller *c, const uint32_t *changed, uint32_t n, const struct member *gone);
void reroute_tell_again(struct controller *c); /* all that is not as planned; who knows it passes over it */
/* What visited it runs again elsewhere, and what has not begun may go elsewhere too. Returns how many run
 * again; -ENOENT: nobody else is left of its stage; -ENOMEM. */
int reroute_without(struct controller *c, struct member *gone);
/* What is still to use the link between them, which is not there, goes by another node. Returns how many
 * microbatches; -ENOENT: for one of them there is nobody, and nothing was changed; -ENOMEM. */
int reroute_around(struct controller *c, const struct member *a, const struct member *b);
/* Compute or links are not what they were: what has not begun goes where it ends sooner. */
void reroute_drifted(struct controller *c);

/* ---- carry.c ---- */
/* What a successor must know of the iteration's routes; before agents are told. */
void carry_record(struct controller *c);
void carry_read(struct controller *c); /* what the predecessor left; stages and commits are known */
/* After a takeover, who is here being known: the predecessor's iteration goes on. False: it cannot. */
bool carry_on(struct controller *c);
bool carry_recalls(const struct controller *c); /* not everybody has told it yet what happened */
/* While computing: who does not say what happened is given up. True: somebody was. */
bool carry_turn(struct controller *c);

/* ---- measuring.c ---- */
bool measuring_wanted(const struct controller *c); /* nothing is emulated, and it is no embedded cluster */
void measuring_begin(struct controller *c); /* all that are welcome here */
bool measuring_turn(struct controller *c);  /* whether all is measured */
void measuring_answer(struct controller *c, struct member *m, const struct msg_measured *r);
/* Before the first iteration: the round under way, from 1, of so many; 0 none. Returns the seconds that are left. */
double measuring_round(const struct controller *c, uint32_t *round, uint32_t *rounds);
/* Whether the links between m and those at work are known; what was known is no longer true. */
bool measuring_knows(const struct controller *c, const struct member *m);
void measuring_forget(struct controller *c, const struct member *m);
void measuring_free(struct controller *c);
void measuring_joiners(struct controller *c); /* every turn: who joins is measured in the background */

/* ---- gather.c ---- */
void gather_turn(struct controller *c);
/* Fills in steps, step, part, parts, left_s and, in words, doing. */
void gather_status(const struct controller *c, struct msg_see_status *s);

/* ---- doubt.c: who is left out until the operator says otherwise ---- */
/* Marks one that may come back, as all whom it contradicts are out by now, and returns it; NULL: nobody may. */
struct member *doubt_forgive(struct controller *c);
/* m has a number that cannot be. Many such in one iteration: the training has diverged, and ends. */
void doubt_number(struct controller *c, struct member *m, const char *why);
/* A replica's first accusation of that one in this iteration: what it says counts, and costs it nothing. */
bool doubt_is_news(const struct controller *c, const struct member *by, const struct msg_trouble *t);
void doubt_accused(struct controller *c, struct member *accused, struct member *by);
bool doubt_doubts(const struct controller *c, uint16_t id); /* it is in a pair, explained or not */
/* What m said cannot be: no sum of this iteration stands. */
void doubt_proven(struct controller *c, struct member *m, const char *why);
/* They contradict each other: remembered. */
void doubt_pair(struct controller *c, uint16_t a, uint16_t b);
/* Whom it contradicted until now has no fault in that, and nothing of it keeps it out: it was found out by
 * itself, or the operator takes it back. */
void doubt_explain(struct controller *c, const struct member *m);
/* One of a pair, on the word of the other. */
void doubt_left_out(struct controller *c, struct member *m, const struct member *other,
		    const char *why);
/* All wait for m: at first like a dead node, which may come back; the second time left out. */
void doubt_overdue(struct controller *c, struct member *m, const char *why);
/* Whether it lately kept all others waiting. */
bool doubt_late(const struct controller *c, const struct member *m);
/* m has its stage's sum: was it through with all that it should have counted? If not, somebody is
 * left out, and true. */
bool doubt_counts(struct controller *c, struct member *m);
/* The sums of the stage differ, and not for the first time. */
void doubt_sums(struct controller *c, int stage);
/* A sum does not come, and somebody for whom all wait sends nothing: it is left out. */
void doubt_held_up(struct controller *c);
void doubt_beat(struct controller *c, struct member *m); /* whether data moves */

/* ---- standstill.c ---- */
void standstill_turn(struct controller *c); /* while computing */
/* In other phases: whether it is time to look; then, whether nothing has brought the run on for so long,
 * or for much longer than so many tasks, one after another, take. */
bool standstill_look(struct controller *c);
bool standstill_for(struct controller *c, int64_t most_us);
bool standstill_hung(struct controller *c, uint32_t tasks);
/* Then: who says that it is at work is taken out. False: nobody says so. */
bool standstill_blame(struct controller *c);

/* ---- agree.c ---- */
/* A replica has told the hash of its weights after the last commit: who differs from most of its stage is set apart. */
void agree_told(struct controller *c, const struct member *told);
void agree_changed(struct controller *c, struct member *m); /* by its own words, outside a commit */
/* Whether it may join: its weights are the stage's. Else they are fetched again. */
bool agree_joins(struct controller *c, struct member *m);
/* Before the first iteration, and after a takeover: of those that are ready, who differs is not; the corpus is known. */
void agree_at_first(struct controller *c);
/* Whether what it reads is the run's corpus; where that is known, who reads another is out. */
bool agree_reads(struct controller *c, struct member *m);

/* ---- commit.c ---- */
void commit_when_reduced(struct controller *c);
void iteration_reduced(struct controller *c, struct member *m, const struct msg_reduced *r);
void iteration_committed(struct controller *c, struct member *m, const struct msg_committed *r);

/* ---- evaluate.c ---- */
void evaluation_begin(struct controller *c);
bool evaluation_needs(const struct controller *c, uint16_t a, uint16_t b); /* the link, for an answer */
void evaluation_turn(struct controller *c);
void iteration_evaluated(struct controller *c, struct member *m, const struct msg_evaluated *e);
void evaluation_fini(struct controller *c);

/* ---- iteration.c ---- */
void set_phase(struct controller *c, enum run_phase phase);
bool replicas_everywhere(const struct controller *c);
void send_replicas(struct controller *c, const struct msg *m);
/* Sums that were begun, or done, count no longer: they begin anew once all is done, over those who are left. */
void begin_reduction(struct controller *c);
void iteration_taken_up(struct controller *c); /* routes, plan and attempts are set */
/* Between two iterations: what the operator asked for, then the next one. */
void iteration_boundary(struct controller *c);
void iteration_report(struct controller *c, struct member *m, const struct msg_report *r);
void iteration_lost(struct controller *c, struct member *m); /* a replica died */
/* Who has no part in the run now may hold the weights of a stage that is lost, also where its place was given to
 * another: true when it does, and the run goes on with it as if it had never slept. */
bool iteration_resumes(struct controller *c, struct member *m);
void iteration_fini(struct controller *c);

/* ---- replan.c ---- */
#define REPLAN_QUICK_S 0.06 /* for the first answer to a change, */
#define REPLAN_REFINE_S 1.0 /* and for what refines it */
/* Asks for the first plan, with the assignment free unless it is given, for all that are here. */
void replan_first(struct controller *c);
/* Asks for a plan for today's replicas, marks and path length; the newest answer wins. */
void replan(struct controller *c, const char *reason);
/* The same, but what is in force stays unless the answer is better by a few percent. */
void replan_if_better(struct controller *c, const char *reason);
bool replan_awaited(const struct controller *c); /* an answer will come that the next iteration should have */
/* Once more, with more time, from that plan on; what is found is welcome, not waited for. */
void replan_refine(struct controller *c, const struct plan *from);
/* Whether it has everybody in the stage that is its place now: else it is no place to start from. */
bool replan_as_pinned(const struct controller *c, const struct plan *p);
void replan_set_times(struct controller *c); /* of those that take part, as measured, without emulation */
/* Asks what the plain pipeline would take, for consoles to compare with. */
void replan_baseline(struct controller *c);
void replan_turn(struct controller *c); /* takes the planner's answers */
bool replan_usable(const struct controller *c, const struct planned *p);
bool planned_uses(const struct planned *p, uint16_t node);
uint32_t plan_peak_slots(const struct planned *p);
/* Seconds to ask the planner for: a baseline's own, else these. */
double replan_budget_s(const struct controller *c, double best_s);
/* For a plan like today's: who is out into excluded (MSG_NODES), which q borrows. Kind, budget, reason and where to
 * start are the caller's. */
void replan_question(const struct controller *c, struct planner_request *q, bool *excluded);
/* Where to start: what was made ahead for just this, or the plan in force; NULL: from nothing. Borrowed. */
const struct plan *replan_from(const struct controller *c, const struct planner_request *q);

/* ---- predict.c ---- */
/* On measured links: what the controller's messages and the sums add is part of what the plan predicts. */
void predict(struct controller *c, struct planned *a);

/* ---- ahead.c: all may be called where none are made ---- */
int ahead_start(struct controller *c, struct error *err);
void ahead_stop(struct controller *c);
void ahead_turn(struct controller *c); /* takes an answer, asks for the next */
/* The best that was made ahead, or was in force, for a run with exactly these out and so long paths, its nodes where they
 * were then; NULL: none. Borrowed until the next ahead_turn. */
const struct plan *ahead_plan(const struct controller *c, const bool *excluded, int path_length);
/* Plan seconds of an iteration if this replica were lost now; < 0: there is no plan without it; 0: not known, or the
 * plan in force, to compare with, is not usable any more. */
double ahead_lost_s(const struct controller *c, const struct member *m);

/* ---- drift.c ---- */
void drift_links(struct controller *c, struct member *m, const struct msg_links *l); /* all of a node's, */
void drift_link(struct controller *c, struct seen_link *s);                          /* then each */
void drift_task(struct controller *c, struct member *m, const struct msg_task_event *e);
void drift_turn(struct controller *c); /* between iterations */
/* What tasks take on a node, into the cluster: as timed, times its pace. */
void drift_set_times(struct controller *c, const struct member *m);
/* Before the first iteration: agents that share a machine's cores take turns, as the plan's tasks come. */
void drift_guess_pace(struct controller *c, const struct plan *p);
/* Whether all agents of m's machine are late together: no news of one of them, nor of the network. */
bool drift_overloaded(const struct controller *c, const struct member *m);
bool members_share_machine(const struct member *a, const struct member *b);

/* ---- resume.c ---- */
/* Takes over a run whose controller ended or died: fills the run's state from its store. */
int resume_begin(struct controller *c, struct error *err);
/* The options that such a run goes on with, as text to keep (free) and again from the store. */
char *resume_options(const struct controller *c);
int resume_options_again(struct controller *c, struct error *err);
/* The first number of attempts, and of faults, of the n-th controller that takes over: above all that the ones before
 * it may have used. -ERANGE: none is left. */
int resume_numbers(uint64_t generation, uint32_t *first);
/* What resume_save has written: stages, places, marks, keys. -ENOENT: nothing was; -EINVAL: it is damaged. */
int resume_load(struct controller *c, struct error *err);
int resume_save(struct controller *c); /* what a successor must know beside the store */
/* While gathering: agents that hold the run's weights go on with them. */
void resume_member(struct controller *c, struct member *m);

/* ---- record.c ---- */
int record_begin(struct controller *c, struct error *err);
/* What RUN-DIR holds beside the store: a predecessor may have died before it was written. */
int record_folder(struct controller *c, struct error *err);
int record_cluster(struct controller *c, struct error *err); /* as measured by now */
void record_plan_file(struct controller *c, uint64_t epoch, const char *text);
/* It is in force: durable, as an event, and as a file. */
int record_plan(struct controller *c, const struct planned *p, struct error *err);
int record_commit(struct controller *c, const struct msg_commit *m, double sum_squares,
		  const struct msg_see_iteration *see, struct error *err);
void record_node(struct controller *c, const struct member *m); /* its state is a new one */
void record_phase(struct controller *c);
/* What is planned against was corrected: a node's times, a link's delay. */
void record_compute(struct controller *c, uint16_t node);
void record_link(struct controller *c, uint16_t from, uint16_t to);
void record_cut(struct controller *c, const struct cut *k); /* it is cut, or there again */
void record_disk(struct controller *c); /* full, or room again */
/* What a death led to, step by step: "rerun" (value: microbatches told to run again), "planned"
 * (value: microseconds the planner took), "started" (value: the first of them to start, at_us).
 */
void record_recovery(struct controller *c, const char *step, int node, int64_t value,
		     int64_t at_us);
void record_fault(struct controller *c, const struct fault *f);
void record_iteration(struct controller *c, const struct msg_see_iteration *see);
void record_validation(struct controller *c, const struct msg_see_validation *v);
/* Into the curves that consoles are shown; nothing is written. */
void record_keep(struct controller *c, const struct msg_see_iteration *see);
void record_keep_validation(struct controller *c, const struct msg_see_validation *v);
void record_hash(struct controller *c, const struct member *m, uint8_t stage,
		 uint64_t iteration, uint64_t hash);

/* ---- consoles.c ---- */
void consoles_attach(struct controller *c, post_peer_id peer, const struct msg_attach *m);
void consoles_down(struct controller *c, post_peer_id peer);
struct console *console_of_peer(struct controller *c, post_peer_id peer);
void consoles_turn(struct controller *c); /* status, changed nodes, tasks, laggards */
void consoles_tell(struct controller *c, struct msg *m); /* to all that are live */
void console_send(struct controller *c, struct console *to, struct msg *m);
/* A line of the journal: told, stored, kept. Returns its id. */
uint64_t note(struct controller *c, enum note_kind kind, int node, char mark,
	      const char *format, ...) __attribute__((format(printf, 5, 6)));
void consoles_plan(struct controller *c, const struct planned *p);
void consoles_run(struct controller *c); /* what the run is, told again */
/* -EINVAL: it does not fit the run. */
int console_candidate(struct controller *c, struct console *to, const struct planned *p,
		      const char *name);
void consoles_fini(struct controller *c);

/* ---- announce.c ---- */
void announce_fill_run(const struct controller *c, struct msg *m); /* MSG_SEE_RUN: what the run is */
void announce_fill_fault(const struct fault *f, struct msg *m);    /* MSG_SEE_FAULT */
/* The plan to one console, or to all (NULL); candidate: its name where it is not in force. While an iteration is under
 * way its routes are told as they are by now, not as planned. -EINVAL: it does not fit the run; -ENOMEM. */
int announce_plan_to(struct controller *c, const struct planned *p, const char *candidate, struct console *only);

/* ---- command.c ---- */
void command_receive(struct controller *c, struct console *from, const struct msg_command *m);
void command_previewed(struct controller *c, struct planned *answer); /* takes it */
void command_scripted(struct controller *c); /* --at: acts due before the next iteration */
void command_turn(struct controller *c);     /* leases and faults that end */
void command_fini(struct controller *c);
float prediction_error(const struct controller *c); /* median */

/* An order to the embedded cluster's supervisor: false when there is none. */
bool supervisor_tell(struct controller *c, const char *what, int node);
void supervisor_end(struct controller *c); /* told: no other controller is to go on with the run */

/* ---- drill.c ---- */
void drill_add(struct controller *c, const struct msg_command *m); /* an act that was done */
void drill_save(struct controller *c); /* RUN-DIR/drill.json, if there was any act */
void drill_fini(struct controller *c);

/* ---- finish.c ---- */
void controller_finish(struct controller *c, int status, const char *why);
/* What is under way is given up; once the last commit is on the agents' disks the run ends. Said twice: at once.
 * why: borrowed for good. */
void controller_stop(struct controller *c, const char *why);
/* The disk is full, or worse: ends, and leaves the agents to a controller that can write. */
void controller_unrecorded(struct controller *c, const char *why);

/* ---- disk.c ---- */
/* The disk of the run's folder is full, by the store's word: nothing new begins. */
bool disk_full(const struct controller *c);
void disk_refused(struct controller *c); /* a commit found no room: it is tried again */
void disk_turn(struct controller *c); /* looks now and then; a commit that found no room is tried again */
void disk_go_on(struct controller *c); /* after that: where there is room again, and the commit was written */

#endif
