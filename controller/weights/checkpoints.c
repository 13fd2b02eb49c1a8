/* checkpoints.c - every so many commits, and at the end, the stages on their nodes' disks.
 *
 * One replica of each stage on every machine writes its file and tells its hash; the store
 * records it. When every stage has one the checkpoint is whole and gets its manifest. The last
 * two whole ones are kept, beside the one being written.
 */
#include "controller/weights/checkpoints.h"

#include <string.h>

#include "base/clock.h"
#include "controller/controller.h"
#include "controller/members/admission.h"
#include "controller/members/member.h"
#include "controller/operator/journal.h"
#include "model/files/checkpoint.h"

/* Machines may have one name (a cloud's image does), and containers of one machine folders of their own. */
static bool same_disk(const struct member *a, const struct member *b)
{
	return strcmp(a->hello.host, b->hello.host) == 0 && strcmp(a->hello.machine, b->hello.machine) == 0;
}

static bool first_of_disk(const struct controller *c, const struct member *m)
{
	for (uint32_t i = 0; i < m->id; i++) {
		const struct member *o = &c->members[i];

		if (o->replica && o->hello.saves && member_stage(c, o) == member_stage(c, m) && same_disk(o, m))
			return false;
	}
	return true;
}

static void tell_unless_whole(struct controller *c)
{
	const struct checkpointing *s = &c->saving;

	if (s->iteration && s->n_saved < (uint32_t)c->cluster->n_stages)
		note(c, NOTE_WARNING, -1, 0,
		     "the checkpoint of it%llu is not whole: %u of %d stages",
		     (unsigned long long)s->iteration, s->n_saved, c->cluster->n_stages);
}

static void begin_checkpoint(struct controller *c)
{
	struct checkpointing *s = &c->saving;
	struct msg save = { .type = MSG_SAVE };
	uint32_t told = 0;

	tell_unless_whole(c);
	save.u.save = (struct msg_save){ c->committed, s->before_last };
	*s = (struct checkpointing){ .iteration = c->committed,
				     .last = s->last,
				     .before_last = s->before_last,
				     .asked_us = c->now_us };
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		m->saving = 0;
		if (!m->replica || !m->hello.saves || !first_of_disk(c, m) || member_send(c, m, &save) != 0)
			continue;
		m->saving = c->committed;
		m->saving_stage = (uint8_t)member_stage(c, m);
		told++;
	}
	if (told == 0)
		s->iteration = 0; /* nobody has a folder */
}

void checkpoint_when_due(struct controller *c)
{
	if (c->options.checkpoint_every && c->committed % c->options.checkpoint_every == 0)
		begin_checkpoint(c);
}

/* Who writes one gets a microsecond for each parameter, as who reads one does (restore.c). */
static bool being_written(const struct controller *c)
{
	int64_t most_us = c->options.overdue_us;
	bool any = false;

	for (uint32_t i = 0; i < c->n_members; i++)
		any = any || (c->members[i].saving && member_alive(&c->members[i]));
	for (int s = 0; s < c->cluster->n_stages; s++)
		most_us += (int64_t)c->stage_parameters[s];
	return any && c->now_us - c->saving.asked_us < most_us;
}

bool checkpoint_is_there(const struct controller *c)
{
	return !c->options.checkpoint_every || !c->committed || c->saving.last == c->committed;
}

/* One that is still being written comes first: agents write one at a time. */
bool checkpoint_last(struct controller *c)
{
	struct checkpointing *s = &c->saving;

	s->awaited = false;
	if (checkpoint_is_there(c))
		return false;
	if (!being_written(c)) {
		if (s->iteration == c->committed) {
			tell_unless_whole(c);
			return false;
		}
		begin_checkpoint(c);
	}
	return s->awaited = s->iteration != 0;
}

static bool write_manifest(struct controller *c)
{
	const struct checkpointing *s = &c->saving;
	struct checkpoint k = {
		.config = c->model,
		.recipe = c->recipe,
		.iteration = s->iteration,
		.seed = c->options.seed,
		.corpus = c->corpus_hash,
		.position = s->iteration * c->n_shards * c->per_shard,
	};
	struct error err = { "" };

	if (checkpoint_save_manifest(c->options.run_dir, &k, s->hashes, &err) == 0)
		return true;
	note(c, NOTE_WARNING, -1, 0, "%.180s", err.text);
	return false;
}

static void finish_checkpoint(struct controller *c, bool written)
{
	struct checkpointing *s = &c->saving;

	s->before_last = s->last;
	s->last = s->iteration;
	if (written)
		checkpoint_prune(c->options.run_dir, s->before_last);
	note(c, NOTE_LOG, -1, 0, "checkpoint of it%llu: %.1f MB on disk",
	     (unsigned long long)s->iteration, (double)s->bytes * 1e-6);
}

/* The manifest is written before the record says that all is there: a successor need not look for it. */
void checkpoint_saved(struct controller *c, struct member *m, const struct msg_saved *r)
{
	struct checkpointing *s = &c->saving;
	struct store_shard shard = { .iteration = r->iteration,
				     .stage = r->stage,
				     .node = m->id,
				     .host = m->hello.host,
				     .hash = r->hash,
				     .bytes = r->bytes,
				     .wall_us = clock_wall_us() };
	struct error err = { "" };
	bool last, written = false;

	if (m->saving == 0 || r->iteration != m->saving || r->stage != m->saving_stage) {
		admission_stray(c, m, "tells of checkpoints that nobody asked it for");
		return; /* or it has answered */
	}
	m->saving = 0;
	if (r->bytes == 0) {
		note(c, NOTE_WARNING, m->id, 0, "n%02u did not save S%u of it%llu: %.110s",
		     m->id, r->stage, (unsigned long long)r->iteration, r->text);
		return;
	}
	if (r->iteration != s->iteration || r->stage >= c->cluster->n_stages)
		return; /* of a checkpoint that was given up */
	last = !s->saved[r->stage] && s->n_saved + 1 == (uint32_t)c->cluster->n_stages;
	if (!s->saved[r->stage])
		s->hashes[r->stage] = r->hash;
	if (last)
		written = write_manifest(c);
	if (store_shard(c->store, &shard, &err) != 0) {
		log_line(&c->log, LOG_ERROR, "%s", err.text);
		return;
	}
	if (s->saved[r->stage])
		return;
	s->saved[r->stage] = true;
	s->n_saved++;
	s->bytes += r->bytes;
	if (last)
		finish_checkpoint(c, written);
}
