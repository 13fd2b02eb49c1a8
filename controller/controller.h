/* controller.h - the controller's state. What its parts offer one another: a header each.
 *
 * One thread runs the loop (loop.c); one worker thread plans (planner.h), and another one ahead, in idle time
 * (contingency.c). A part decides about its own state. What it wants done about the iteration under way it requests
 * (requests.h), and the loop does it. The parts, by folder:
 *
 *     members/    member.c what is known of a node, and what is sent to it;  node_state.c its state, and who is gone;
 *                 peers.c what agents are told of one another;  assign.c who holds which stage;  placement.c where a
 *                 joiner goes;  members.c what agents say;  failure_detector.c who is not heard any more;  link_failures.c who is cut off;
 *                 admission.c who is refused, expelled;  startup.c the run's beginning, and its going on after a takeover
 *     network/    link_table.c, measuring.c every link measured before the first plan, and a joiner's;
 *                 observed_links.c what consoles see of links;  failed_links.c which are cut
 *     planning/   request.c what a planner is asked;  contingency.c plans made ahead;  replan.c when it is asked;
 *                 answers.c what is done with the answers;  drift.c what strays from the plan
 *     iteration/  iteration.c its phases, recovery when a node dies in one;  reroute.c other ways;  restart.c;  commit.c the
 *                 decision, durable before it is announced;  evaluate.c validation;  stall_detector.c nothing goes on;
 *                 predict.c what a plan takes
 *     trust/      agreement.c what all of a stage hold alike;  exclude.c takes a node out for what it sent;
 *                 rate_limit.c quotas
 *     weights/    copies.c who holds copies;  standbys.c every stage in two places after every commit;  stage_moves.c nodes
 *                 change stages;  rebalance.c;  checkpoints.c;  recover.c a stage without a replica;  restore.c
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
#include "controller/history/disk.h"
#include "controller/history/finish.h"
#include "controller/history/record.h"
#include "controller/iteration/commit.h"
#include "controller/iteration/evaluate.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/routes.h"
#include "controller/iteration/stall_detector.h"
#include "controller/members/admission.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/members/failure_detector.h"
#include "controller/members/heartbeat_timeout.h"
#include "controller/network/failed_links.h"
#include "controller/network/link_table.h"
#include "controller/operator/command.h"
#include "controller/operator/journal.h"
#include "controller/operator/number_set.h"
#include "controller/operator/stream.h"
#include "controller/options.h"
#include "controller/planning/drift.h"
#include "controller/planning/planner.h"
#include "controller/requests.h"
#include "controller/trust/rate_limit.h"
#include "controller/trust/exclude.h"
#include "controller/weights/checkpoints.h"
#include "controller/weights/rebalance.h"
#include "controller/weights/standbys.h"
#include "controller/weights/recover.h"
#include "controller/weights/restore.h"
#include "model/config.h"
#include "schedule/format/cluster.h"
#include "store/store.h"
#include "wire/keys.h"
#include "wire/msg.h"
#include "wire/post.h"

struct contingency;     /* contingency.c */
struct measuring; /* measuring.c */
struct observed_link; /* observed_links.h */

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
	int64_t now_us, started_us;

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
	int64_t moved_us;     /* when a node was last told to load the copy that it keeps */
	uint64_t assignments; /* MSG_ASSIGN numbers given out */
	enum gather_step gathering;
	struct link_table *links;     /* as measured; NULL: nothing is */
	struct measuring *measuring;  /* NULL: nothing was */
	struct membership membership;
	struct failure_detector detector;
	struct admission admission;
	struct failed_links failed_links;
	struct rebalance rebalance;
	struct standbys standbys;
	uint64_t corpus_hash;
	struct bad_numbers bad_numbers;
	uint64_t arrivals;

	/* Planning. */
	uint32_t path_length;    /* what the operator wants */
	struct planned *current; /* in force */
	struct planned *pending; /* takes over at the next start; NULL none */
	uint64_t epoch;          /* of current */
	uint64_t plan_wanted;    /* id of the newest request that matters; 0 none under way */
	int64_t replanned_us;    /* when a change was last asked about */
	bool refine_wanted;      /* ask for a better plan for the same members once idle */
	struct contingency *contingency;     /* NULL: no plans are made ahead */
	struct drift drift;
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
	uint32_t reduce_attempt;
	uint32_t summing[MSG_STAGES]; /* replicas told to sum in this attempt; 0: not yet */
	uint32_t n_differing;         /* sums of this iteration of which there were two */
	uint64_t steps; /* tasks that ended and were begun, sums, answers: what brings the run on */
	struct stall_detector still;
	struct stall stall;
	bool resumed;                  /* this controller took the run over */
	struct msg_commit last_commit; /* as announced: told again to whom it may have missed */
	struct evaluation evaluation;
	double stage_squares[MSG_STAGES]; /* of the last commit's gradient */
	struct checkpointing saving;
	struct restoring restore;
	uint32_t n_rewinds;   /* how often the run went back: another run, for consoles */
	int64_t committed_us; /* when the last commit was decided */
	bool pause, step;
	struct disk disk;
	struct ending ending;
	bool redo;                 /* the iteration begins anew, by another plan */
	int64_t rerun_us; /* when microbatches were told to run again, until one starts; 0 */
	uint64_t recovery_plan; /* the request for a plan without who died last; 0 answered */
	struct prediction_record record;
	struct receipt receipt;

	/* What happened. */
	struct curves curves;
	struct journal journal;
	struct fault *faults;
	uint32_t n_faults;
	size_t room_faults;
	uint32_t first_fault; /* ids go on from an earlier controller's: faults[i] has
				 first_fault + i + 1 */

	/* Operators. */
	struct stream stream;
	struct operators operators;
	struct json_t *drill; /* drill.c: the acts so far; NULL none */
};

#endif
