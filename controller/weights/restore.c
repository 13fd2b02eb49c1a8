/* restore.c - a stage that no process holds any more: all go back to a checkpoint; where there
 * is none, the stage is made of its neighbours.
 *
 * Going back is decided last: first one node of every stage reads its file and says so, the last that
 * holds a stage of the last commit not before those that nobody holds were read; then the store forgets
 * what was committed after the checkpoint, in one durable transaction with the record of who has what
 * again; then the run goes on from there. A file that is damaged is said, and an older checkpoint taken.
 * Who says nothing for much longer than the others took is given up, and asked again only where nobody
 * else can read the file. The other replicas fetch from those.
 */
#include "controller/weights/restore.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "controller/controller.h"
#include "controller/history/finish.h"
#include "controller/history/run_state.h"
#include "controller/iteration/stall_detector.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/members/placement.h"
#include "controller/operator/announce.h"
#include "controller/operator/journal.h"
#include "controller/weights/copies.h"
#include "controller/weights/stage_moves.h"
#include "model/average.h"

enum {
	ANEW_AGAIN_US = 1000000, /* until a stage that could not be made of its neighbours is tried again */
	SILENT_FOR = 200 /* iterations that a node is remembered which was asked and did not answer */
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

	if (!array_grow(&s->list, &s->room, s->n + 1, sizeof(*s->list)))
		return -ENOMEM;
	s->list[s->n].iteration = k->iteration;
	s->list[s->n].stage = k->stage;
	s->list[s->n].hash = k->hash;
	snprintf(s->list[s->n].host, sizeof(s->list[s->n].host), "%s", k->host);
	s->n++;
	return 0;
}

/* The newest whole one before `below`; 0 none. */
static uint64_t newest_checkpoint(const struct controller *c, const struct kept_shard *list, uint32_t n,
		       uint64_t below)
{
	uint64_t iteration = 0;
	uint64_t stages = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (list[i].iteration >= below || list[i].stage >= c->cluster->n_stages)
			continue;
		if (list[i].iteration != iteration)
			stages = 0;
		iteration = list[i].iteration;
		stages |= UINT64_C(1) << list[i].stage;
		if (stages == (c->cluster->n_stages == 64
				       ? UINT64_MAX
				       : (UINT64_C(1) << c->cluster->n_stages) - 1))
			return iteration;
	}
	return 0;
}

static uint64_t read_shards(struct controller *c, struct shards *s, uint64_t below)
{
	struct error err = { "" };

	if (store_each_shard(c->store, see_shard, s, &err) != 0)
		log_line(&c->log, LOG_ERROR, "%s", err.text);
	return newest_checkpoint(c, s->list, s->n, below);
}

uint64_t restore_newest(struct controller *c)
{
	struct shards s = { NULL, 0, 0 };
	uint64_t newest = read_shards(c, &s, UINT64_MAX);

	free(s.list);
	return newest;
}

/* ---- who reads it ---- */

static bool has_tried(const struct restoring *r, const struct member *m)
{
	return m->failed_restore == r->iteration;
}

static uint32_t alive_in(const struct controller *c, int stage)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++)
		n += member_alive(&c->members[i]) && !c->members[i].marked &&
		     member_stage(c, &c->members[i]) == stage;
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

/* Who reads a file will hold something else. */
static bool is_held(const struct controller *c, int stage, const struct member *but)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if (m != but && member_alive(m) && !m->marked && !m->restoring && member_holds(c, m, stage))
			return true;
	}
	return false;
}

static bool was_silent(const struct controller *c, const struct member *m)
{
	return m->silent_restore_in > 0 && m->silent_restore_in + SILENT_FOR > c->iteration;
}

static bool has_answered(const struct controller *c, const struct member *m)
{
	return m->ready && m->holds == c->restore.iteration;
}

static bool lost_ones_read(const struct controller *c)
{
	const struct restoring *r = &c->restore;

	for (int s = 0; s < c->cluster->n_stages; s++)
		if (r->lost >> s & 1 && (r->who[s] < 0 || !has_answered(c, &c->members[r->who[s]])))
			return false;
	return true;
}

/* Had it read a file, and could another not be read, its stage would be lost as well. */
static bool last_holder(const struct controller *c, const struct member *m)
{
	return member_holds(c, m, m->held_stage) && !is_held(c, m->held_stage, m);
}

/* A node of the stage whose machine has the file; else one of a stage that has others; else
 * (the folder may be shared) any of the stage; at last one that was silent when it was asked. */
static struct member *choose_reader(struct controller *c, int stage, uint64_t *hash)
{
	const struct restoring *r = &c->restore;
	bool any = r->lost >> stage & 1 || lost_ones_read(c);
	struct member *best = NULL;
	int rank = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];
		bool own = member_stage(c, m) == stage, has;
		int mine;

		if (!member_alive(m) || m->marked || !m->welcomed || !m->hello.saves ||
		    m->restoring || has_tried(r, m) || (!any && last_holder(c, m)))
			continue;
		has = on_host(r, m, stage, hash);
		mine = own && has ? 3 : has && alive_in(c, member_stage(c, m)) > 1 ? 2 : own;
		if (mine && !was_silent(c, m))
			mine += 3;
		if (mine > rank) {
			best = m;
			rank = mine;
		}
	}
	return best;
}

static void order_restore(struct controller *c, struct member *m, struct msg *msg)
{
	m->replica = false;
	m->ready = false;
	m->assignment = msg->u.restore.assignment = ++c->assignments;
	m->assigned_us = c->now_us;
	m->restoring = true;
	c->restore.asked_us = c->now_us;
	c->steps++;
	copies_release(c, m);
	members_set(c, m, NODE_SYNCING,
		    msg->u.restore.kind == RESTORE_FILE ? "reading a checkpoint"
							: "made of its neighbours");
	member_send(c, m, msg);
}

static bool read_stage(struct controller *c, int stage)
{
	struct restoring *r = &c->restore;
	struct msg m = { .type = MSG_RESTORE };
	uint64_t hash = 0;
	struct member *who = choose_reader(c, stage, &hash);

	if (!who)
		return false;
	if (member_stage(c, who) != stage)
		stage_moves_exchange(c, who, stage);
	r->who[stage] = who->id;
	m.u.restore = (struct msg_restore){ .stage = (uint8_t)stage,
					    .kind = RESTORE_FILE,
					    .iteration = r->iteration,
					    .hash = hash };
	order_restore(c, who, &m);
	return true;
}

/* False: one of the stages has nobody who could read it. */
static bool read_stages(struct controller *c)
{
	struct restoring *r = &c->restore;

	for (int s = 0; s < c->cluster->n_stages; s++)
		if (r->who[s] < 0 && !read_stage(c, s) && (r->lost >> s & 1 || lost_ones_read(c)))
			return false;
	return true;
}

/* ---- going back ---- */

static void give_up(struct controller *c)
{
	struct restoring *r = &c->restore;

	free(r->shards);
	*r = (struct restoring){ .below = r->below };
	for (uint32_t i = 0; i < c->n_members; i++)
		c->members[i].restoring = false;
}

void restore_fini(struct controller *c)
{
	free(c->restore.shards);
	c->restore.shards = NULL;
}

/* Everybody leaves what it was doing: what is held is of iterations that will not have been. */
static void leave_all(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		m->replica = false;
		m->ready = false;
		copies_release(c, m);
		if (member_alive(m) && !m->marked)
			members_set(c, m, NODE_JOINING, "the run goes back to a checkpoint");
		m->assigned_us = c->now_us;
	}
}

static void of_no_use(struct controller *c)
{
	struct restoring *r = &c->restore;

	r->below = r->iteration;
	note(c, NOTE_WARNING, -1, 0, "the checkpoint of it%llu is of no use: an older one is looked for",
	     (unsigned long long)r->iteration);
	give_up(c);
}

/* The newest whole one is chosen, all leave what they were doing, and one node of each stage is told to read. */
bool restore_checkpoint(struct controller *c)
{
	struct restoring *r = &c->restore;
	struct shards s = { NULL, 0, 0 };
	uint64_t k = read_shards(c, &s, r->below ? r->below : UINT64_MAX);

	if (k == 0) {
		free(s.list);
		return false;
	}
	give_up(c);
	r->active = true;
	r->iteration = k;
	r->shards = s.list;
	r->n_shards = s.n;
	note(c, NOTE_ALERT, -1, 0, "the run goes back from it%llu to the checkpoint of it%llu",
	     (unsigned long long)c->committed, (unsigned long long)k);
	for (int st = 0; st < c->cluster->n_stages; st++) {
		r->lost |= (uint64_t)!is_held(c, st, NULL) << st;
		r->who[st] = -1;
	}
	leave_all(c);
	if (!read_stages(c))
		of_no_use(c);
	return true;
}

void restore_look_again(struct controller *c)
{
	if (!c->restore.active)
		c->restore.below = 0;
}

static void trim_history(struct controller *c)
{
	while (c->curves.n_history > 0 && c->curves.history[c->curves.n_history - 1].iteration > c->committed)
		c->curves.n_history--;
	while (c->curves.n_validations > 0 &&
	       c->curves.validations[c->curves.n_validations - 1].iteration > c->committed)
		c->curves.n_validations--;
	c->n_rewinds++;
	consoles_run(c);
}

static void admit_reader(struct controller *c, struct member *m)
{
	m->replica = true;
	m->restoring = false;
	m->held_stage = (uint8_t)member_stage(c, m);
	members_set(c, m, NODE_LIVE, "");
}

/* All have been read. Durable first; from then on the run is where the checkpoint was. */
static void go_back(struct controller *c)
{
	struct restoring *r = &c->restore;
	struct store_restore rows[MSG_STAGES];
	struct error err = { "" };

	for (int s = 0; s < c->cluster->n_stages; s++) {
		const struct member *m = &c->members[r->who[s]];

		rows[s] = (struct store_restore){ .iteration = r->iteration,
						  .last = c->committed,
						  .stage = (uint8_t)s,
						  .node = m->id,
						  .hash = m->hash,
						  .wall_us = clock_wall_us() };
	}
	if (store_restore(c->store, rows, (size_t)c->cluster->n_stages, &err) != 0) {
		controller_finish(c, 1, err.text);
		return;
	}
	note(c, NOTE_EVENT, -1, 'R', "restored: it%llu to it%llu are computed again",
	     (unsigned long long)r->iteration + 1, (unsigned long long)c->committed);
	for (uint32_t i = 0; i < c->n_members; i++)
		if (c->members[i].holds > r->iteration) /* other weights will have that number */
			c->members[i].held_stage = MSG_NO_STAGE;
	for (int s = 0; s < c->cluster->n_stages; s++)
		admit_reader(c, &c->members[r->who[s]]);
	c->committed = r->iteration;
	c->last_commit = (struct msg_commit){ .iteration = 0 };
	c->saving = (struct checkpointing){ .last = r->iteration };
	c->evaluation.wanted = false;
	c->committed_us = c->now_us;
	r->below = 0;
	give_up(c);
	trim_history(c);
	resume_save(c);
	request_anew(&c->requests, "restored from a checkpoint");
}

/* ---- the average of the neighbours ---- */

static bool add_neighbour(struct controller *c, int stage, int other, struct msg_restore *m,
		      double *squares, uint16_t *nodes, uint8_t *stages)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *o = &c->members[i];

		if (other < 0 || !average_fits(&c->model, (uint32_t)stage, (uint32_t)other) ||
		    !o->replica || o->state != NODE_LIVE || member_stage(c, o) != other ||
		    o->holds != c->committed)
			continue;
		squares[m->n_from] = c->stage_squares[other];
		nodes[m->n_from] = o->id;
		stages[m->n_from++] = (uint8_t)other;
		return true;
	}
	return false;
}

/* Weights by the squares of the neighbours' last gradients, where both are known; else alike. */
bool restore_average(struct controller *c, int stage, struct member *taker)
{
	struct restoring *r = &c->restore;
	struct msg m = { .type = MSG_RESTORE };
	struct msg_restore *o = &m.u.restore;
	double squares[2] = { 0, 0 };
	uint64_t hashes[2];

	o->stage = (uint8_t)stage;
	o->kind = RESTORE_AVERAGE;
	o->iteration = c->committed;
	add_neighbour(c, stage, stage - 1, o, squares, r->from_nodes, r->from);
	add_neighbour(c, stage, stage + 1, o, squares, r->from_nodes, r->from);
	if (o->n_from == 0)
		return false;
	for (uint32_t i = 0; i < o->n_from; i++)
		hashes[i] = c->members[r->from_nodes[i]].hash;
	r->weights[0] = r->weights[1] = 1.0f / (float)o->n_from;
	if (o->n_from == 2 && squares[0] + squares[1] > 0) {
		r->weights[0] = (float)(squares[0] / (squares[0] + squares[1]));
		r->weights[1] = 1 - r->weights[0];
	}
	o->nodes = r->from_nodes;
	o->stages = r->from;
	o->weights = r->weights;
	o->hashes = hashes;
	r->active = true;
	r->average = true;
	r->iteration = c->committed;
	r->stage = stage;
	r->n_from = o->n_from;
	r->who[stage] = taker->id;
	note(c, NOTE_ALERT, taker->id, 0,
	     "S%d is lost: no copy, no checkpoint. n%02u makes it of %.2f S%u%s", stage,
	     taker->id, (double)r->weights[0], r->from[0],
	     o->n_from == 2 ? " and its other neighbour" : "");
	order_restore(c, taker, &m);
	return true;
}

static void finish_average(struct controller *c)
{
	struct restoring *r = &c->restore;
	struct member *m = &c->members[r->who[r->stage]];
	struct store_restore row = { .iteration = c->committed,
				     .last = c->committed,
				     .stage = (uint8_t)r->stage,
				     .node = m->id,
				     .hash = m->hash,
				     .wall_us = clock_wall_us(),
				     .n_from = r->n_from };
	struct error err = { "" };

	memcpy(row.from, r->from, sizeof(row.from));
	memcpy(row.weight, r->weights, sizeof(row.weight));
	if (store_restore(c->store, &row, 1, &err) != 0) {
		controller_finish(c, 1, err.text);
		return;
	}
	note(c, NOTE_WARNING, m->id, 'R',
	     "n%02u holds S%d, made of its neighbours after it%llu", m->id, r->stage,
	     (unsigned long long)c->committed);
	c->saving = (struct checkpointing){ .iteration = 0 };
	admit_reader(c, m);
	give_up(c);
}

/* ---- under way ---- */

void restore_failed(struct controller *c, struct member *m, const struct msg_unready *u)
{
	if (!m->restoring || u->assignment != m->assignment)
		return;
	m->failed_restore = c->restore.iteration;
	m->restoring = false;
	m->unready_us = c->now_us;
	m->beat.stage = MSG_NO_STAGE; /* that was before it tried */
	if (c->restore.average)
		c->stall.next_anew_us = c->now_us + ANEW_AGAIN_US;
	members_set(c, m, NODE_JOINING, "could not restore its stage");
	note(c, NOTE_ALERT, m->id, 0, "n%02u: %.150s", m->id, u->text);
}

bool restore_averted(struct controller *c, int stage)
{
	struct restoring *r = &c->restore;
	struct member *taker;

	if (!r->active || (r->average && r->stage != stage))
		return true;
	if (!r->average)
		return false;
	taker = &c->members[r->who[stage]];
	give_up(c);
	taker->assignment = ++c->assignments;
	if (member_alive(taker) && !taker->marked)
		members_set(c, taker, NODE_JOINING, "its stage is back");
	return true;
}

static const double parameter_bytes = 12;

/* What a stage is made of is fetched from others first. */
static double fetches_s(const struct controller *c)
{
	const struct restoring *r = &c->restore;
	double s = 0;

	for (uint32_t i = 0; r->average && i < r->n_from; i++)
		s += placement_transfer_s(c, &c->members[r->from_nodes[i]], &c->members[r->who[r->stage]],
				      parameter_bytes * (double)c->stage_parameters[r->from[i]]);
	return s;
}

/* How long after the last word of the others, counted in looks. */
static int64_t patience_us(const struct controller *c, uint64_t parameters)
{
	static const double parameter_us = 1, times = 3;
	int64_t others_us = c->still.hung_us - c->restore.asked_us;

	return c->options.overdue_us + (int64_t)(parameter_us * (double)parameters + times * 1e6 * fetches_s(c)) +
	       (others_us > 0 ? (int64_t)(times * (double)others_us) : 0);
}

/* A node that does not answer within the limit is abandoned, and another is asked. It is asked again only if no other
 * node can restore the stage. */
static void give_up_silent(struct controller *c)
{
	struct restoring *r = &c->restore;
	struct member *silent[MSG_STAGES];
	uint32_t n = 0;
	uint64_t most = 0;

	for (int s = 0; s < c->cluster->n_stages; s++) {
		struct member *m;

		if (r->average ? s != r->stage : r->who[s] < 0)
			continue;
		m = &c->members[r->who[s]];
		if (has_answered(c, m))
			continue;
		silent[n++] = m;
		most = c->stage_parameters[s] > most ? c->stage_parameters[s] : most;
	}
	if (!stall_for(c, patience_us(c, most)))
		return;
	c->steps++;
	for (uint32_t i = 0; i < n; i++) {
		struct member *m = silent[i];

		note(c, NOTE_ALERT, m->id, 0, "n%02u says nothing of S%d, which it is to put back", m->id,
		     member_stage(c, m));
		m->restoring = false;
		m->assignment = ++c->assignments; /* what it says now comes too late */
		m->silent_restore_in = c->iteration;
		members_set(c, m, NODE_JOINING, "did not put its stage back");
	}
}

static bool at_it(const struct member *m)
{
	return m->restoring && member_alive(m) && !m->marked;
}

/* Who is gone is replaced; once all have answered the run goes on; until then who is silent for too long is given
 * up. */
void restore_turn(struct controller *c)
{
	struct restoring *r = &c->restore;
	bool all = true;

	for (int s = 0; s < c->cluster->n_stages; s++) {
		if (r->average ? s != r->stage : r->who[s] < 0)
			continue;
		if (at_it(&c->members[r->who[s]]))
			continue;
		if (r->average) {
			give_up(c);
			return;
		}
		r->who[s] = -1;
	}
	if (!r->average && !read_stages(c)) {
		of_no_use(c);
		return;
	}
	for (int s = 0; s < c->cluster->n_stages; s++)
		if (!r->average || s == r->stage)
			all = all && r->who[s] >= 0 && has_answered(c, &c->members[r->who[s]]);
	if (!all) {
		if (stall_look(c))
			give_up_silent(c);
	} else if (r->average) {
		finish_average(c);
	} else {
		go_back(c);
	}
}
