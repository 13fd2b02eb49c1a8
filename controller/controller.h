/* controller.h - the controller's state. What its parts offer one another: a header each.
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

#endif
