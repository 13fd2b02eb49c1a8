/* acts.c - carries out the operator's commands on nodes and on the run.
 *
 * Each function either refuses its command with a reason, or carries out the command, stores the
 * act for undo and writes a line to the journal. The journal shows a second operator what the
 * first operator did. */
#include "base/skip_schedule.h"
#include "controller/operator/acts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "controller/iteration/iteration.h"
#include "controller/members/announce.h"
#include "controller/members/finish.h"
#include "controller/members/member.h"
#include "controller/members/saved_state.h"
#include "controller/network/formats.h"
#include "controller/operator/command.h"
#include "controller/operator/faults.h"
#include "controller/operator/undo.h"
#include "controller/planning/replan.h"
#include "controller/planning/skip_phases.h"
#include "controller/planning/spares.h"
#include "controller/run/journal.h"
#include "controller/run/outcome.h"
#include "controller/run/rates.h"
#include "controller/run/stream.h"
#include "controller/run/supervisor.h"
#include "controller/weights/assign.h"
#include "controller/weights/restore.h"

enum { LEASE_MAX_S = 86400 };

bool acts_may_skip(const struct run *run, int64_t ratio, struct outcome *o)
{
	uint32_t skip = skip_share_stages(ratio), share = skip_share_of(ratio);

	if (ratio < 0 || ratio >= skip_share_pack(100, 0) ||
	    (int)skip > cluster_most_skipped(run->cluster) || (share > 0 && skip == 0))
		outcome_set(o, -EINVAL, "0 to %d of %d stages may be skipped",
			    cluster_most_skipped(run->cluster), run->cluster->n_stages);
	else if (skip_phases_forbid(run, (uint32_t)run->cluster->n_stages - skip, share))
		outcome_set(o, -EBUSY,
			    "the skipped stages have not been trained: they start from their "
			    "neighbours with the phase that visits them");
	else if (skip > 0 && run->options.planning.algorithm == PLAN_DTFM)
		outcome_set(o, -EPERM, "this run is planned by dtfm, which visits every stage");
	else if (share > 0 && run->options.planning.algorithm != PLAN_BEST)
		outcome_set(o, -EPERM,
			    "this run is planned by %s, which gives all microbatches paths of one "
			    "length",
			    plan_algorithm_name(run->options.planning.algorithm));
	else
		return true;
	return false;
}

void act_skip(struct operators *ops, const char *who, const struct msg_command *m,
	      struct outcome *o)
{
	uint32_t stages = (uint32_t)ops->run->cluster->n_stages, skip = skip_share_stages(m->value);
	int64_t before =
		skip_share_pack(ops->run->wanted.skip_share, stages - ops->run->wanted.path_length);
	char was[SKIP_SHARE_TEXT], is[SKIP_SHARE_TEXT];

	if (!acts_may_skip(ops->run, m->value, o))
		return;
	skip_share_format(skip_share_of(before), skip_share_stages(before), stages, was);
	skip_share_format(skip_share_of(m->value), skip, stages, is);
	if (m->value == before) {
		outcome_set(o, 0, "it is %s already", is);
		return;
	}
	undo_remember(&ops->acts, ops->run, who, COMMAND_SKIP, -1, m->value, before);
	ops->run->wanted.path_length = stages - skip;
	ops->run->wanted.skip_share = skip_share_of(m->value);
	note(ops->run, NOTE_COMMAND, -1, 'S', "skip %s -> %s (%s), from it%llu", was, is, who,
	     (unsigned long long)ops->run->committed + 1 +
		     (ops->run->iteration > ops->run->committed));
	outcome_set(o, 0, "planning skip %s", is);
	resume_save_change(ops->members);
	replan(ops->planning, "the skip ratio was changed");
}

bool acts_take_format(const struct msg_command *m, struct tensor_formats *formats,
		      struct outcome *o)
{
	bool sums = m->verb == COMMAND_SUM_WIRE;
	enum tensor_format format = m->value >= 0 && m->value < FORMAT_COUNT
					    ? (enum tensor_format)m->value
					    : FORMAT_COUNT;

	if (format == FORMAT_COUNT ||
	    !(sums ? tensor_format_suits_sums(format) : tensor_format_suits_activations(format))) {
		outcome_set(o, -EINVAL,
			    sums ? "sums travel in fp32, q8, q6 or q4"
				 : "activations travel in fp32, bf16, q8 or q6");
		return false;
	}
	if (sums)
		formats->sum_wire = format;
	else
		formats->wire = format;
	return true;
}

void act_wire(struct operators *ops, const char *who, const struct msg_command *m,
	      struct outcome *o)
{
	struct tensor_formats *wanted = &ops->run->wanted.formats, before = *wanted;
	bool sums = m->verb == COMMAND_SUM_WIRE;
	enum tensor_format was = sums ? before.sum_wire : before.wire;
	const char *verb = verb_name(m->verb), *to;

	if (!acts_take_format(m, wanted, o))
		return;
	to = tensor_format_name((enum tensor_format)m->value);
	if (formats_equal(wanted, &before)) {
		outcome_set(o, 0, "%s is %s already", verb, to);
		return;
	}
	undo_remember(&ops->acts, ops->run, who, (enum command_verb)m->verb, -1, m->value,
		      (int64_t)was);
	note(ops->run, NOTE_COMMAND, -1, 'W', "%s %s -> %s (%s), from it%llu", verb,
	     tensor_format_name(was), to, who,
	     (unsigned long long)ops->run->committed + 1 +
		     (ops->run->iteration > ops->run->committed));
	outcome_set(o, 0, "planning %s %s", verb, to);
	resume_save_change(ops->members);
	replan(ops->planning,
	       sums ? "the format of sums was changed" : "the format of activations was changed");
}

struct member *acts_member(struct members *members, int node, struct outcome *o)
{
	if (node < 0 || (uint32_t)node >= members->n) {
		outcome_set(o, -EINVAL, "there is no node %d", node);
		return NULL;
	}
	return &members->list[node];
}

/* Returns true, with the reason in *o, if the node drains. The drain itself may have marked such a
 * node, and the operator cannot remove that mark. */
static bool is_draining(const struct member *w, struct outcome *o)
{
	if (w->move.drain == DRAIN_NOT)
		return false;
	outcome_set(o, -EPERM, "n%02u is draining, and leaves by itself", w->id);
	return true;
}

void act_fail(struct operators *ops, const char *who, const struct msg_command *m,
	      struct outcome *o)
{
	int node = m->node;
	struct member *w = acts_member(ops->members, node, o);

	if (!w || is_draining(w, o))
		return;
	if (w->is_marked) {
		outcome_set(o, -EALREADY, "n%02d is marked failed already", node);
	} else if (member_is_replica(w) &&
		   stage_replicas(ops->members, member_stage(ops->run, w), w) == 0) {
		outcome_set(o, -EPERM, "n%02d holds the last copy of S%d", node,
			    member_stage(ops->run, w));
	} else {
		undo_remember(&ops->acts, ops->run, who, COMMAND_FAIL, node, 0, 0);
		member_mark(ops->members, w, true);
		member_apply(ops->run, w, EVENT_MARK, "marked failed by the operator");
		note(ops->run, NOTE_COMMAND, node, 'F', "n%02d S%d marked failed (%s)", node,
		     member_stage(ops->run, w), who);
		outcome_set(o, 0, "routing around n%02d from the next iteration", node);
		spares_replace(ops->members, w);
		replan(ops->planning, "a node was marked failed");
	}
}

void act_recover(struct operators *ops, const char *who, const struct msg_command *m,
		 struct outcome *o)
{
	int node = m->node;
	struct member *w = acts_member(ops->members, node, o);

	if (!w || is_draining(w, o))
		return;
	if (member_is_replica(w) && !w->is_marked) {
		outcome_set(o, -EALREADY, "n%02d is in use", node);
		return;
	}
	if (!member_alive(w) && !supervisor_tell(ops->run, "start", node)) {
		outcome_set(o, -EHOSTDOWN, "n%02d has no process: start its agent, and it joins",
			    node);
		return;
	}
	undo_remember(&ops->acts, ops->run, who, COMMAND_RECOVER, node, 0, 0);
	member_mark(ops->members, w, false);
	member_apply(ops->run, w, EVENT_RECOVER, "recovers");
	if (member_is_replica(w)) {
		/* The returned node has the stage's weights, so no other node has to restore
		 * them. */
		restore_averted(ops->backups, member_stage(ops->run, w));
		replan(ops->planning, "a mark was taken back");
	} else if (member_alive(w)) {
		members_assign(ops->members, w, member_stage(ops->run, w), ops->run->committed > 0);
	}
	note(ops->run, NOTE_COMMAND, node, 0, "n%02d recovers (%s)", node, who);
	outcome_set(o, 0, "n%02d fetches the weights and joins at an iteration's end", node);
}

void act_pause(struct operators *ops, const char *who, const struct msg_command *m,
	       struct outcome *o)
{
	enum command_verb verb = (enum command_verb)m->verb;

	undo_remember(&ops->acts, ops->run, who, verb, -1, 0, ops->run->wanted.pause);
	ops->run->wanted.pause = verb != COMMAND_RESUME;
	ops->run->wanted.step = verb == COMMAND_STEP;
	resume_save_change(ops->members);
	note(ops->run, NOTE_COMMAND, -1, 0, "%s (%s)",
	     verb == COMMAND_PAUSE  ? "pause at the iteration's end"
	     : verb == COMMAND_STEP ? "one iteration, then pause"
				    : "continue",
	     who);
	outcome_set(o, 0, "%s", verb == COMMAND_PAUSE ? "pausing" : "continuing");
}

void act_finish(struct operators *ops, const char *who, const struct msg_command *m,
		struct outcome *o)
{
	struct finish_order *f = &ops->run->wanted.finish;
	char text[RATES_TEXT];

	if (!rates_may_finish(ops->run, m->value, o))
		return;
	undo_remember(&ops->acts, ops->run, who, COMMAND_FINISH, -1, m->value, (int64_t)f->n);
	if (m->value == 0) {
		f->n = 0;
		snprintf(text, sizeof(text), "the rate stays, and the run continues");
	} else {
		rates_plan_finish(ops->run, (uint32_t)m->value, f);
		rates_finish_text(ops->run, f, text);
	}
	note(ops->run, NOTE_COMMAND, -1, 0, "finish %lld (%s): %s", (long long)m->value, who, text);
	outcome_set(o, 0, "%s", text);
	resume_save_change(ops->members);
	consoles_run(ops->members);
}

void act_stop(struct operators *ops, const char *who, const struct msg_command *m,
	      struct outcome *o)
{
	(void)m;
	ops->run->ending.stopping = "stopped by the operator";
	note(ops->run, NOTE_COMMAND, -1, 0, "stop (%s)", who);
	outcome_set(o, 0, "stopping");
	/* In other phases the run ends together with the current iteration (iteration_boundary). */
	if (ops->run->phase == PHASE_GATHERING || ops->run->phase == PHASE_STALLED)
		controller_finish(ops->members, 0, ops->run->ending.stopping);
}

void act_arm(struct operators *ops, const char *who, const struct msg_command *m, struct outcome *o)
{
	int64_t seconds = m->value;

	if (ops->lease[0] && strcmp(ops->lease, who) != 0) {
		outcome_set(o, -EBUSY, "%s holds the lease for another %lld s", ops->lease,
			    (long long)((ops->lease_ends_us - ops->run->now_us) / 1000000));
	} else if (seconds <= 0) {
		if (ops->lease[0])
			faults_heal_all(ops, "the lease was returned");
		ops->lease[0] = '\0';
		outcome_set(o, 0, "locked");
	} else {
		snprintf(ops->lease, sizeof(ops->lease), "%s", who);
		if (seconds > LEASE_MAX_S)
			seconds = LEASE_MAX_S;
		ops->lease_ends_us = ops->run->now_us + seconds * 1000000;
		outcome_set(o, 0, "armed for %lld s", (long long)seconds);
	}
	ops->run->stream.next_status_us = 0;
}

void act_acknowledge(struct operators *ops, const char *who, const struct msg_command *m,
		     struct outcome *o)
{
	int64_t id = m->value; /* 0: all alerts */
	uint32_t n = 0;

	(void)who;
	for (uint32_t i = 0; i < ops->run->journal.n_notes; i++) {
		struct msg message = { .type = MSG_SEE_NOTE };
		struct msg_see_note *note_at = &ops->run->journal.notes[i];

		if (note_at->acknowledged || !note_stands(note_at->kind) ||
		    (id != 0 && note_at->id != (uint64_t)id))
			continue;
		note_at->acknowledged = 1;
		message.u.see_note = *note_at;
		consoles_tell(ops->run, &message);
		n++;
	}
	outcome_set(o, 0, "%u alerts acknowledged", n);
}
