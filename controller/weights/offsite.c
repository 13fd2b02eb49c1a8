/* offsite.c - collects the agents' files of a checkpoint on this machine, and copies them from this
 * machine to a store.
 *
 * The controller handles one checkpoint at a time, the newest complete one, stage by stage:
 *
 *     step        what happens                                    next step
 *     COLLECTING  a node that saved the file sends it,            CHECKING
 *                 if this machine lacks it
 *     CHECKING    the thread compares the file with the record    STORING, or the next stage
 *     STORING     the thread runs the store's command and reads   the next stage
 *                 the file back
 *
 * After the last stage the controller stores the manifest, and then the file `latest` with the name
 * of the checkpoint's folder. A command that fails is repeated after a growing pause. Once a newer
 * checkpoint is complete, the controller stores the newer checkpoint instead. A request of skippipe
 * export takes precedence. */
#include "controller/weights/offsite.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "controller/members/admission.h"
#include "controller/members/member.h"
#include "controller/run/journal.h"
#include "controller/weights/backups.h"
#include "model/files/checkpoint.h"
#include "model/files/remote.h"
#include "wire/transfer.h"

enum {
	PATH = 4096,
	PATH_MOST = 3900,        /* longest path of a run's folder */
	LOOK_EVERY_US = 1000000, /* time between two checks for a request of skippipe export */
	/* Pause after the first failure of a command, in microseconds. The pause doubles with
	 * each further failure */
	AGAIN_US = 5000000,
	AGAIN_DOUBLINGS = 6,
	/* If the store fails this many times at the end of the run, the run ends although the
	 * store lacks the last checkpoint */
	TRIES_AT_END = 3,
	FRAME_BYTES = 4096,
	/* If a node sends no part of the file for this long, the file is requested from the next
	 * node that saved it */
	SILENT_US = 60000000,
	/* Time limit of a store's command for a stage's file (12 bytes for each parameter):
	 * LIMIT_US plus this many microseconds for each parameter. The limit allows a rate of 100
	 * kB/s */
	PARAMETER_US = 120,
	END_US = 3000000 /* at the end of the program, the longest wait for the thread to end */
};

#define LIMIT_US INT64_C(600000000)

/* The thread's work, one file at a time. rc: the result of the work. If an error is found before
 * the thread starts, rc is this error and the thread is not started. */
struct work {
	enum { WORK_CHECK, WORK_PUT, WORK_GET } kind;
	struct remote *remote;
	char run_dir[PATH], path[PATH], name[96];
	uint64_t iteration, hash;
	uint32_t stage;
	int rc;
	struct error err;
};

struct source {
	uint16_t node;
	uint8_t stage;
	uint64_t hash;
};

struct offsite {
	struct remote remote;

	/* The checkpoint that is being handled. */
	uint64_t iteration; /* iteration of the checkpoint; 0: none */
	/* true: the checkpoint is also copied to the store; false: the checkpoint is only
	 * collected */
	bool stores;
	bool is_requested; /* skippipe export waits for this checkpoint */
	uint64_t brought; /* the checkpoint that offsite_bring has begun to collect; 0: none */
	/* the newest checkpoint for which the journal reported that the run waits */
	uint64_t announced;
	enum { COLLECTING, CHECKING, STORING } step;
	/* The stage whose file is being handled. n_stages stands for the manifest, n_stages + 1 for
	 * the file `latest` */
	uint32_t stage;
	struct source *sources;
	/* Number of nodes that saved this stage's file, and how many of these nodes were asked for
	 * it */
	uint32_t n_sources, tried;
	/* This machine's own file of the stage is damaged, so another node's file is fetched */
	bool own_file_is_damaged;
	struct transfer transfer;
	uint16_t from; /* the node that is sending the stage's file */
	uint64_t had;  /* number of the file's bytes that had arrived at the time had_us */
	int64_t had_us;
	uint32_t failures;
	int64_t again_us;
	/* Newest checkpoint that the store has, or that could not be collected */
	uint64_t handled;

	/* Files that agents request from the store. They are files of stages of the checkpoint
	 * fetch_iteration. */
	uint64_t fetch_iteration;
	uint64_t fetch_wanted, fetch_failed; /* sets of stages, as bits */
	/* Recorded hash of the file of each stage; 0: unknown */
	uint64_t fetch_hashes[MSG_STAGES];
	char fetch_failure[192];

	int64_t look_us;
	pthread_t thread;
	bool thread_runs;
	atomic_bool thread_done;
	struct work work;
};

struct offsite *offsite_new(void)
{
	struct offsite *o = alloc_new(sizeof(*o));

	o->transfer.fd = -1;
	return o;
}

/* Waits until the thread has ended its command. Returns false if the thread does not end in time
 * because its disk does not answer. */
static bool end_thread(struct offsite *o)
{
	static const struct timespec pause = { .tv_nsec = 5000000 };
	const int64_t until_us = clock_monotonic_us() + END_US;

	remote_stop(&o->remote);
	while (!o->thread_done && clock_monotonic_us() < until_us)
		nanosleep(&pause, NULL);
	return o->thread_done;
}

/* If the thread does not end in time, *o is not freed, because the thread still uses it. The
 * process ends anyway. */
void offsite_free(struct offsite *o)
{
	if (!o)
		return;
	if (o->thread_runs && !end_thread(o)) {
		pthread_detach(o->thread);
		return;
	}
	if (o->thread_runs)
		pthread_join(o->thread, NULL);
	transfer_cancel(&o->transfer);
	free(o->sources);
	free(o);
}

/* ---- the thread ---- */

static void *run_work(void *argument)
{
	struct offsite *o = argument;
	struct work *w = &o->work;
	uint64_t hash;

	if (w->kind == WORK_PUT) {
		w->rc = remote_put(w->remote, w->name, w->path, &w->err);
	} else {
		w->rc = w->kind == WORK_GET
				? remote_get(w->remote, w->name, w->path, &hash, &w->err)
				: 0;
		if (w->rc == 0)
			w->rc = checkpoint_check_stage(w->run_dir, w->stage, w->iteration, w->hash,
						       &w->err);
		if (w->rc != 0 && w->kind == WORK_GET)
			unlink(w->path);
	}
	o->thread_done = true;
	return NULL;
}

/* ---- the checkpoint in hand ---- */

static int see_source(void *context, const struct store_shard *k)
{
	struct offsite *o = context;

	if (k->iteration != o->iteration)
		return 0;
	o->sources = alloc_resize(o->sources, o->n_sources + 1, sizeof(*o->sources));
	o->sources[o->n_sources++] = (struct source){ k->node, k->stage, k->hash };
	return 0;
}

static void begin_stage(struct offsite *o, uint32_t stage)
{
	transfer_cancel(&o->transfer);
	o->step = COLLECTING;
	o->stage = stage;
	o->tried = 0;
	o->own_file_is_damaged = false;
}

/* Tells skippipe export that the files for which it waits cannot be collected. */
static void refuse_request(struct backups *backups, const char *why)
{
	char path[PATH];
	struct error err = { "" };

	snprintf(path, sizeof(path), "%s/collect.failed", backups->run->options.run_dir);
	if (file_write(path, why, strlen(why), FILE_PRIVATE, &err) != 0)
		log_line(&backups->run->log, LOG_ERROR, "%s", err.text);
}

static void give_up(struct backups *backups, const char *why)
{
	struct offsite *o = backups->offsite;

	note(backups->run, NOTE_WARNING, -1, 0,
	     "the checkpoint of it%llu cannot be collected: %.110s",
	     (unsigned long long)o->iteration, why);
	if (o->is_requested)
		refuse_request(backups, why);
	transfer_cancel(&o->transfer);
	if (o->stores)
		o->handled = o->iteration;
	o->iteration = 0;
	o->is_requested = o->stores = false;
}

/* Begins to handle a checkpoint. Abandons it if the record does not name all of its files. */
static void begin_checkpoint(struct backups *backups, uint64_t iteration, bool stores)
{
	struct offsite *o = backups->offsite;
	struct error err = { "" };

	o->iteration = iteration;
	o->stores = stores;
	o->n_sources = 0;
	o->failures = 0;
	o->again_us = 0;
	begin_stage(o, 0);
	if (store_each_shard(backups->run->record.store, see_source, o, &err) != 0)
		give_up(backups, err.text);
}

/* Begins to handle the newest complete checkpoint, instead of an older one that could not be stored
 * yet. */
static void begin_newest(struct backups *backups)
{
	struct offsite *o = backups->offsite;
	bool is_free = o->iteration == 0 || (o->failures > 0 && !o->is_requested);

	if (!o->remote.to || !is_free || backups->saving.last <= o->handled ||
	    backups->saving.last == o->iteration)
		return;
	begin_checkpoint(backups, backups->saving.last, true);
}

static bool stage_path(const struct backups *backups, uint32_t stage, uint64_t iteration,
		       char path[PATH])
{
	return checkpoint_stage_path(path, PATH, backups->run->options.run_dir, stage, iteration) ==
	       0;
}

/* Requests the stage's file from the next node that saved it. */
static void ask_next_source(struct backups *backups)
{
	struct offsite *o = backups->offsite;
	struct msg_file_ask ask = { .kind = FILE_STAGE,
				    .iteration = o->iteration,
				    .index = o->stage };
	char path[PATH], why[224];

	while (o->tried < o->n_sources) {
		const struct source *s = &o->sources[o->tried++];

		if (s->stage != o->stage || s->node >= backups->members->n ||
		    !member_alive(&backups->members->list[s->node]) ||
		    !stage_path(backups, o->stage, o->iteration, path))
			continue;
		o->from = s->node;
		transfer_begin(&o->transfer, &ask, path, backups->run->now_us);
		o->had = 0;
		o->had_us = backups->run->now_us;
		return;
	}
	snprintf(why, sizeof(why), "no node sends S%u%s%s", o->stage,
		 o->transfer.reason[0] ? ": " : "", o->transfer.reason);
	give_up(backups, why);
}

static bool find_hash(const struct offsite *o, uint64_t *hash)
{
	for (uint32_t i = 0; i < o->n_sources; i++)
		if (o->sources[i].stage == o->stage) {
			*hash = o->sources[i].hash;
			return true;
		}
	return false;
}

/* Returns true if the node that sends the file has died, or is silent for too long. */
static bool source_is_lost(struct backups *backups)
{
	struct offsite *o = backups->offsite;

	if (o->transfer.have != o->had) {
		o->had = o->transfer.have;
		o->had_us = backups->run->now_us;
	}
	if (!member_alive(&backups->members->list[o->from]))
		return true;
	if (backups->run->now_us - o->had_us < SILENT_US)
		return false;
	snprintf(o->transfer.reason, sizeof(o->transfer.reason), "n%02u has sent no part for %d s",
		 o->from, SILENT_US / 1000000);
	return true;
}

static void collect(struct backups *backups)
{
	struct offsite *o = backups->offsite;
	struct msg m = { .type = MSG_FILE_ASK };
	struct member *from = &backups->members->list[o->from];
	char path[PATH];

	if (o->transfer.state == TRANSFER_RUNNING && source_is_lost(backups)) {
		transfer_cancel(&o->transfer);
		ask_next_source(backups);
	} else if (o->transfer.state == TRANSFER_RUNNING) {
		while (transfer_next(&o->transfer, &m.u.file_ask, backups->run->now_us))
			member_send(backups->run, from, &m);
	} else if (o->transfer.state == TRANSFER_DONE ||
		   (o->tried == 0 && !o->own_file_is_damaged &&
		    stage_path(backups, o->stage, o->iteration, path) && access(path, R_OK) == 0)) {
		o->step = CHECKING;
	} else {
		ask_next_source(backups);
	}
}

/* Takes a part of a file. Parts that the controller has requested do not count against the message
 * quota of the node's key. */
void offsite_part(struct backups *backups, struct member *m, const struct msg *part)
{
	struct offsite *o = backups->offsite;
	uint64_t had = o->transfer.have;

	if (m->id != o->from || !transfer_take(&o->transfer, part, backups->run->now_us)) {
		admission_stray(backups->run, m, "sends parts of files that were not requested");
		return;
	}
	if (o->transfer.have > had)
		post_charge(backups->run->post, m->peer,
			    -(1.0 + (double)part->body_size / FRAME_BYTES), backups->run->now_us);
}

static void next_stage(struct backups *backups)
{
	struct offsite *o = backups->offsite;
	uint32_t n = (uint32_t)backups->run->cluster->n_stages;

	begin_stage(o, o->stage + 1);
	if (o->stage < n)
		return;
	o->is_requested = false;
	o->step = STORING;
	if (o->stores && o->stage < n + 2)
		return;
	if (o->stores) {
		o->handled = o->iteration;
		note(backups->run, NOTE_LOG, -1, 0, "the checkpoint of it%llu is in the store",
		     (unsigned long long)o->iteration);
	}
	o->iteration = 0;
	o->stores = false;
}

static void name_stage(uint64_t iteration, uint32_t stage, char *name, size_t room)
{
	snprintf(name, room, "%08llu/stage-%03u.%08llu.safetensors", (unsigned long long)iteration,
		 stage, (unsigned long long)iteration);
}

static int name_path(const struct backups *backups, uint32_t stage, uint64_t iteration,
		     struct work *w)
{
	if (stage_path(backups, stage, iteration, w->path))
		return 0;
	return error_set(&w->err, -ENAMETOOLONG, "%s: the path is too long",
			 backups->run->options.run_dir);
}

/* Prepares to store the current stage's file, the manifest, or the file `latest`. */
static int name_file(struct backups *backups, struct work *w)
{
	const struct offsite *o = backups->offsite;
	const char *run_dir = backups->run->options.run_dir;
	uint32_t n = (uint32_t)backups->run->cluster->n_stages;
	unsigned long long iteration = (unsigned long long)o->iteration;
	char text[32];

	if (o->stage < n) {
		name_stage(o->iteration, o->stage, w->name, sizeof(w->name));
		return name_path(backups, o->stage, o->iteration, w);
	}
	if (o->stage == n) {
		snprintf(w->name, sizeof(w->name), "%08llu/manifest.json", iteration);
		snprintf(w->path, PATH, "%.*s/checkpoints/%s", PATH_MOST, run_dir, w->name);
		return 0;
	}
	snprintf(w->name, sizeof(w->name), "latest");
	snprintf(text, sizeof(text), "%08llu\n", iteration);
	snprintf(w->path, PATH, "%.*s/checkpoints/latest", PATH_MOST, run_dir);
	return file_write(w->path, text, strlen(text), FILE_RESULT, &w->err);
}

static void take_failure(struct backups *backups, const struct work *w)
{
	struct offsite *o = backups->offsite;
	int64_t pause_us = (int64_t)AGAIN_US
			   << (o->failures < AGAIN_DOUBLINGS ? o->failures : AGAIN_DOUBLINGS);

	if (++o->failures >= TRIES_AT_END && o->is_requested) {
		give_up(backups, w->err.text);
		return;
	}
	o->again_us = backups->run->now_us + pause_us;
	note(backups->run, NOTE_WARNING, -1, 0,
	     "the checkpoint of it%llu is not stored: %.90s; again in %lld s",
	     (unsigned long long)o->iteration, w->err.text, (long long)(pause_us / 1000000));
}

static void take_result(struct backups *backups)
{
	struct offsite *o = backups->offsite;
	const struct work *w = &o->work;

	if (w->kind == WORK_GET) {
		o->fetch_wanted &= ~(UINT64_C(1) << w->stage);
		o->fetch_failed |= (uint64_t)(w->rc != 0) << w->stage;
		if (w->rc == 0)
			return;
		snprintf(o->fetch_failure, sizeof(o->fetch_failure), "%.180s", w->err.text);
		note(backups->run, NOTE_WARNING, -1, 0,
		     "S%u of it%llu cannot be fetched from the store: %.110s", w->stage,
		     (unsigned long long)w->iteration, w->err.text);
		return;
	}
	if (w->iteration != o->iteration || w->stage != o->stage)
		return; /* the work was for an older checkpoint than the present one */
	if (w->kind == WORK_CHECK && w->rc != 0) {
		o->step = COLLECTING;
		o->own_file_is_damaged = true;
		transfer_cancel(&o->transfer);
		snprintf(o->transfer.reason, sizeof(o->transfer.reason), "%.180s", w->err.text);
	} else if (w->rc != 0) {
		take_failure(backups, w);
	} else if (w->kind == WORK_CHECK && o->stores) {
		o->step = STORING;
	} else {
		o->failures = 0;
		next_stage(backups);
	}
}

/* Chooses the thread's next work. Files that agents request come first. Returns false if there is
 * no work now. */
static bool next_work(struct backups *backups, struct work *w)
{
	struct offsite *o = backups->offsite;

	for (uint32_t s = 0; s < (uint32_t)backups->run->cluster->n_stages; s++)
		if (o->fetch_wanted >> s & 1) {
			*w = (struct work){ .kind = WORK_GET,
					    .iteration = o->fetch_iteration,
					    .stage = s,
					    .hash = o->fetch_hashes[s] };
			name_stage(o->fetch_iteration, s, w->name, sizeof(w->name));
			w->rc = name_path(backups, s, o->fetch_iteration, w);
			return true;
		}
	*w = (struct work){ .kind = WORK_CHECK, .iteration = o->iteration, .stage = o->stage };
	if (o->iteration == 0 || o->step == COLLECTING || backups->run->now_us < o->again_us)
		return false;
	if (o->step == CHECKING && !find_hash(o, &w->hash)) {
		give_up(backups, "the record has no hash of a stage's file");
		return false;
	}
	if (o->step == STORING) {
		w->kind = WORK_PUT;
		w->rc = name_file(backups, w);
	}
	return true;
}

/* Starts the thread. Work that cannot start is treated as failed. */
static void begin_work(struct backups *backups, const struct work *next)
{
	struct offsite *o = backups->offsite;
	struct work *w = &o->work;
	bool runs = next->rc == 0;

	*w = *next;
	w->remote = &o->remote;
	snprintf(w->run_dir, sizeof(w->run_dir), "%s", backups->run->options.run_dir);
	o->remote.limit_us = LIMIT_US;
	if (w->stage < (uint32_t)backups->run->cluster->n_stages)
		o->remote.limit_us += PARAMETER_US *
				      (int64_t)backups->run->training.stage_parameters[w->stage];
	o->thread_done = false;
	if (runs) {
		int rc = pthread_create(&o->thread, NULL, run_work, o);

		runs = rc == 0; /* from here on, a running thread may write to *w */
		if (!runs)
			w->rc = error_set(&w->err, -rc, "no thread: %s", strerror(rc));
	}
	o->thread_runs = runs;
	if (!runs && w->kind == WORK_GET)
		take_result(backups);
	else if (!runs)
		take_failure(backups, w);
}

/* ---- requests ---- */

static int see_hash(void *context, const struct store_shard *k)
{
	struct offsite *o = context;

	if (k->iteration == o->fetch_iteration && k->stage < MSG_STAGES)
		o->fetch_hashes[k->stage] = k->hash;
	return 0;
}

int offsite_fetch(struct backups *backups, uint64_t iteration, uint32_t stage, const char **reason)
{
	struct offsite *o = backups->offsite;
	const uint64_t bit = UINT64_C(1) << stage;
	struct error err = { "" };

	if (iteration != o->fetch_iteration) {
		o->fetch_iteration = iteration;
		o->fetch_wanted = o->fetch_failed = 0;
		memset(o->fetch_hashes, 0, sizeof(o->fetch_hashes));
		if (store_each_shard(backups->run->record.store, see_hash, o, &err) != 0) {
			log_line(&backups->run->log, LOG_ERROR, "%s", err.text);
			o->fetch_iteration = 0; /* the next call reads the record again */
		}
	}
	*reason = o->fetch_hashes[stage] ? o->fetch_failure : "the record has no such checkpoint";
	if (o->fetch_hashes[stage] == 0 || (o->fetch_failed & bit)) {
		o->fetch_failed &= ~bit;
		return -ENOENT;
	}
	o->fetch_wanted |= bit;
	return -EAGAIN;
}

/* Takes the request that skippipe export has left in RUN-DIR/collect. Begins to collect the
 * requested checkpoint. Refuses a checkpoint whose files the agents have removed. */
static void look_for_request(struct backups *backups)
{
	struct offsite *o = backups->offsite;
	char path[PATH], *text;
	struct error err = { "" };
	uint64_t iteration;
	size_t size;

	if (backups->run->now_us < o->look_us)
		return;
	o->look_us = backups->run->now_us + LOOK_EVERY_US;
	snprintf(path, sizeof(path), "%s/collect", backups->run->options.run_dir);
	if (access(path, F_OK) != 0 || file_read(path, sizeof(path), &text, &size, &err) != 0)
		return;
	iteration = strtoull(text, NULL, 10);
	free(text);
	unlink(path);
	if (iteration == 0 || iteration < backups->saving.before_last) {
		refuse_request(backups, "the agents have removed it for newer ones; try again");
		return;
	}
	o->is_requested = true;
	if (o->iteration != iteration)
		begin_checkpoint(backups, iteration, false);
	if (o->iteration == 0)
		return;
	note(backups->run, NOTE_EVENT, -1, 0, "the checkpoint of it%llu is collected for export",
	     (unsigned long long)iteration);
}

void offsite_turn(struct backups *backups)
{
	struct offsite *o = backups->offsite;
	struct work w;

	o->remote.to = backups->run->options.checkpoint_to;
	if (o->thread_runs && o->thread_done) {
		pthread_join(o->thread, NULL);
		o->thread_runs = false;
		take_result(backups);
	}
	look_for_request(backups);
	begin_newest(backups);
	if (o->iteration && o->step == COLLECTING)
		collect(backups);
	if (!o->thread_runs && next_work(backups, &w))
		begin_work(backups, &w);
}

enum offsite_files offsite_bring(struct backups *backups)
{
	struct offsite *o = backups->offsite;
	uint64_t iteration = backups->saving.last;
	bool here = true;

	for (uint32_t s = 0; s < (uint32_t)backups->run->cluster->n_stages; s++) {
		char path[PATH];

		here = here && stage_path(backups, s, iteration, path) && access(path, R_OK) == 0;
	}
	if (here)
		return OFFSITE_HERE;
	if (o->iteration != 0)
		return OFFSITE_COMING;
	if (o->brought == iteration)
		return OFFSITE_MISSING;
	o->brought = iteration;
	begin_checkpoint(backups, iteration, false);
	return OFFSITE_COMING;
}

bool offsite_awaited(struct backups *backups)
{
	struct offsite *o = backups->offsite;

	if (!o || !o->remote.to || backups->saving.last <= o->handled ||
	    o->failures >= TRIES_AT_END)
		return false;
	if (o->announced != backups->saving.last)
		note(backups->run, NOTE_EVENT, -1, 0,
		     "the run ends once the checkpoint of it%llu is in the store, or after %d "
		     "failures; a second signal ends it now",
		     (unsigned long long)backups->saving.last, TRIES_AT_END);
	o->announced = backups->saving.last;
	return true;
}

bool offsite_asked(const struct backups *backups)
{
	return backups->offsite && backups->offsite->is_requested;
}

bool offsite_has_store(const struct backups *backups)
{
	return backups->run->options.checkpoint_to != NULL;
}
