/* checkpoints.c - saves the stages to the nodes' disks, at regular intervals and at the end.
 *
 * A checkpoint is the last resort if a stage loses all replicas and copies. On every machine, one
 * replica of each stage writes the stage's file and reports its hash, which the store records. A
 * checkpoint is complete when every stage has a file. The controller then writes its manifest.
 * Nodes keep the two newest complete checkpoints while they write the next one. Before they
 * write, they delete the files of incomplete checkpoints. Without this deletion, one node that
 * can never write would leave every checkpoint incomplete, and the files of these checkpoints
 * would fill the disks of all other nodes. */
#include "controller/weights/checkpoints.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "controller/members/admission.h"
#include "controller/members/member.h"
#include "controller/run/journal.h"
#include "controller/run/record.h"
#include "controller/weights/first_weights.h"
#include "controller/weights/backups.h"
#include "model/files/checkpoint.h"

/* Returns true if both nodes write to the same disk. Compares the names of hosts and of machines.
 * Machines made from one cloud image can have the same host name. Containers on one machine have
 * separate folders and different host names. */
static bool same_disk(const struct member *a, const struct member *b)
{
	return strcmp(a->hello.host, b->hello.host) == 0 &&
	       strcmp(a->hello.machine, b->hello.machine) == 0;
}

static bool first_of_disk(const struct members *members, const struct member *m)
{
	for (uint32_t i = 0; i < m->id; i++) {
		const struct member *o = &members->list[i];

		if (member_is_replica(o) && o->hello.saves &&
		    member_stage(members->run, o) == member_stage(members->run, m) &&
		    same_disk(o, m))
			return false;
	}
	return true;
}

/* Notes and records that the checkpoint in progress fails. node: the node that could not write; -1:
 * none is known. */
static void report_failure(struct backups *backups, int node, const char *why)
{
	struct checkpoint_failure *f = &backups->saving.failure;

	f->iteration = backups->saving.iteration;
	f->node = node;
	snprintf(f->why, sizeof(f->why), "%.*s", (int)sizeof(f->why) - 1, why);
	journal_make_plain(f->why); /* an agent's text, which may be cut inside a character */
	backups->saving.is_reported = true;
	record_checkpoint(backups->run, f->iteration, f);
}

static void note_if_incomplete(struct backups *backups)
{
	const struct checkpointing *s = &backups->saving;
	const int n_stages = backups->run->cluster->n_stages;
	char why[64];

	if (!s->iteration || s->n_saved >= (uint32_t)n_stages)
		return;
	snprintf(why, sizeof(why), "%u of %d stages were saved", s->n_saved, n_stages);
	note(backups->run, NOTE_WARNING, -1, 0, "the checkpoint of it%llu is incomplete: %s",
	     (unsigned long long)s->iteration, why);
	if (!s->is_reported) /* otherwise the cause was reported already */
		report_failure(backups, -1, why);
}

static void begin_checkpoint(struct backups *backups)
{
	struct checkpointing *s = &backups->saving;
	struct msg save = { .type = MSG_SAVE };
	uint32_t n_asked = 0;

	note_if_incomplete(backups);
	save.u.save = (struct msg_save){ backups->run->committed, s->before_last, s->last };
	*s = (struct checkpointing){ .iteration = backups->run->committed,
				     .last = s->last,
				     .before_last = s->before_last,
				     .complete = s->complete,
				     .position = first_weights_position(backups->run),
				     .failure = s->failure,
				     .asked_us = backups->run->now_us };
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *m = &backups->members->list[i];

		m->checkpoint.saving = 0;
		if (!member_is_replica(m) || !m->hello.saves ||
		    !first_of_disk(backups->members, m) || member_send(backups->run, m, &save) != 0)
			continue;
		m->checkpoint.saving = backups->run->committed;
		m->checkpoint.saving_stage = (uint8_t)member_stage(backups->run, m);
		n_asked++;
	}
	if (n_asked == 0)
		s->iteration = 0; /* no node has a folder for the checkpoint, so it is abandoned */
}

void checkpoint_when_due(struct backups *backups)
{
	if (backups->run->options.checkpoint_every &&
	    backups->run->committed % backups->run->options.checkpoint_every == 0)
		begin_checkpoint(backups);
}

/* Returns true while some node may still be writing. Like reading (restore.c), writing takes up to
 * a microsecond for each parameter. */
static bool being_written(const struct backups *backups)
{
	int64_t most_us = backups->run->options.limits.overdue_us;
	bool any = false;

	for (uint32_t i = 0; i < backups->members->n; i++)
		any = any || (backups->members->list[i].checkpoint.saving &&
			      member_alive(&backups->members->list[i]));
	for (int s = 0; s < backups->run->cluster->n_stages; s++)
		most_us += (int64_t)backups->run->training.stage_parameters[s];
	return any && backups->run->now_us - backups->saving.asked_us < most_us;
}

bool checkpoint_is_there(const struct backups *backups)
{
	return !backups->run->options.checkpoint_every || !backups->run->committed ||
	       backups->saving.last == backups->run->committed;
}

/* Agents write only one checkpoint at a time, so a checkpoint in progress is completed first. */
enum checkpoint_state checkpoint_now(struct backups *backups)
{
	struct checkpointing *s = &backups->saving;

	if (s->last == backups->run->committed)
		return CHECKPOINT_WHOLE;
	if (!being_written(backups)) {
		if (s->iteration == backups->run->committed) {
			note_if_incomplete(backups);
			return CHECKPOINT_FAILED;
		}
		begin_checkpoint(backups);
	}
	return s->iteration != 0 ? CHECKPOINT_WAITS : CHECKPOINT_FAILED;
}

bool checkpoint_last(struct backups *backups)
{
	return backups->saving.awaited = !checkpoint_is_there(backups) &&
					 checkpoint_now(backups) == CHECKPOINT_WAITS;
}

static bool write_manifest(struct backups *backups)
{
	const struct checkpointing *s = &backups->saving;
	struct checkpoint k = {
		.config = backups->run->training.model,
		.hyper = rates_hyperparameters(backups->run),
		.iteration = s->iteration,
		.before = backups->run->training.origin.steps,
		.seed = backups->run->options.seed,
		.corpus = backups->run->training.corpus_hash,
		.position = backups->run->training.n_shards * s->position,
	};
	struct error err = { "" };

	if (checkpoint_save_manifest(backups->run->options.run_dir, &k, s->hashes, &err) == 0)
		return true;
	note(backups->run, NOTE_WARNING, -1, 0, "%.180s", err.text);
	report_failure(backups, -1, err.text);
	return false;
}

static void finish_checkpoint(struct backups *backups, bool written)
{
	struct checkpointing *s = &backups->saving;

	s->before_last = s->last;
	s->last = s->iteration;
	if (written) {
		s->complete = s->iteration;
		s->failure = (struct checkpoint_failure){ .node = -1 };
		record_checkpoint(backups->run, s->iteration, NULL);
	}
	if (written && !offsite_asked(backups))
		checkpoint_prune(backups->run->options.run_dir, 0, s->before_last);
	note(backups->run, NOTE_LOG, -1, 0, "checkpoint of it%llu: %.1f MB on disk",
	     (unsigned long long)s->iteration, (double)s->bytes * 1e-6);
}

/* Records that a node could not save its stage. The checkpoint fails unless another node that
 * holds the stage may still save it. */
static void take_failure(struct backups *backups, const struct member *m, const struct msg_saved *r)
{
	const struct checkpointing *s = &backups->saving;
	char why[192];

	note(backups->run, NOTE_WARNING, m->id, 0, "n%02u did not save S%u of it%llu: %.110s",
	     m->id, r->stage, (unsigned long long)r->iteration, r->text);
	if (r->iteration != s->iteration || r->stage >= backups->run->cluster->n_stages ||
	    s->saved[r->stage])
		return;
	for (uint32_t i = 0; i < backups->members->n; i++) {
		const struct member *o = &backups->members->list[i];

		if (o->checkpoint.saving == s->iteration && member_alive(o) &&
		    o->checkpoint.saving_stage == r->stage)
			return;
	}
	snprintf(why, sizeof(why), "n%02u did not save S%u: %.160s", m->id, r->stage, r->text);
	report_failure(backups, m->id, why);
}

/* The manifest is written before the record says that the checkpoint is complete. After a restart,
 * the controller can therefore rely on the manifest. */
void checkpoint_saved(struct backups *backups, struct member *m, const struct msg_saved *r)
{
	struct checkpointing *s = &backups->saving;
	struct store_shard shard = { .iteration = r->iteration,
				     .stage = r->stage,
				     .node = m->id,
				     .host = m->hello.host,
				     .hash = r->hash,
				     .bytes = r->bytes,
				     .wall_us = clock_wall_us() };
	struct error err = { "" };
	bool last, written = false;

	if (m->checkpoint.saving == 0 || r->iteration != m->checkpoint.saving ||
	    r->stage != m->checkpoint.saving_stage) {
		admission_stray(backups->run, m, "reports checkpoints that it was not asked for");
		return; /* the report was not requested, or was taken already */
	}
	m->checkpoint.saving = 0;
	if (r->bytes == 0) {
		take_failure(backups, m, r);
		return;
	}
	if (r->iteration != s->iteration || r->stage >= backups->run->cluster->n_stages)
		return; /* the report belongs to an abandoned checkpoint */
	last = !s->saved[r->stage] && s->n_saved + 1 == (uint32_t)backups->run->cluster->n_stages;
	if (!s->saved[r->stage])
		s->hashes[r->stage] = r->hash;
	if (last)
		written = write_manifest(backups);
	if (store_shard(backups->run->record.store, &shard, &err) != 0) {
		log_line(&backups->run->log, LOG_ERROR, "%s", err.text);
		return;
	}
	if (s->saved[r->stage])
		return;
	s->saved[r->stage] = true;
	s->n_saved++;
	s->bytes += r->bytes;
	if (last)
		finish_checkpoint(backups, written);
}
