/* protocol_test.c - explores a model of the iteration's protocol with faults in all possible
 * orders. */

#include <string.h>

#include "base/tests/test.h"
#include "controller/tests/explore.h"

/* ---- with all rules, no property is violated ---- */

static void explore_without_faults(const struct protocol *p)
{
	struct explored e = explore(p, stderr);

	print_message("%d nodes, %d deaths: %llu states\n", p->nodes, p->deaths,
		      (unsigned long long)e.states);
	if (e.wrong)
		fail_msg("%s: its trace is above", e.wrong);
	assert_true(e.ended > 0);
}

TEST(through_deaths_sums_and_takeovers)
{
	struct protocol p = protocol_of(2, 2);

	p.deaths -= SLOW;
	explore_without_faults(&p);
}

TEST(two_controllers_die)
{
	struct protocol p = protocol_of(2, 2);

	p.deaths = 2 - SLOW;
	p.takeovers = 2;
	explore_without_faults(&p);
}

/* The second stage has an additional replica, which no microbatch visits but which takes part in
 * the sums. */
TEST(one_replica_is_idle)
{
	struct protocol p = protocol_of(2, 2);

	p.stage_of[p.nodes++] = 1;
	p.deaths = 2 - SLOW;
	explore_without_faults(&p);
}

TEST(one_stage_only_passes_on)
{
	struct protocol p = protocol_of(3, 2);

	p.deaths = 1;
	explore_without_faults(&p);
}

TEST(one_node_joins)
{
	struct protocol p = protocol_of(2, 2);

	p.absent = 1 << 3;
	p.deaths = 2;
	explore_without_faults(&p);
	p.absent |= 1 << 0;
	p.deaths = 3 - SLOW;
	p.takeovers = p.wrongs = 0;
	explore_without_faults(&p);
}

TEST(stages_sum_early)
{
	struct protocol p = protocol_of(2, 2);

	p.deaths = 2 - SLOW;
	p.overlap = true;
	explore_without_faults(&p);
}

TEST(sums_are_ordered_ahead)
{
	struct protocol p = protocol_of(2, 2);

	p.deaths = 2 - SLOW;
	p.ahead = true;
	explore_without_faults(&p);
}

/* The operator changes the format before and during the iteration. */
static struct protocol with_formats(bool fresh)
{
	struct protocol p = protocol_of(2, 2);

	p.fresh = fresh;
	p.changes = 1;
	p.deaths = 1;
	p.wrongs = 0;
	return p;
}

TEST(an_iteration_has_one_format)
{
	for (int fresh = 0; fresh < 2; fresh++) {
		struct protocol p = with_formats(fresh);

		p.takeovers = 2 - SLOW;
		explore_without_faults(&p);
		p.ahead = true;
		p.takeovers = 1;
		explore_without_faults(&p);
	}
}

enum { BOTH = 1 << 2 | 1 << 3 };

/* No microbatch visits the second stage yet, and it starts from the first stage. have_copies: the
 * nodes of the second stage that have a copy in the beginning. */
static struct protocol with_stacking(uint8_t have_copies)
{
	struct protocol p = protocol_of(2, 2);

	p.always = p.path[0] = p.path[1] = 1;
	p.have_copies = have_copies;
	p.deaths = 2 - SLOW;
	return p;
}

TEST(a_stage_starts_from_its_source)
{
	struct protocol p = with_stacking(BOTH);

	explore_without_faults(&p);
	p.absent = 1 << 1;
	p.deaths = 1;
	p.overlap = true;
	explore_without_faults(&p);
}

TEST(a_stage_waits_for_copies_of_its_source)
{
	struct protocol p = with_stacking(1 << 2);

	explore_without_faults(&p);
	p.deaths = 1;
	p.entered = true;
	explore_without_faults(&p);
	p.entered = false;
	p.absent = 1 << 3;
	p.ahead = true;
	explore_without_faults(&p);
}

enum { SECOND_MOVES = 1, TWO_SWAP, ALL_SWAP };

/* Nodes move to the other stage after the iteration. SECOND_MOVES: the second node; TWO_SWAP: also
 * the fourth node; ALL_SWAP: all nodes. have_copies: the nodes that have their copies in the
 * beginning. */
static struct protocol with_moves(int moves, uint8_t have_copies)
{
	struct protocol p = protocol_of(2, 2);

	p.to[1] = 2;
	p.to[3] = moves >= TWO_SWAP;
	p.to[0] = moves == ALL_SWAP ? 2 : 0;
	p.to[2] = moves == ALL_SWAP;
	p.have_copies = have_copies;
	p.deaths = 1;
	p.wrongs = 0;
	return p;
}

TEST(nodes_exchange_their_stages)
{
	struct protocol p = with_moves(TWO_SWAP, 1 << 1 | 1 << 3);

	p.wrongs = 1;
	p.ahead = true;
	explore_without_faults(&p);
	p = with_moves(SECOND_MOVES, 1 << 1);
	p.deaths = 2 - SLOW;
	explore_without_faults(&p);
	p.deaths = 1;
	p.takeovers = 2;
	explore_without_faults(&p);
}

TEST(nodes_with_copies_do_not_wait_for_the_others)
{
	struct protocol p = with_moves(TWO_SWAP, 1 << 1);

	explore_without_faults(&p);
	p = with_moves(ALL_SWAP, 15);
	p.takeovers = 0;
	p.absent = 1 << 3;
	explore_without_faults(&p);
}

/* The operator may order other stages, at any time. */
static struct protocol with_cut(uint8_t absent, int deaths, int takeovers)
{
	struct protocol p = protocol_of(2, 2);

	p.cuts = true;
	p.absent = absent;
	p.deaths = deaths;
	p.wrongs = 0;
	p.takeovers = takeovers;
	return p;
}

TEST(stages_change)
{
	struct protocol p = with_cut(0, 2 - SLOW, 1);

	explore_without_faults(&p);
	p = with_cut(0, 1 - SLOW, 2);
	explore_without_faults(&p);
	p = with_cut(1 << 3, 1, 1);
	explore_without_faults(&p);
}

/* ---- without a rule, a violation is found ---- */

static void is_found(const struct protocol *p, const char *wrong)
{
	struct explored e = explore(p, NULL);

	if (!e.wrong || strcmp(e.wrong, wrong) != 0)
		fail_msg("\"%s\" instead of \"%s\"", e.wrong ? e.wrong : "nothing", wrong);
}

/* Returns a small cluster. The numbers limit how many faults of each kind may happen in it. */
static struct protocol small(uint8_t absent, int deaths, int wrongs, int takeovers)
{
	struct protocol p = protocol_of(2, 2);

	p.absent = absent;
	p.deaths = deaths;
	p.wrongs = wrongs;
	p.takeovers = takeovers;
	explore_without_faults(&p);
	return p;
}

/* Switches off two rules, the reruns and the sums after a stall. The violation is found only if
 * both rules are off. */
static struct protocol without_reruns(int deaths, int wrongs, bool audits_hops)
{
	struct protocol p = small(0, deaths, wrongs, 0);

	p.rules &= ~(P_RERUN_DEAD | P_SUM_AFTER_STALL);
	if (!audits_hops)
		p.rules &= ~P_AUDIT_HOPS;
	return p;
}

TEST(a_commit_without_the_dead_is_found)
{
	struct protocol differ = without_reruns(1, 1, false),
			another_dies = without_reruns(2, 0, false);

	is_found(&differ, "the commit lacks a gradient");
	is_found(&another_dies, "the commit lacks a gradient");
}

TEST(the_audit_finds_a_missing_gradient)
{
	struct protocol differ = without_reruns(1, 1, true),
			another_dies = without_reruns(2, 0, true);

	is_found(&differ, "the run ends by its own audit");
	is_found(&another_dies, "the run ends by its own audit");
}

TEST(a_stall_without_a_sum_is_found)
{
	struct protocol p = small(0, 2, 0, 0);

	p.rules &= ~P_SUM_AFTER_STALL;
	is_found(&p, "it cannot end");
}

TEST(lost_reports_of_a_node_believed_dead_are_found)
{
	struct protocol p = small(1 << 0 | 1 << 3, 2, 0, 0);

	p.rules &= ~P_HEED_DROPPED;
	is_found(&p, "who is honest is left out: it left a gradient out");
}

TEST(missed_routes_are_found)
{
	struct protocol p = small(1 << 3, 3, 0, 0);

	p.rules &= ~P_REPEAT_ROUTES;
	is_found(&p, "it cannot end");
}

/* Two nodes of a stage reported the same sum. The third node, which was believed dead, has another
 * sum. After a takeover it applies the commit with its own sum. The comparison of hashes must find
 * this. */
TEST(other_weights_after_a_takeover_are_found)
{
	struct protocol p = protocol_of(2, 3);

	p.absent = 1 << 5;
	p.deaths = p.wrongs = p.takeovers = 1;
	explore_without_faults(&p);
	p.rules &= ~P_COMPARE_HASHES;
	is_found(&p, "two of a stage apply different commits");
}

TEST(gradients_of_the_previous_attempt_are_found)
{
	struct protocol p = small(0, 0, 0, 1);

	p.rules &= ~P_START_AT_ZERO;
	is_found(&p, "who is honest is left out: it counted what is not its own");
}

TEST(another_format_after_a_restart_is_found)
{
	static const char other[] = "who is honest is left out: its tensor has another format";
	struct protocol p = with_formats(false);

	p.rules &= ~P_KEEP_FORMAT;
	is_found(&p, other);
	p = with_formats(true);
	p.changes = 0;
	explore_without_faults(&p);
	p.rules &= ~P_STORE_FORMAT;
	is_found(&p, other);
}

TEST(sums_that_owners_do_not_decode_are_found)
{
	/* Two nodes have the sum: in `replicas` two replicas, in `copy` a replica and a standby
	 * copy. */
	struct protocol replicas = small(0, 0, 0, 0), copy = small(1 << 1 | 1 << 3, 0, 0, 0);

	replicas.rules &= ~P_DECODE_OWN;
	is_found(&replicas, "it cannot end");
	copy.rules &= ~P_DECODE_OWN;
	is_found(&copy, "it cannot end");
}

/* Checks that a violation is found if one rule for stages that start from trained stages is
 * switched off. */
static void is_found_stacking(struct protocol p, int rule, const char *wrong)
{
	p.deaths = 1;
	p.wrongs = 0;
	explore_without_faults(&p);
	p.rules &= ~rule;
	is_found(&p, wrong);
}

TEST(layers_of_another_commit_are_found)
{
	is_found_stacking(with_stacking(BOTH), P_AWAIT_COPY_STEP,
			  "a stage starts from another commit of its source");
}

TEST(layers_of_an_incomplete_copy_are_found)
{
	static const char lacks[] = "a node lacks the copy whose layers it should take";

	is_found_stacking(with_stacking(1 << 2), P_NEED_WHOLE_COPY, lacks);
	is_found_stacking(with_stacking(BOTH), P_DROP_WITHOUT_COPY, lacks);
}

TEST(copies_of_the_old_layers_are_found)
{
	struct protocol p = with_stacking(1 << 2);

	p.absent = 1 << 3;
	is_found_stacking(p, P_VOID_COPIES, "a copy has other layers than its stage");
}

TEST(a_start_that_is_not_recorded_is_found)
{
	is_found_stacking(with_stacking(BOTH), P_RECORD_STACK,
			  "two of a stage apply different commits");
}

static void is_found_moving(struct protocol p, int rule, const char *wrong)
{
	explore_without_faults(&p);
	p.rules &= ~rule;
	is_found(&p, wrong);
}

TEST(a_move_without_a_complete_copy_is_found)
{
	is_found_moving(with_moves(TWO_SWAP, 1 << 1), P_LIST_WHOLE_COPIES,
			"a node lacks the copy that it should load");
}

TEST(a_stage_that_all_replicas_leave_is_found)
{
	static const char only[] = "a stage exists only in copies";
	struct protocol p = with_moves(ALL_SWAP, 15);

	is_found_moving(with_moves(TWO_SWAP, 1 << 1 | 1 << 3), P_CHECK_LISTED, only);
	p.takeovers = 0;
	is_found_moving(p, P_KEEP_STAYERS, only);
}

TEST(copies_of_the_previous_commit_are_found)
{
	is_found_moving(with_moves(TWO_SWAP, 1 << 1 | 1 << 3), P_AWAIT_LISTED,
			"a node loads weights of another iteration");
}

TEST(copies_that_no_controller_uses_are_found)
{
	is_found_moving(with_moves(TWO_SWAP, 1 << 1 | 1 << 3), P_LOAD_REPORTED,
			"it cannot end");
}

static void is_found_recutting(uint8_t absent, int takeovers, int rule, const char *wrong)
{
	struct protocol p = with_cut(absent, 0, takeovers);

	explore_without_faults(&p);
	p.rules &= ~rule;
	is_found(&p, wrong);
}

TEST(stages_of_another_commit_are_found)
{
	is_found_recutting(0, 0, P_SAVE_LAST, "the new stages have weights of another commit");
}

TEST(files_that_a_change_lacks_are_found)
{
	is_found_recutting(0, 1, P_FILES_FIRST, "it cannot end");
	is_found_recutting(0, 1, P_SETTLE_FILES, "it cannot end");
}

TEST(weights_of_the_former_stages_are_found)
{
	is_found_recutting(0, 0, P_NEW_IDENTITY, "a node begins with a stage of the former cut");
}
