/* checkpoints.c - saves the stages to the nodes' disks, at regular intervals and at the end.
 *
 * A checkpoint is the last resort if a stage loses all replicas and copies. One replica of each
 * stage on every machine writes its file and reports the hash, which the store records. A
 * checkpoint is complete when every stage has a file; it then gets its manifest. The two newest
 * complete checkpoints are kept while the next is written. */
#include "controller/weights/checkpoints.h"

#include <string.h>

#include "base/clock.h"
#include "controller/members/admission.h"
#include "controller/members/member.h"
#include "controller/run/journal.h"
#include "controller/weights/first_weights.h"
#include "controller/weights/weights.h"
#include "model/files/checkpoint.h"

/* Compares host and machine, since machines can share a host name (cloud images), and containers on
 * one machine have separate folders. */
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

static void note_if_incomplete(struct weights *weights)
{
	const struct checkpointing *s = &weights->saving;

	if (s->iteration && s->n_saved < (uint32_t)weights->run->cluster->n_stages)
		note(weights->run, NOTE_WARNING, -1, 0,
		     "the checkpoint of it%llu is incomplete: %u of %d stages",
		     (unsigned long long)s->iteration, s->n_saved, weights->run->cluster->n_stages);
}

static void begin_checkpoint(struct weights *weights)
{
	struct checkpointing *s = &weights->saving;
	struct msg save = { .type = MSG_SAVE };
	uint32_t n_asked = 0;

	note_if_incomplete(weights);
	save.u.save = (struct msg_save){ weights->run->committed, s->before_last };
	*s = (struct checkpointing){ .iteration = weights->run->committed,
				     .last = s->last,
				     .before_last = s->before_last,
				     .position = first_weights_position(weights->run),
				     .asked_us = weights->run->now_us };
	for (uint32_t i = 0; i < weights->members->n; i++) {
		struct member *m = &weights->members->list[i];

		m->checkpoint.saving = 0;
		if (!member_is_replica(m) || !m->hello.saves ||
		    !first_of_disk(weights->members, m) || member_send(weights->run, m, &save) != 0)
			continue;
		m->checkpoint.saving = weights->run->committed;
		m->checkpoint.saving_stage = (uint8_t)member_stage(weights->run, m);
		n_asked++;
	}
	if (n_asked == 0)
		s->iteration = 0; /* no node has a folder */
}

void checkpoint_when_due(struct weights *weights)
{
	if (weights->run->options.checkpoint_every &&
	    weights->run->committed % weights->run->options.checkpoint_every == 0)
		begin_checkpoint(weights);
}

/* Returns true while some node may still be writing. Writing takes up to a microsecond per
 * parameter, like reading (restore.c). */
static bool being_written(const struct weights *weights)
{
	int64_t most_us = weights->run->options.limits.overdue_us;
	bool any = false;

	for (uint32_t i = 0; i < weights->members->n; i++)
		any = any || (weights->members->list[i].checkpoint.saving &&
			      member_alive(&weights->members->list[i]));
	for (int s = 0; s < weights->run->cluster->n_stages; s++)
		most_us += (int64_t)weights->run->training.stage_parameters[s];
	return any && weights->run->now_us - weights->saving.asked_us < most_us;
}

bool checkpoint_is_there(const struct weights *weights)
{
	return !weights->run->options.checkpoint_every || !weights->run->committed ||
	       weights->saving.last == weights->run->committed;
}

/* A checkpoint in progress is completed first, because agents write one at a time. */
bool checkpoint_last(struct weights *weights)
{
	struct checkpointing *s = &weights->saving;

	s->awaited = false;
	if (checkpoint_is_there(weights))
		return false;
	if (!being_written(weights)) {
		if (s->iteration == weights->run->committed) {
			note_if_incomplete(weights);
			return false;
		}
		begin_checkpoint(weights);
	}
	return s->awaited = s->iteration != 0;
}

static bool write_manifest(struct weights *weights)
{
	const struct checkpointing *s = &weights->saving;
	struct checkpoint k = {
		.config = weights->run->training.model,
		.hyper = rates_hyperparameters(weights->run),
		.iteration = s->iteration,
		.before = weights->run->training.origin.steps,
		.seed = weights->run->options.seed,
		.corpus = weights->run->training.corpus_hash,
		.position = weights->run->training.n_shards * s->position,
	};
	struct error err = { "" };

	if (checkpoint_save_manifest(weights->run->options.run_dir, &k, s->hashes, &err) == 0)
		return true;
	note(weights->run, NOTE_WARNING, -1, 0, "%.180s", err.text);
	return false;
}

static void finish_checkpoint(struct weights *weights, bool written)
{
	struct checkpointing *s = &weights->saving;

	s->before_last = s->last;
	s->last = s->iteration;
	if (written && !offsite_asked(weights))
		checkpoint_prune(weights->run->options.run_dir, s->before_last);
	note(weights->run, NOTE_LOG, -1, 0, "checkpoint of it%llu: %.1f MB on disk",
	     (unsigned long long)s->iteration, (double)s->bytes * 1e-6);
}

/* The manifest is written before the record says that the checkpoint is complete. A restarted
 * controller then need not check it. */
void checkpoint_saved(struct weights *weights, struct member *m, const struct msg_saved *r)
{
	struct checkpointing *s = &weights->saving;
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
		admission_stray(weights->run, m, "reports checkpoints that it was not asked for");
		return; /* unsolicited, or answered already */
	}
	m->checkpoint.saving = 0;
	if (r->bytes == 0) {
		note(weights->run, NOTE_WARNING, m->id, 0,
		     "n%02u did not save S%u of it%llu: %.110s", m->id, r->stage,
		     (unsigned long long)r->iteration, r->text);
		return;
	}
	if (r->iteration != s->iteration || r->stage >= weights->run->cluster->n_stages)
		return; /* the report belongs to an abandoned checkpoint */
	last = !s->saved[r->stage] && s->n_saved + 1 == (uint32_t)weights->run->cluster->n_stages;
	if (!s->saved[r->stage])
		s->hashes[r->stage] = r->hash;
	if (last)
		written = write_manifest(weights);
	if (store_shard(weights->run->history.store, &shard, &err) != 0) {
		log_line(&weights->run->log, LOG_ERROR, "%s", err.text);
		return;
	}
	if (s->saved[r->stage])
		return;
	s->saved[r->stage] = true;
	s->n_saved++;
	s->bytes += r->bytes;
	if (last)
		finish_checkpoint(weights, written);
}
