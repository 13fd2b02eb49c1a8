/* resume.c - resumes a run whose controller ended, or died at any moment.
 *
 * The store says which iterations were committed, and agents report the weights that they hold. An
 * agent that holds the last commit continues with its weights. An agent that holds the sum of the
 * last commit, but missed the announcement of the commit, receives the announcement again. All
 * other agents fetch the weights from these two kinds of agents.
 *
 * The iteration under way restarts. Its attempts have higher numbers than all earlier attempts, so
 * that messages of earlier attempts can be recognised as old. The store refuses writes with an
 * earlier controller's epoch. An earlier controller that was only suspended can therefore not
 * continue the run while this controller does. */
#include "controller/joining/resume.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "controller/iteration/plan_message.h"
#include "controller/members/member.h"
#include "controller/members/saved_state.h"
#include "controller/network/formats.h"
#include "controller/run/journal.h"
#include "controller/run/rates.h"
#include "controller/run/record.h"
#include "controller/weights/assign.h"
#include "controller/weights/copies.h"
#include "controller/weights/restore.h"
#include "controller/weights/backups.h"
#include "model/hash.h"

/* How many attempt numbers one controller of a run may use. Each of the first CONTROLLERS
 * controllers may use ATTEMPTS numbers, and each later controller ATTEMPTS_LATER numbers. A run
 * with more than CONTROLLERS controllers has controllers that die early and therefore need fewer
 * numbers. */
enum { ATTEMPTS = 1 << 16, ATTEMPTS_LATER = 1 << 9, CONTROLLERS = 1 << 13 };

int resume_numbers(uint64_t generation, uint32_t *first)
{
	uint64_t early = generation <= CONTROLLERS ? generation : CONTROLLERS;
	uint64_t n = early * ATTEMPTS + (generation - early) * ATTEMPTS_LATER;

	/* Agents and records accept no attempt above 2^30. */
	if (generation > INT32_MAX || n > (1u << 30))
		return -ERANGE;
	*first = (uint32_t)n;
	return 0;
}

static bool changes_options(const struct options *o)
{
	return memchr(o->changed, true, sizeof(o->changed)) != NULL;
}

/* ---- past iterations, for consoles ---- */

static int load_commit(void *context, const struct store_commit *s)
{
	struct run *run = context;
	struct msg_see_iteration see = {
		.iteration = s->iteration,
		.epoch = s->epoch,
		.loss = s->loss,
		.iteration_s = (float)s->iteration_s,
		.predicted_s = (float)s->predicted_s,
		.sync_s = (float)s->sync_s,
		.real_s = (float)s->real_s,
		.collisions = s->collisions.n,
		.wait_s = (float)s->collisions.wait_s,
		.gradient_norm = (float)s->gradient_norm,
		.lr = s->lr,
		.alive = s->alive,
		.path_length = s->path_length,
		.rerun = s->repeats.rerun,
		.at_us = run->now_us,
		.wall_us = s->wall_us,
		.wire = (uint8_t)s->formats.wire,
		.sum_wire = (uint8_t)s->formats.sum_wire,
	};

	record_keep(run, &see);
	run->training.skipped = s->repeats.skipped;
	run->last_commit = (struct msg_commit){
		.iteration = s->iteration,
		.attempt = s->attempt,
		.scale = s->scale,
		.lr = s->lr,
		.beta1 = s->beta1,
		.beta2 = s->beta2,
		.eps = s->eps,
		.weight_decay = s->weight_decay,
		.stack_from = s->stack_from,
		.visits = s->visits,
	};
	return 0;
}

static int load_validation(void *context, const struct store_validation *v)
{
	struct run *run = context;
	struct msg_see_validation see = { v->iteration, (float)v->loss, 0 };

	record_keep_validation(run, &see);
	return 0;
}

static int load_plan(void *context, const struct store_plan *p)
{
	struct run *run = context;

	record_plan_file(run, p->epoch, p->plan);
	fill_planned(run->record.curves.iterations, run->record.curves.n_iterations, p);
	if (p->epoch > run->epoch)
		run->epoch = p->epoch;
	return 0;
}

/* Loads the newest plan, and the rows that consoles receive. The number of these rows is limited,
 * so that a long run resumes as quickly as a short one. */
static int load_newest(struct run *run, struct error *err)
{
	uint64_t from = run->committed > KEPT_CURVE ? run->committed - KEPT_CURVE + 1 : 1;
	const struct curves *curves = &run->record.curves;
	int rc = store_each_commit(run->record.store, from, run->committed, load_commit, run, err);

	if (rc == 0)
		rc = store_each_validation(run->record.store, load_validation, run, err);
	if (rc == 0)
		rc = store_each_plan(run->record.store,
				     curves->n_iterations ? curves->iterations[0].epoch : 0,
				     load_plan, run, err);
	if (rc == 0)
		rc = store_last_note(run->record.store, &run->journal.last, err);
	return rc;
}

static int take_last(void *context, const struct store_restore *r)
{
	uint64_t *last = context;

	if (r->last > *last)
		*last = r->last;
	return 0;
}

/* Returns the highest number at the beginning of a file name in this subfolder of the run; 0: no
 * name begins with a number. inside: only folders that contain a file named `inside` count; "": all
 * names count. */
static uint64_t highest_number(const struct run *run, const char *subfolder, const char *inside)
{
	char path[PATH_MAX];
	uint64_t highest = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", run->options.run_dir, subfolder);
	d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		char folder[2 * PATH_MAX];
		uint64_t number = strtoull(e->d_name, NULL, 10);

		snprintf(folder, sizeof(folder), "%s/%s", path, e->d_name);
		if (number > highest && (!*inside || file_exists(folder, inside)))
			highest = number;
	}
	if (d)
		closedir(d);
	return highest;
}

/* The controller writes the row of a plan or of a checkpoint before the files. If the run has files
 * that are newer than the newest row, rows have been lost, and this function warns. The newest rows
 * are in run.db-wal until the controller ends. If somebody deletes this file, or copies the record
 * without it, SQLite reports no error. */
static void warn_of_lost_rows(struct run *run)
{
	/* After a return to a checkpoint, checkpoints of later commits may still exist without
	 * rows. `last` therefore becomes the highest iteration that was ever committed. */
	uint64_t last = run->committed;
	uint64_t plan = highest_number(run, "plans", ""),
		 checkpoint = highest_number(run, "checkpoints", "manifest.json");

	store_each_restore(run->record.store, take_last, &last, NULL);
	if (plan <= run->epoch && checkpoint <= last)
		return;
	note(run, NOTE_ALERT, -1, 0,
	     "%.80s/run.db has lost its newest rows: it ends at it%llu and plan %llu, but the "
	     "folder has %s %llu. Was run.db-wal deleted, or not copied?",
	     run->options.run_dir, (unsigned long long)run->committed,
	     (unsigned long long)run->epoch,
	     checkpoint > last ? "a checkpoint of iteration" : "plan",
	     (unsigned long long)(checkpoint > last ? checkpoint : plan));
}

/* Marks the nodes whose gradients are in the last commit. The resumed run waits for these nodes
 * before it starts. */
static int load_awaited(struct members *members, struct error *err)
{
	struct store_commit last;
	int rc;

	for (uint32_t i = 0; i < members->n; i++)
		members->list[i].is_awaited = members->run->committed == 0;
	if (members->run->committed == 0)
		return 0;
	rc = store_read_commit(members->run->record.store, members->run->committed, &last, err);
	if (rc != 0)
		return rc;
	for (size_t r = 0; r < last.n_reductions; r++)
		for (size_t i = 0; i < last.reductions[r].n_nodes; i++)
			if (last.reductions[r].nodes[i] < members->n)
				members->list[last.reductions[r].nodes[i]].is_awaited = true;
	store_commit_clear(&last);
	return 0;
}

/* Refuses a run that was recorded with another hash function, because the recorded hashes cannot be
 * compared with those of this build and its agents. */
static int check_hash(const struct run *run, struct error *err)
{
	const struct store_run *row = store_run_of(run->record.store);

	if (strcmp(row->hash, HASH_NAME) == 0)
		return 0;
	return error_set(err, -EPROTONOSUPPORT,
			 "%s: the run's hashes are %s, this program's " HASH_NAME
			 ": resume it with the build that began it (version %s)",
			 run->options.run_dir, row->hash, row->version);
}

/* Marks the acts of --at that an earlier controller has carried out. If the record has one act of
 * the next iteration, all acts of that iteration are marked, because a controller carries them out
 * together. */
static int mark_done_acts(struct run *run, struct error *err)
{
	uint64_t last;
	int rc = store_last_scripted(run->record.store, &last, err);

	for (uint32_t i = 0; rc == 0 && i < run->options.n_acts; i++)
		run->options.acts[i].done = run->options.acts[i].iteration <= run->committed ||
					    run->options.acts[i].iteration <= last;
	return rc;
}

int resume_begin(struct backups *backups, struct error *err)
{
	struct run *run = backups->run;
	struct members *members = backups->members;
	struct tensor_formats formats;
	uint64_t generation = store_writer_epoch(run->record.store) - 1;
	int rc = check_hash(run, err);

	if (rc == 0)
		rc = record_folder(run, err);
	if (rc != 0)
		return rc;
	rc = resume_load(members, &formats, err);
	if (rc == -ENOENT) { /* the earlier controller died before it assigned any stage */
		rc = load_newest(run, err);
		warn_of_lost_rows(run);
		note(run, NOTE_EVENT, -1, 0, "the run had not started: it starts now");
		return rc;
	}
	if (rc == 0)
		formats_apply(members, &formats);
	if (rc == 0)
		rc = store_last_commit(run->record.store, &run->committed, err);
	if (rc == 0)
		rc = load_newest(run, err);
	if (rc == 0)
		rc = load_awaited(members, err);
	if (rc != 0)
		return rc;
	rc = mark_done_acts(run, err);
	if (rc != 0)
		return rc;
	run->training.corpus_hash = store_run_of(run->record.store)->corpus_hash;
	run->resumed = true;
	run->iteration = run->committed + 1;
	backups->saving.last = backups->saving.complete = restore_newest(run, UINT64_MAX);
	backups->saving.before_last = restore_newest(run, backups->saving.last);
	if (resume_numbers(generation, &run->first_attempt) != 0)
		return error_set(err, -ERANGE,
				 "%s: the run was resumed %llu times: no attempt numbers are left",
				 run->options.run_dir, (unsigned long long)generation);
	members->assignments = generation << 32;
	run->faults.first = run->first_attempt;
	warn_of_lost_rows(run);
	note(run, NOTE_EVENT, -1, 0, "the run was resumed after it%llu (controller %llu)",
	     (unsigned long long)run->committed, (unsigned long long)generation + 1);
	if (run->wanted.pause)
		note(run, NOTE_EVENT, -1, 0,
		     "the run is still paused: :resume in a console continues it");
	if (!changes_options(&run->options))
		return 0;
	if (run->options.changed[CHANGE_ITERATIONS])
		rates_change_length(run);
	note(run, NOTE_EVENT, -1, 0,
	     "options changed: iterations %llu, validations every %u, of %u, checkpoints every %u, "
	     "at most %u bad steps skipped; silence %g s, overdue %g s, plans ahead %g s",
	     (unsigned long long)run->options.iterations, run->options.eval_every,
	     run->options.eval_batches, run->options.checkpoint_every, run->options.skip_bad_steps,
	     (double)run->options.limits.silence_us * 1e-6,
	     (double)run->options.limits.overdue_us * 1e-6, run->options.planning.ahead_s);
	return resume_save(members);
}

/* ---- returning agents ---- */

/* Returns true if the weights are from the last commit or from the commit before it. Weights of a
 * later iteration are useless, because the run went back to a checkpoint and computes that
 * iteration again. */
static bool is_last_or_before(const struct run *run, uint64_t iteration)
{
	return iteration == run->committed || iteration + 1 == run->committed;
}

/* Takes over the standby copy that the agent reports. Drops a copy that is too old, or newer than
 * the last commit. */
static void take_copy(struct members *members, struct member *m)
{
	const struct msg_hello *h = &m->hello;

	if (h->keeps >= members->run->cluster->n_stages)
		return;
	m->copy.stage = h->keeps;
	if (!is_last_or_before(members->run, h->kept)) {
		copies_release(members, m);
		return;
	}
	copies_complete(m, h->kept, h->kept_hash);
	m->copy.purpose = members->run->wanted.stack ? COPY_FOR_STACKING : COPY_FOR_SAFETY;
}

/* Announces the last commit again to an agent whose weights or standby copy may lack the commit. An
 * agent that still holds the sum applies the commit and answers MSG_COMMITTED.
 * Once an iteration runs, nothing is sent, because another node may have restored the stage
 * meanwhile. */
static void resend_commit(struct run *run, struct member *m)
{
	struct msg commit = { .type = MSG_COMMIT, .u.commit = run->last_commit };
	bool copy = m->copy.state != COPY_FETCHING && m->copy.iterations < run->committed;
	bool is_waiting = run->phase == PHASE_GATHERING || run->phase == PHASE_STALLED;

	if (!is_waiting || run->last_commit.iteration != run->committed ||
	    (m->hello.committed + 1 != run->committed && !copy) ||
	    member_send(run, m, &commit) != 0)
		return;
	m->weights.last_commit_sent = run->committed;
	m->copy.last_commit_sent = copy ? run->committed : 0;
}

void resume_member(struct members *members, struct member *m)
{
	const struct msg_hello *h = &m->hello;
	bool gathering = members->run->phase == PHASE_GATHERING;

	if (!members->run->resumed)
		return;
	if (gathering && members->run->committed == 0 &&
	    (h->run != members->run->id || h->stage != member_stage(members->run, m))) {
		/* No iteration is committed, so the agent starts from the weights made from the
		 * seed. */
		members_assign(members, m, member_stage(members->run, m), false);
		return;
	}
	if (h->run != members->run->id)
		return;
	take_copy(members, m);
	resend_commit(members->run, m);
	if (!h->hash || h->committed > members->run->committed)
		return;
	m->weights.stage = h->stage;
	m->weights.iterations = h->committed;
	m->checkpoint.unready_us = members->run->now_us;
	if (!gathering || h->committed != members->run->committed ||
	    h->stage != member_stage(members->run, m))
		return;
	member_apply(members->run, m, EVENT_HOLDS, NULL);
	m->assigned.number = 0;
	m->weights.hash = h->hash;
	m->weights.hash_agrees = true;
}
