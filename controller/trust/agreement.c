/* agreement.c - compares what all replicas of a stage must have in common: weights and sums, and
 * for data nodes the corpus.
 *
 * After a commit, every replica reports the hash of its weights. All replicas of a stage started
 * from the same weights and added the same sum. If a replica has another hash, a bit of its weights
 * has flipped. The weights of the majority count as correct. A replica that differs is dropped like
 * a dead node, and rejoins once it has fetched the correct weights. A replica that differs a second
 * time is excluded.
 *
 * A dropped replica has computed its part of the iteration under way with wrong weights, and other
 * nodes may have used its results. The iteration therefore restarts. A replica reports its hash
 * before its next sum, so no sum with wrong weights is ever committed.
 *
 * If only two replicas report, and they differ, one of them is dropped. The stage is then
 * consistent again, and `skippipe verify` shows whether the remaining replica has wrong weights.
 * After a controller restart, the hashes recorded for the last commit vote too. */
#include "controller/trust/agreement.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/members/finish.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/run/journal.h"
#include "controller/run/record.h"
#include "controller/trust/exclude.h"
#include "controller/weights/copies.h"
#include "controller/weights/first_weights.h"

enum { DIFFERED_FOR = 200 /* number of iterations after which a difference is forgotten */ };

/* The hashes that nodes report for one stage's weights, and how many nodes report each. */
struct votes {
	uint64_t hash[2 * MSG_NODES];
	uint32_t n, of[2 * MSG_NODES];
	int stage;
	/* the iteration after which nodes computed these hashes of their weights */
	uint64_t iteration;
};

static void vote_for(struct votes *v, uint64_t hash)
{
	uint32_t i = 0;

	while (i < v->n && v->hash[i] != hash)
		i++;
	if (i == 2 * MSG_NODES || hash == 0)
		return;
	if (i == v->n)
		v->of[v->n++] = 0;
	v->hash[i] = hash;
	v->of[i]++;
}

static uint32_t votes_for(const struct votes *v, uint64_t hash)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (v->hash[i] == hash)
			return v->of[i];
	return 0;
}

static bool reports_hash(const struct run *run, const struct member *m, int stage)
{
	return member_is_replica(m) && member_stage(run, m) == stage &&
	       m->weights.iterations == run->committed && m->weights.hash != 0;
}

/* Counts, for each hash of the stage's weights, the replicas and the standby copies that report
 * it. */
static struct votes count_votes(const struct members *members, int stage)
{
	struct votes v = { .n = 0, .stage = stage };

	for (uint32_t i = 0; i < members->n; i++)
		if (reports_hash(members->run, &members->list[i], stage))
			vote_for(&v, members->list[i].weights.hash);
	for (uint32_t i = 0; i < members->n; i++)
		if (copy_usable(members->run, &members->list[i], stage))
			vote_for(&v, members->list[i].copy.hash);
	return v;
}

/* Returns true if more nodes report the hash of m's weights than report that of `best`. On a tie
 * the lower node number wins, because the caller visits nodes in ascending order. */
static bool is_better(const struct votes *v, const struct member *m, const struct member *best)
{
	return !best || votes_for(v, m->weights.hash) > votes_for(v, best->weights.hash);
}

static struct member *best_of(struct members *members, const struct votes *v)
{
	struct member *best = NULL;

	for (uint32_t i = 0; i < members->n; i++)
		if (reports_hash(members->run, &members->list[i], v->stage) &&
		    is_better(v, &members->list[i], best))
			best = &members->list[i];
	return best;
}

static void forget_hash(struct run *run, const struct member *m)
{
	record_forget_hash(run, m->id, (uint8_t)member_stage(run, m), run->committed,
			   m->weights.hash);
}

static void set_apart(struct members *members, struct member *m)
{
	bool again = m->weights.differed_in > 0 &&
		     m->weights.differed_in + DIFFERED_FOR > members->run->iteration;
	bool under_way = members->run->phase == PHASE_COMPUTING ||
			 members->run->phase == PHASE_REDUCING ||
			 members->run->phase == PHASE_STALLED;

	m->weights.hash_agrees = false;
	m->weights.differ = true;
	m->weights.differed_in = members->run->iteration;
	forget_hash(members->run, m);
	if (again)
		exclude_member(members, m, "holds other weights again");
	else
		member_apply(members->run, m, EVENT_LOST, "holds other weights than its stage");
	if (under_way)
		request_restart(&members->run->requests, "a node held other weights");
}

/* Returns true if the winner is certain: every replica has reported, or the missing replicas could
 * not outvote it. */
static bool is_settled(const struct members *members, const struct votes *v, uint64_t hash)
{
	uint32_t missing = 0, others = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		missing += member_is_replica(m) && member_stage(members->run, m) == v->stage &&
			   !reports_hash(members->run, m, v->stage);
	}
	for (uint32_t i = 0; i < v->n; i++)
		if (v->hash[i] != hash && v->of[i] > others)
			others = v->of[i];
	return missing == 0 || votes_for(v, hash) > others + missing;
}

/* Checks the standby copies again, because a copy's hash may have been reported before the hash
 * of the stage was known. */
static void check_copies(struct members *members, int stage)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (copy_usable(members->run, &members->list[i], stage) &&
		    members->list[i].copy.hash)
			copies_check_hash(members, &members->list[i], members->run->committed,
					  members->list[i].copy.hash);
}

void agreement_check_hash(struct members *members, const struct member *reporter)
{
	int stage = member_stage(members->run, reporter);
	struct votes v = count_votes(members, stage);
	struct member *best = best_of(members, &v);

	if (!best || !is_settled(members, &v, best->weights.hash))
		return;
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (!reports_hash(members->run, m, stage) || m->weights.hash == best->weights.hash)
			continue;
		note(members->run, NOTE_ALERT, m->id, 0,
		     "n%02u and n%02u of S%d hold different weights after it%" PRIu64
		     ": n%02u is dropped",
		     m->id, best->id, stage, members->run->committed, m->id);
		set_apart(members, m);
	}
	check_copies(members, stage);
}

void agreement_check_copies(struct members *members)
{
	for (int s = 0; s < members->run->cluster->n_stages; s++)
		check_copies(members, s);
}

bool agreement_check_joiner(struct members *members, struct member *m)
{
	uint64_t right =
		members->run->committed > 0
			? copies_hash(members, member_stage(members->run, m), m->weights.iterations)
			: 0;

	if (member_is_restoring(m) || right == 0 || right == m->weights.hash)
		return true;
	note(members->run, NOTE_ALERT, m->id, 0,
	     "n%02u loaded weights of S%d that differ from those after it%" PRIu64, m->id,
	     member_stage(members->run, m), m->weights.iterations);
	m->weights.differ = true;
	m->weights.hash_agrees = false;
	record_forget_hash(members->run, m->id, (uint8_t)member_stage(members->run, m),
			   m->weights.iterations, m->weights.hash);
	member_apply(members->run, m, EVENT_WAIT, "holds other weights than its stage");
	/* m loaded its weights from this copy, so the copy is wrong, too */
	if (m->copy.stage == member_stage(members->run, m))
		copies_fetch_again(members, m);
	return false;
}

void agreement_weights_changed(struct members *members, struct member *m)
{
	note(members->run, NOTE_ALERT, m->id, 0, "n%02u: the weights changed outside a commit",
	     m->id);
	m->weights.hash_agrees = false;
	if (stage_replicas(members, member_stage(members->run, m), m) > 0)
		set_apart(members, m);
}

/* ---- before the run begins or continues ---- */

static bool is_ready_to_start(const struct member *m)
{
	return member_is_ready(m) && !m->is_marked;
}

static int count_stored(void *context, const struct store_hash *h)
{
	struct votes *v = context;

	if (h->stage == v->stage)
		vote_for(v, h->hash);
	return 0;
}

/* The hashes that were recorded for a stage before it was restored do not count any more. */
static int count_restored(void *context, const struct store_restore *r)
{
	struct votes *v = context;

	if (r->stage != v->stage || r->iteration != v->iteration)
		return 0;
	v->n = 0;
	vote_for(v, r->hash);
	return 0;
}

/* Counts the hashes that were recorded for the stage after the last commit. */
static struct votes count_recorded(const struct run *run, int stage)
{
	struct votes v = { .n = 0, .stage = stage, .iteration = run->committed };
	struct error err;

	if (run->committed > 0 &&
	    (store_each_hash(run->record.store, run->committed, count_stored, &v, &err) != 0 ||
	     store_each_restore(run->record.store, count_restored, &v, &err) != 0))
		log_line(&run->log, LOG_ERROR, "%s", err.text);
	return v;
}

static struct votes count_ready(const struct members *members, int stage)
{
	struct votes v = { .n = 0, .stage = stage };

	for (uint32_t i = 0; i < members->n; i++)
		if (is_ready_to_start(&members->list[i]) &&
		    member_stage(members->run, &members->list[i]) == stage)
			vote_for(&v, members->list[i].weights.hash);
	return v;
}

bool agreement_record_contradicted(const struct members *members)
{
	for (int s = 0; s < members->run->cluster->n_stages; s++) {
		struct votes ready = count_ready(members, s),
			     recorded = count_recorded(members->run, s);
		bool any = ready.n == 0 || recorded.n == 0;

		for (uint32_t i = 0; i < ready.n; i++)
			any = any || votes_for(&recorded, ready.hash[i]) > 0;
		if (!any)
			return true;
	}
	return false;
}

/* Lets the ready nodes vote, together with the recorded hashes. A ready node whose hash is not that
 * of the majority becomes a joiner and fetches the weights. */
static void agree_stage(struct members *members, int stage)
{
	struct votes v = count_ready(members, stage), recorded;
	const struct member *best = NULL;

	if (v.n < 2)
		return;
	recorded = count_recorded(members->run, stage);
	for (uint32_t i = 0; i < recorded.n; i++)
		for (uint32_t k = 0; k < recorded.of[i]; k++)
			vote_for(&v, recorded.hash[i]);
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (is_ready_to_start(m) && member_stage(members->run, m) == stage &&
		    m->weights.hash != 0 && is_better(&v, m, best))
			best = m;
	}
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (!is_ready_to_start(m) || member_stage(members->run, m) != stage ||
		    m->weights.hash == 0 || m->weights.hash == best->weights.hash)
			continue;
		note(members->run, NOTE_ALERT, m->id, 0,
		     "n%02u holds other weights of it%" PRIu64
		     " than n%02u of S%d and must fetch them again",
		     m->id, members->run->committed, best->id, stage);
		m->weights.hash_agrees = false;
		m->weights.differ = true;
		m->weights.differed_in = members->run->committed + 1;
		forget_hash(members->run, m);
		member_apply(members->run, m, EVENT_WAIT, "holds other weights than its stage");
	}
}

/* Sets the run's corpus to the corpus that most ready data nodes read. The order of joining does
 * not matter. */
static void agree_corpus(struct members *members)
{
	const struct member *best = NULL;
	struct votes v = { .n = 0 };
	struct error err;

	for (uint32_t i = 0; i < members->n; i++)
		if (is_ready_to_start(&members->list[i]) &&
		    member_stage(members->run, &members->list[i]) == 0)
			vote_for(&v, members->list[i].compute.corpus_hash);
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (is_ready_to_start(m) && member_stage(members->run, m) == 0 &&
		    m->compute.corpus_hash != 0 &&
		    (!best || votes_for(&v, m->compute.corpus_hash) >
				      votes_for(&v, best->compute.corpus_hash)))
			best = m;
	}
	if (!best)
		return;
	members->run->training.corpus_hash = best->compute.corpus_hash;
	if (!first_weights_corpus(members->run, &err)) {
		controller_finish(members, 1, err.text);
		return;
	}
	if (store_corpus(members->run->record.store, members->run->training.corpus_hash, &err) !=
	    0)
		log_line(&members->run->log, LOG_ERROR, "%s", err.text);
	for (uint32_t i = 0; i < members->n; i++)
		if (is_ready_to_start(&members->list[i]) &&
		    member_stage(members->run, &members->list[i]) == 0)
			agreement_check_corpus(members, &members->list[i]);
}

bool agreement_check_corpus(struct members *members, struct member *m)
{
	if (members->run->training.corpus_hash == 0 ||
	    m->compute.corpus_hash == members->run->training.corpus_hash)
		return true;
	note(members->run, NOTE_ALERT, m->id, 0,
	     "n%02u reads another corpus than the run and cannot join; to train on another "
	     "corpus, begin a run with --from and --new-corpus",
	     m->id);
	member_mark(members, m, true);
	member_apply(members->run, m, EVENT_MARK, "its corpus differs");
	return false;
}

void agreement_before_start(struct members *members)
{
	if (members->run->training.corpus_hash == 0)
		agree_corpus(members);
	for (int s = 0; s < members->run->cluster->n_stages; s++)
		agree_stage(members, s);
}

/* ---- sums ---- */

/* A sum of the stage as one node reports it. */
struct sum_report {
	struct member *m;
	const struct reported_sum *sum;
	bool copy; /* true: the node keeps a copy of the stage; false: the node is a replica */
};

bool agreement_same_sum(const struct reported_sum *a, const struct reported_sum *b)
{
	return memcmp(&a->squares, &b->squares, sizeof(double)) == 0 && a->n == b->n &&
	       (a->n == 0 || memcmp(a->slices, b->slices, a->n * sizeof(*a->slices)) == 0);
}

/* Collects replicas before standby copies, so that a replica's sum wins a tie. */
static uint32_t collect_sums(struct members *members, int stage, struct sum_report *reports)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (member_is_replica(m) && member_stage(members->run, m) == stage)
			reports[n++] = (struct sum_report){ m, &m->sum.reported, false };
	}
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (copies_awaited(m) && m->copy.stage == stage)
			reports[n++] = (struct sum_report){ m, &m->copy.sum, true };
	}
	return n;
}

/* Returns the sum that most nodes report; the first one on a tie. */
static const struct reported_sum *majority_sum(const struct sum_report *reports, uint32_t n)
{
	const struct reported_sum *best = NULL;
	uint32_t most = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t same = 0;

		for (uint32_t k = 0; k < n; k++)
			same += agreement_same_sum(reports[i].sum, reports[k].sum);
		if (same > most) {
			best = reports[i].sum;
			most = same;
		}
	}
	return best;
}

void agreement_sums(struct members *members, int stage)
{
	struct sum_report reports[2 * MSG_NODES];
	uint32_t n = collect_sums(members, stage, reports);
	const struct reported_sum *right = majority_sum(reports, n);

	/* The sums restart even if no node is excluded below, because the node with the different
	 * sum may have left. */
	members->run->requests.restart_sums = true;
	for (uint32_t i = 0; i < n; i++) {
		struct member *m = reports[i].m;

		if (agreement_same_sum(reports[i].sum, right))
			continue;
		note(members->run, NOTE_ALERT, m->id, 0,
		     "n%02u has another sum of S%d than the majority: %s is excluded", m->id, stage,
		     reports[i].copy ? "its copy" : "the node");
		if (reports[i].copy)
			copies_refuse(members, m, "its copy had another sum");
		else
			exclude_member(members, m, "has another sum than its stage");
	}
}
