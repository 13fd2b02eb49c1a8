/* checkpoints.c - every so many commits, the stages on their nodes' disks.
 *
 * One replica of each stage on every machine writes its file and tells its hash; the store
 * records it. When every stage has one the checkpoint is whole and gets its manifest. The last
 * two whole ones are kept, beside the one being written.
 */
#include "controller/controller.h"

#include <string.h>

#include "base/clock.h"
#include "model/checkpoint.h"

static bool first_of_host(const struct controller *c, const struct member *m)
{
	for (uint32_t i = 0; i < m->id; i++) {
		const struct member *o = &c->members[i];

		if (o->replica && o->hello.saves && member_stage(c, o) == member_stage(c, m) &&
		    strcmp(o->hello.host, m->hello.host) == 0)
			return false;
	}
	return true;
}

void checkpoint_when_due(struct controller *c)
{
	struct checkpointing *s = &c->saving;
	struct msg save = { .type = MSG_SAVE };
	uint32_t told = 0;

	if (!c->options.checkpoint_every || c->committed % c->options.checkpoint_every != 0)
		return;
	if (s->iteration && s->n_saved < (uint32_t)c->cluster->n_stages)
		note(c, NOTE_WARNING, -1, 0,
		     "the checkpoint of it%llu is not whole: %u of %d stages",
		     (unsigned long long)s->iteration, s->n_saved, c->cluster->n_stages);
	save.u.save = (struct msg_save){ c->committed, s->before_last };
	*s = (struct checkpointing){ .iteration = c->committed,
				     .last = s->last,
				     .before_last = s->before_last };
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m->replica && m->hello.saves && first_of_host(c, m))
			told += member_send(c, m, &save) == 0;
	}
	if (told == 0)
		s->iteration = 0; /* nobody has a folder */
}

static void whole(struct controller *c)
{
	struct checkpointing *s = &c->saving;
	struct checkpoint k = {
		.config = c->model,
		.recipe = c->recipe,
		.iteration = s->iteration,
		.seed = c->options.seed,
		.corpus = c->corpus_hash,
		.position = s->iteration * c->n_shards * c->per_shard,
	};
	struct error err = { "" };

	s->before_last = s->last;
	s->last = s->iteration;
	if (checkpoint_save_manifest(c->options.run_dir, &k, s->hashes, &err) != 0)
		note(c, NOTE_WARNING, -1, 0, "%.180s", err.text);
	else
		checkpoint_prune(c->options.run_dir, s->before_last);
	note(c, NOTE_LOG, -1, 0, "checkpoint of it%llu: %.1f MB on disk",
	     (unsigned long long)s->iteration, (double)s->bytes * 1e-6);
}

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

	if (r->bytes == 0) {
		note(c, NOTE_WARNING, m->id, 0, "n%02u did not save S%u of it%llu: %.110s",
		     m->id, r->stage, (unsigned long long)r->iteration, r->text);
		return;
	}
	if (r->iteration != s->iteration || r->stage >= c->cluster->n_stages)
		return; /* of a checkpoint that was given up */
	if (store_shard(c->store, &shard, &err) != 0) {
		log_line(&c->log, LOG_ERROR, "%s", err.text);
		return;
	}
	if (s->saved[r->stage])
		return;
	s->saved[r->stage] = true;
	s->hashes[r->stage] = r->hash;
	s->bytes += r->bytes;
	if (++s->n_saved == (uint32_t)c->cluster->n_stages)
		whole(c);
}
