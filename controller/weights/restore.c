/* restore.c - restores a stage that no process holds: from a checkpoint, or by averaging its
 * neighbours.
 *
 * A checkpoint is restored in steps, and the run changes only in the last step:
 *
 * 1. One node of every stage reads its file and reports its hash. A node that holds the last
 *    weights of a stage reads only after the files of all lost stages have been read.
 *
 * 2. One durable transaction removes the commits after the checkpoint from the store, and records
 *    which node has which stage.
 *
 * 3. The run continues from the checkpoint. The other replicas fetch the weights from the readers.
 *
 * If a file is damaged, the controller uses an older checkpoint, and the journal reports it. The
 * controller abandons a node that stays silent for much longer than the other nodes needed to
 * answer. It asks this node again only if no other node can read the file. */
#include "controller/weights/restore.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "controller/members/finish.h"
#include "controller/members/member.h"
#include "controller/members/saved_state.h"
#include "controller/members/announce.h"
#include "controller/planning/skip_phases.h"
#include "controller/run/journal.h"
#include "controller/weights/copies.h"
#include "controller/weights/files.h"
#include "controller/weights/first_weights.h"
#include "controller/weights/placement.h"
#include "controller/weights/stage_moves.h"
#include "controller/weights/backups.h"
#include "model/average.h"

enum {
	AVERAGE_AGAIN_US = 1000000, /* delay before the next attempt to average the neighbours */
	SILENT_FOR = 200            /* iterations for which a silent node is remembered */
};

/* ---- which checkpoint ---- */

struct shards {
	struct kept_shard *list;
	uint32_t n;
	size_t room;
};

static int see_shard(void *context, const struct store_shard *k)
{
	struct shards *s = context;

	array_reserve(&s->list, &s->room, s->n + 1, sizeof(*s->list));
	s->list[s->n].iteration = k->iteration;
	s->list[s->n].stage = k->stage;
	s->list[s->n].hash = k->hash;
	snprintf(s->list[s->n].host, sizeof(s->list[s->n].host), "%s", k->host);
	s->n++;
	return 0;
}

/* Returns the newest complete checkpoint with an iteration below `below`; 0: none. */
static uint64_t newest_checkpoint(const struct run *run, const struct kept_shard *list, uint32_t n,
				  uint64_t below)
{
	uint64_t iteration = 0;
	uint64_t stages = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (list[i].iteration >= below || list[i].stage >= run->cluster->n_stages)
			continue;
		if (list[i].iteration != iteration)
			stages = 0;
		iteration = list[i].iteration;
		stages |= UINT64_C(1) << list[i].stage;
		if (stages == (run->cluster->n_stages == 64
				       ? UINT64_MAX
				       : (UINT64_C(1) << run->cluster->n_stages) - 1))
			return iteration;
	}
	return 0;
}

static uint64_t read_shards(struct run *run, struct shards *s, uint64_t below)
{
	struct error err = { "" };

	if (store_each_shard(run->record.store, see_shard, s, &err) != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
	return newest_checkpoint(run, s->list, s->n, below);
}

uint64_t restore_newest(struct run *run, uint64_t below)
{
	struct shards s = { NULL, 0, 0 };
	uint64_t newest = read_shards(run, &s, below);

	free(s.list);
	return newest;
}

/* ---- which node reads ---- */

static bool has_tried(const struct restoring *r, const struct member *m)
{
	return r->state != RESTORING_FIRST_WEIGHTS && m->checkpoint.failed == r->iteration;
}

static uint32_t alive_in(const struct members *members, int stage)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < members->n; i++)
		n += member_alive(&members->list[i]) && !members->list[i].is_marked &&
		     member_stage(members->run, &members->list[i]) == stage;
	return n;
}

static bool on_host(const struct restoring *r, const struct member *m, int stage,
		    uint64_t *hash)
{
	for (uint32_t i = 0; i < r->n_shards; i++) {
		const struct kept_shard *k = &r->shards[i];

		if (k->iteration != r->iteration || k->stage != stage)
			continue;
		*hash = k->hash;
		if (strcmp(k->host, m->hello.host) == 0)
			return true;
	}
	return false;
}

/* Returns true if a node other than `but` holds the stage's weights, and was not ordered to
 * replace them by weights in a file. */
static bool is_held(const struct members *members, int stage, const struct member *but)
{
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (m != but && member_alive(m) && !m->is_marked && !member_is_restoring(m) &&
		    member_holds(members->run, m, stage))
			return true;
	}
	return false;
}

static bool was_silent(const struct run *run, const struct member *m)
{
	return m->checkpoint.silent_in > 0 && m->checkpoint.silent_in + SILENT_FOR > run->iteration;
}

static bool has_answered(const struct backups *backups, const struct member *m)
{
	return m->state == MEMBER_RESTORED && m->weights.iterations == backups->restore.iteration;
}

static bool lost_ones_read(const struct backups *backups)
{
	const struct restoring *r = &backups->restore;

	for (int s = 0; s < backups->run->cluster->n_stages; s++)
		if (r->lost >> s & 1 &&
		    (r->who[s] < 0 || !has_answered(backups, &backups->members->list[r->who[s]])))
			return false;
	return true;
}

/* Returns true if m is the last holder of a stage. Such a node must not read a file too early: if
 * another stage's file then cannot be read, the stage that m held would be lost as well. */
static bool last_holder(const struct members *members, const struct member *m)
{
	return member_holds(members->run, m, m->weights.stage) &&
	       !is_held(members, m->weights.stage, m);
}

/* Returns the node that should read the stage's file. The best choice is a node of the stage that
 * has the file on its machine, or that can get the file from the controller's machine. The next
 * best choice can get the file in one of these ways, too, but is one of several replicas of another
 * stage. Then comes any node of the stage, because the folder may be shared. Nodes that did not
 * answer earlier come last. */
static struct member *choose_reader(struct backups *backups, int stage, uint64_t *hash)
{
	const struct restoring *r = &backups->restore;
	bool any = r->lost >> stage & 1 || lost_ones_read(backups);
	bool here = r->state == RESTORING_FIRST_WEIGHTS ||
		    files_has_stage(backups, r->iteration, stage);
	struct member *best = NULL;
	int rank = 0;

	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *m = &backups->members->list[i];
		bool own = member_stage(backups->run, m) == stage, has;
		int mine;

		if (!member_alive(m) || m->is_marked || !m->assigned.is_welcomed ||
		    (!m->hello.saves && !here) || member_is_restoring(m) || has_tried(r, m) ||
		    (!any && last_holder(backups->members, m)))
			continue;
		has = on_host(r, m, stage, hash) || here;
		mine = own && has                                                             ? 3
		       : has && alive_in(backups->members, member_stage(backups->run, m)) > 1 ? 2
											      : own;
		if (mine && !was_silent(backups->run, m))
			mine += 3;
		if (mine > rank) {
			best = m;
			rank = mine;
		}
	}
	return best;
}

/* Prepares a node for an order to restore its stage. */
static void begin_order(struct backups *backups, struct member *m, const char *why)
{
	m->assigned.number = ++backups->members->assignments;
	m->assigned.at_us = backups->run->now_us;
	backups->restore.asked_us = backups->run->now_us;
	backups->run->progress++;
	copies_release(backups->members, m);
	member_apply(backups->run, m, EVENT_RESTORE, why);
}

static void order_restore(struct backups *backups, struct member *m, struct msg *msg)
{
	begin_order(backups, m,
		    msg->u.restore.kind == RESTORE_FILE ? "reading a checkpoint"
							: "averaging its neighbours");
	msg->u.restore.assignment = m->assigned.number;
	member_send(backups->run, m, msg);
}

/* Orders m to make the weights that the stage had at the start of the run. */
static void order_first(struct backups *backups, struct member *m, int stage)
{
	struct msg a = { .type = MSG_ASSIGN }, first;

	begin_order(backups, m, "building its first weights");
	a.u.assign = (struct msg_assign){ m->assigned.number, (uint8_t)stage, false };
	if (first_weights_order(backups->run, &a.u.assign, &first))
		a = first;
	member_send(backups->run, m, &a);
}

static bool read_stage(struct backups *backups, int stage)
{
	struct restoring *r = &backups->restore;
	struct msg m = { .type = MSG_RESTORE };
	uint64_t hash = 0;
	struct member *who = choose_reader(backups, stage, &hash);

	if (!who)
		return false;
	if (member_stage(backups->run, who) != stage)
		stage_moves_exchange(backups->members, who, stage);
	r->who[stage] = who->id;
	if (r->state == RESTORING_FIRST_WEIGHTS) {
		order_first(backups, who, stage);
		return true;
	}
	m.u.restore = (struct msg_restore){ .stage = (uint8_t)stage,
					    .kind = RESTORE_FILE,
					    .iteration = r->iteration,
					    .hash = hash,
					    .on_controller = files_has_stage(backups, r->iteration,
									     stage) };
	order_restore(backups, who, &m);
	return true;
}

/* Orders nodes to read the stages' files. Returns false if no node can read the file of some
 * stage. */
static bool read_stages(struct backups *backups)
{
	struct restoring *r = &backups->restore;

	for (int s = 0; s < backups->run->cluster->n_stages; s++)
		if (r->who[s] < 0 && !read_stage(backups, s) &&
		    (r->lost >> s & 1 || lost_ones_read(backups)))
			return false;
	return true;
}

/* ---- restoring a checkpoint ---- */

static void apply(struct restoring *r, enum restoring_event event)
{
	bool is_possible = restoring_apply(&r->state, event);

	assert(is_possible);
	(void)is_possible;
}

/* Ends the restore with this event. Forgets everything about it except which checkpoints are
 * unusable. */
static void end(struct backups *backups, enum restoring_event event)
{
	struct restoring *r = &backups->restore;

	apply(r, event);
	free(r->shards);
	*r = (struct restoring){ .state = r->state, .below = r->below };
	for (uint32_t i = 0; i < backups->members->n; i++)
		member_apply(backups->run, &backups->members->list[i], EVENT_ABANDON, NULL);
}

void restore_fini(struct backups *backups)
{
	free(backups->restore.shards);
	backups->restore.shards = NULL;
}

/* Takes all nodes out of their stages, because their weights belong to iterations that will be
 * repeated. */
static void leave_all(struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		copies_release(members, m);
		if (member_is_replica(m) && m->is_marked)
			member_apply(members->run, m, EVENT_RETIRE, "marked failed");
		else
			member_apply(members->run, m, EVENT_REWIND,
				     "the run goes back to a checkpoint");
		m->assigned.at_us = members->run->now_us;
	}
}

static void reject_checkpoint(struct backups *backups)
{
	struct restoring *r = &backups->restore;

	/* While the first weights are made again, no checkpoint is read, so no checkpoint becomes
	 * unusable. The run continues when more nodes have joined. */
	if (r->state == RESTORING_CHECKPOINT) {
		r->below = r->iteration;
		note(backups->run, NOTE_WARNING, -1, 0, "the checkpoint of it%llu is unusable: %s",
		     (unsigned long long)r->iteration,
		     restore_newest(backups->run, r->iteration) > 0
			     ? "an older one is used"
			     : "there is no older one; start an agent that has its files");
	}
	end(backups, RESTORING_REJECT);
}

/* Takes all nodes out of their stages, and orders one node for each stage to restore it. */
static void begin(struct backups *backups, uint64_t iteration)
{
	struct restoring *r = &backups->restore;

	r->iteration = iteration;
	for (int st = 0; st < backups->run->cluster->n_stages; st++) {
		r->lost |= (uint64_t)!is_held(backups->members, st, NULL) << st;
		r->who[st] = -1;
	}
	leave_all(backups->members);
	if (!read_stages(backups))
		reject_checkpoint(backups);
}

/* Chooses the newest complete checkpoint. */
bool restore_checkpoint(struct backups *backups)
{
	struct restoring *r = &backups->restore;
	struct shards s = { NULL, 0, 0 };
	uint64_t k = read_shards(backups->run, &s, r->below ? r->below : UINT64_MAX);

	if (k == 0) {
		free(s.list);
		return false;
	}
	end(backups, RESTORING_GIVE_UP);
	apply(r, RESTORING_READ);
	r->shards = s.list;
	r->n_shards = s.n;
	if (k == backups->run->committed)
		note(backups->run, NOTE_EVENT, -1, 0,
		     "the stages are read from the checkpoint of it%llu", (unsigned long long)k);
	else
		note(backups->run, NOTE_ALERT, -1, 0,
		     "the run goes back from it%llu to the checkpoint of it%llu",
		     (unsigned long long)backups->run->committed, (unsigned long long)k);
	begin(backups, k);
	return true;
}

bool restore_first(struct backups *backups)
{
	int nodes = 0;

	for (int s = 0; s < backups->run->cluster->n_stages; s++)
		nodes += (int)alive_in(backups->members, s);
	if (nodes < backups->run->cluster->n_stages || restore_newest(backups->run, UINT64_MAX) > 0)
		return false;
	end(backups, RESTORING_GIVE_UP);
	apply(&backups->restore, RESTORING_BUILD);
	note(backups->run, NOTE_ALERT, -1, 0,
	     "a stage is lost before the first checkpoint: the run goes back from it%llu to its "
	     "first weights",
	     (unsigned long long)backups->run->committed);
	begin(backups, 0);
	return true;
}

void restore_look_again(struct backups *backups)
{
	if (backups->restore.state == RESTORING_NOTHING)
		backups->restore.below = 0;
}

static void trim_history(struct members *members)
{
	while (members->run->record.curves.n_iterations > 0 &&
	       members->run->record.curves.iterations[members->run->record.curves.n_iterations - 1]
			       .iteration > members->run->committed)
		members->run->record.curves.n_iterations--;
	while (members->run->record.curves.n_validations > 0 &&
	       members->run->record.curves
			       .validations[members->run->record.curves.n_validations - 1]
			       .iteration > members->run->committed)
		members->run->record.curves.n_validations--;
	members->run->record.n_rewinds++;
	consoles_run(members);
}

static void admit_reader(struct run *run, struct member *m)
{
	m->weights.stage = (uint8_t)member_stage(run, m);
	member_apply(run, m, EVENT_ADMIT, "");
}

/* Goes back to the checkpoint once all files have been read. The store changes first. From this
 * change on, the run is at the checkpoint. Returns false if the store could not be written, which
 * ends the run. */
static bool go_back(struct backups *backups)
{
	struct restoring *r = &backups->restore;
	struct store_restore rows[MSG_STAGES];
	struct error err = { "" };

	for (int s = 0; s < backups->run->cluster->n_stages; s++) {
		const struct member *m = &backups->members->list[r->who[s]];

		rows[s] = (struct store_restore){ .iteration = r->iteration,
						  .last = backups->run->committed,
						  .stage = (uint8_t)s,
						  .node = m->id,
						  .hash = m->weights.hash,
						  .wall_us = clock_wall_us() };
	}
	if (store_restore(backups->run->record.store, rows,
			  (size_t)backups->run->cluster->n_stages, &err) != 0) {
		controller_finish(backups->members, 1, err.text);
		return false;
	}
	if (r->iteration == backups->run->committed)
		note(backups->run, NOTE_EVENT, -1, 'R', "restored: no iteration is repeated");
	else
		note(backups->run, NOTE_EVENT, -1, 'R', "restored: it%llu to it%llu are repeated",
		     (unsigned long long)r->iteration + 1,
		     (unsigned long long)backups->run->committed);
	for (uint32_t i = 0; i < backups->members->n; i++)
		if (backups->members->list[i].weights.iterations >
		    /* the repeated iterations will give other weights with the same iteration
		     * number */
		    r->iteration)
			backups->members->list[i].weights.stage = MSG_NO_STAGE;
	for (int s = 0; s < backups->run->cluster->n_stages; s++)
		admit_reader(backups->run, &backups->members->list[r->who[s]]);
	/* no iteration is under way, so run->iteration gets the number of the last commit */
	if (r->iteration < backups->run->committed)
		backups->run->iteration = r->iteration;
	backups->run->committed = r->iteration;
	backups->run->last_commit = (struct msg_commit){ .iteration = 0 };
	backups->saving =
		(struct checkpointing){ .last = r->iteration,
					.before_last = restore_newest(backups->run, r->iteration),
					.complete = r->iteration,
					.failure = backups->saving.failure };
	record_newest_checkpoint(backups->run, r->iteration);
	backups->run->committed_us = backups->run->now_us;
	r->below = 0;
	end(backups, RESTORING_FINISH);
	trim_history(backups->members);
	skip_phases_go_back(backups->planning);
	resume_save(backups->members);
	request_restart(&backups->run->requests, "restored from a checkpoint");
	return true;
}

/* ---- averaging the neighbours ---- */

/* Adds a live replica of the stage `other`, but not the taker, to the order m. Returns false if
 * there is no such replica, or if the tensors of the two stages differ in shape. */
static bool add_neighbour(struct backups *backups, const struct member *taker, int other,
			  struct msg_restore *m, double *squares, uint16_t *nodes, uint8_t *stages)
{
	for (uint32_t i = 0; i < backups->members->n; i++) {
		const struct member *o = &backups->members->list[i];

		if (other < 0 ||
		    !average_fits(&backups->run->training.model, m->stage, (uint32_t)other) ||
		    o == taker || o->state != MEMBER_LIVE ||
		    member_stage(backups->run, o) != other ||
		    o->weights.iterations != backups->run->committed)
			continue;
		squares[m->n_from] = backups->stage_squares[other];
		nodes[m->n_from] = o->id;
		stages[m->n_from++] = (uint8_t)other;
		return true;
	}
	return false;
}

/* Each neighbour's weight in the average is its squared gradient norm in the last commit, if both
 * norms are known. Otherwise both neighbours count equally. */
bool restore_average(struct backups *backups, int stage, struct member *taker)
{
	struct restoring *r = &backups->restore;
	struct msg m = { .type = MSG_RESTORE };
	struct msg_restore *o = &m.u.restore;
	double squares[2] = { 0, 0 };
	uint64_t hashes[2];

	o->stage = (uint8_t)stage;
	o->kind = RESTORE_AVERAGE;
	o->iteration = backups->run->committed;
	add_neighbour(backups, taker, stage - 1, o, squares, r->from_nodes, r->from);
	add_neighbour(backups, taker, stage + 1, o, squares, r->from_nodes, r->from);
	if (o->n_from == 0)
		return false;
	for (uint32_t i = 0; i < o->n_from; i++)
		hashes[i] = backups->members->list[r->from_nodes[i]].weights.hash;
	r->weights[0] = r->weights[1] = 1.0f / (float)o->n_from;
	if (o->n_from == 2 && squares[0] + squares[1] > 0) {
		r->weights[0] = (float)(squares[0] / (squares[0] + squares[1]));
		r->weights[1] = 1 - r->weights[0];
	}
	o->nodes = r->from_nodes;
	o->stages = r->from;
	o->weights = r->weights;
	o->hashes = hashes;
	if (member_stage(backups->run, taker) != stage)
		stage_moves_exchange(backups->members, taker, stage);
	apply(r, RESTORING_COMBINE);
	r->iteration = backups->run->committed;
	r->stage = stage;
	r->n_from = o->n_from;
	r->who[stage] = taker->id;
	note(backups->run, NOTE_ALERT, taker->id, 0,
	     "S%d is lost: no copy, no checkpoint. n%02u averages its neighbours, %.2f of S%u%s",
	     stage, taker->id, (double)r->weights[0], r->from[0],
	     o->n_from == 2 ? " and the rest of the other" : "");
	order_restore(backups, taker, &m);
	return true;
}

static void finish_average(struct backups *backups)
{
	struct restoring *r = &backups->restore;
	struct member *m = &backups->members->list[r->who[r->stage]];
	struct store_restore row = { .iteration = backups->run->committed,
				     .last = backups->run->committed,
				     .stage = (uint8_t)r->stage,
				     .node = m->id,
				     .hash = m->weights.hash,
				     .wall_us = clock_wall_us(),
				     .n_from = r->n_from };
	struct error err = { "" };

	memcpy(row.from, r->from, sizeof(row.from));
	memcpy(row.weight, r->weights, sizeof(row.weight));
	if (store_restore(backups->run->record.store, &row, 1, &err) != 0) {
		controller_finish(backups->members, 1, err.text);
		return;
	}
	note(backups->run, NOTE_WARNING, m->id, 'R',
	     "n%02u holds S%d, averaged from its neighbours after it%llu", m->id, r->stage,
	     (unsigned long long)backups->run->committed);
	backups->saving = (struct checkpointing){ .failure = backups->saving.failure };
	record_newest_checkpoint(backups->run, 0);
	admit_reader(backups->run, m);
	end(backups, RESTORING_FINISH);
}

/* ---- in progress ---- */

/* Handles a node that could not load the weights with which the run begins. The controller asks the
 * node again later, unless the run has not begun yet. */
static void first_weights_failed(struct backups *backups, struct member *m,
				 const struct msg_unready *u)
{
	if (backups->run->training.origin.folder[0] == '\0' || m->state != MEMBER_SYNCING)
		return;
	if (backups->run->phase == PHASE_GATHERING && !backups->run->resumed) {
		controller_finish(backups->members, 1, u->text);
		return;
	}
	note(backups->run, NOTE_ALERT, m->id, 0, "n%02u: %.150s", m->id, u->text);
	member_apply(backups->run, m, EVENT_WAIT, "could not load the first weights");
	m->assigned.at_us = backups->run->now_us;
}

void restore_failed(struct backups *backups, struct member *m, const struct msg_unready *u)
{
	if (u->assignment != m->assigned.number)
		return;
	if (!member_is_restoring(m)) {
		first_weights_failed(backups, m, u);
		return;
	}
	m->checkpoint.failed = backups->restore.iteration;
	m->checkpoint.unready_us = backups->run->now_us;
	/* Earlier heartbeats reported weights of this stage, but the failed attempt may have
	 * overwritten them */
	m->beat.stage = MSG_NO_STAGE;
	if (backups->restore.state == RESTORING_AVERAGE)
		backups->stall.next_average_us = backups->run->now_us + AVERAGE_AGAIN_US;
	member_apply(backups->run, m, EVENT_WAIT, "could not restore its stage");
	note(backups->run, NOTE_ALERT, m->id, 0, "n%02u: %.150s", m->id, u->text);
}

bool restore_averted(struct backups *backups, int stage)
{
	struct restoring *r = &backups->restore;
	struct member *taker;

	if (restoring_goes_back(r->state))
		return false;
	if (r->state == RESTORING_NOTHING || r->stage != stage)
		return true;
	taker = &backups->members->list[r->who[stage]];
	end(backups, RESTORING_GIVE_UP);
	taker->assigned.number = ++backups->members->assignments;
	if (member_alive(taker) && !taker->is_marked)
		member_apply(backups->run, taker, EVENT_WAIT, "its stage is back");
	return true;
}

static const double parameter_bytes = 12;

/* Returns the seconds that the node needs to fetch its neighbours' weights. */
static double fetches_s(const struct backups *backups)
{
	const struct restoring *r = &backups->restore;
	double s = 0;

	/* n_from is 0 except when neighbours are averaged */
	for (uint32_t i = 0; i < r->n_from; i++)
		s += placement_transfer_s(
			backups->members, &backups->members->list[r->from_nodes[i]],
			&backups->members->list[r->who[r->stage]],
			parameter_bytes *
				(double)backups->run->training.stage_parameters[r->from[i]]);
	return s;
}

/* Returns true if a node was ordered to restore the stage. */
static bool has_reader(const struct restoring *r, int stage)
{
	return r->state == RESTORING_AVERAGE ? stage == r->stage : r->who[stage] >= 0;
}

/* Finds the nodes that have not answered their orders, and returns their number. Sets *most to the
 * number of parameters of the largest stage that these nodes restore. */
static uint32_t find_silent(const struct backups *backups, struct member *silent[MSG_STAGES],
			    uint64_t *most)
{
	const struct restoring *r = &backups->restore;
	uint32_t n = 0;

	*most = 0;
	for (int s = 0; s < backups->run->cluster->n_stages; s++) {
		struct member *m;

		if (!has_reader(r, s))
			continue;
		m = &backups->members->list[r->who[s]];
		if (has_answered(backups, m))
			continue;
		silent[n++] = m;
		if (backups->run->training.stage_parameters[s] > *most)
			*most = backups->run->training.stage_parameters[s];
	}
	return n;
}

int64_t restore_patience_us(const struct backups *backups, int64_t answered_us)
{
	static const double parameter_us = 1, times = 3;
	int64_t others_us = answered_us - backups->restore.asked_us;
	struct member *silent[MSG_STAGES];
	uint64_t most;

	find_silent(backups, silent, &most);
	return backups->run->options.limits.overdue_us +
	       (int64_t)(parameter_us * (double)most + times * 1e6 * fetches_s(backups)) +
	       (others_us > 0 ? (int64_t)(times * (double)others_us) : 0);
}

void restore_abandon_silent(struct backups *backups)
{
	struct member *silent[MSG_STAGES];
	uint64_t most;
	uint32_t n = find_silent(backups, silent, &most);

	backups->run->progress++;
	for (uint32_t i = 0; i < n; i++) {
		struct member *m = silent[i];

		note(backups->run, NOTE_ALERT, m->id, 0,
		     "n%02u does not answer the order to restore S%d", m->id,
		     member_stage(backups->run, m));
		/* The new number shows that a late answer of the abandoned node is outdated. */
		m->assigned.number = ++backups->members->assignments;
		m->checkpoint.silent_in = backups->run->iteration;
		member_apply(backups->run, m, EVENT_WAIT, "did not restore its stage");
	}
}

/* Replaces nodes that have died while they read. Continues the run once all have answered. */
enum restore_outcome restore_turn(struct backups *backups)
{
	struct restoring *r = &backups->restore;
	bool all = true;

	for (int s = 0; s < backups->run->cluster->n_stages; s++) {
		if (!has_reader(r, s))
			continue;
		if (member_is_restoring(&backups->members->list[r->who[s]]))
			continue;
		if (r->state == RESTORING_AVERAGE) {
			end(backups, RESTORING_GIVE_UP);
			return RESTORE_SETTLED;
		}
		r->who[s] = -1;
	}
	if (restoring_goes_back(r->state) && !read_stages(backups)) {
		reject_checkpoint(backups);
		return RESTORE_SETTLED;
	}
	for (int s = 0; s < backups->run->cluster->n_stages; s++)
		if (restoring_goes_back(r->state) || s == r->stage)
			all = all && r->who[s] >= 0 &&
			      has_answered(backups, &backups->members->list[r->who[s]]);
	if (!all)
		return RESTORE_UNANSWERED;
	if (disk_is_locked(backups->run))
		return RESTORE_SETTLED; /* the next turn tries to go back again */
	if (restoring_goes_back(r->state))
		return go_back(backups) ? RESTORE_WENT_BACK : RESTORE_SETTLED;
	finish_average(backups);
	return RESTORE_SETTLED;
}
