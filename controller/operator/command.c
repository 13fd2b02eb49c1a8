/* command.c - checks the operator's commands and passes each to its function.
 *
 * acts.c and faults.c carry commands out, and previews.c predicts their effect. A command that
 * changes the run needs the operator's lease. Only one console holds the lease at a time, so that
 * two operators cannot work against each other. The lease expires, so that an operator who has left
 * cannot block the others. */
#include "controller/operator/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "controller/iteration/iteration.h"
#include "controller/operator/acts.h"
#include "controller/operator/faults.h"
#include "controller/operator/hours_preview.h"
#include "controller/operator/previews.h"
#include "controller/operator/undo.h"
#include "controller/run/drill.h"
#include "controller/run/journal.h"
#include "controller/run/outcome.h"
#include "controller/run/stream.h"

enum { SCRIPTED_TTL_MS = 10000 };

static void act_undo(struct operators *ops, const char *who, const struct msg_command *m,
		     struct outcome *o);

static const struct {
	void (*act)(struct operators *ops, const char *who, const struct msg_command *m,
		    struct outcome *o);
	bool harmless; /* the command needs no lease and is not recorded */
} commands[COMMAND_LAST + 1] = {
	[COMMAND_SKIP] = { act_skip, false },       [COMMAND_FAIL] = { act_fail, false },
	[COMMAND_RECOVER] = { act_recover, false }, [COMMAND_INJECT] = { act_inject, false },
	[COMMAND_HEAL] = { act_heal, false },       [COMMAND_HEAL_ALL] = { act_heal, false },
	[COMMAND_PAUSE] = { act_pause, false },     [COMMAND_RESUME] = { act_pause, false },
	[COMMAND_STEP] = { act_pause, false },      [COMMAND_ARM] = { act_arm, true },
	[COMMAND_ACK] = { act_acknowledge, true },  [COMMAND_UNDO] = { act_undo, false },
	[COMMAND_STOP] = { act_stop, false },       [COMMAND_WIRE] = { act_wire, false },
	[COMMAND_SUM_WIRE] = { act_wire, false },   [COMMAND_FINISH] = { act_finish, false },
	[COMMAND_STAGES] = { act_stages, true },    [COMMAND_CUT] = { act_cut, false },
	[COMMAND_HOURS] = { act_hours, true },
	/* COMPARE changes nothing (previews.h); SEEK and SPEED are for replays only. */
};

static void carry_out(struct operators *ops, const char *who, const struct msg_command *m,
		      struct outcome *o)
{
	if (m->verb <= COMMAND_LAST && commands[m->verb].act)
		commands[m->verb].act(ops, who, m, o);
	else
		outcome_set(o, -EINVAL, "no such command");
}

static void act_undo(struct operators *ops, const char *who, const struct msg_command *m,
		     struct outcome *o)
{
	struct act *a = undo_find(&ops->acts, m->value, o);
	struct msg_command back;
	uint32_t at, n_before = ops->acts.n;

	if (!a || !undo_inverse(ops->run, a, &back, o))
		return;
	at = (uint32_t)(a - ops->acts.acts);
	/* carry_out adds an act to the list. The list may move in memory, so pointers into it
	 * become invalid, but the index `at` stays valid */
	carry_out(ops, who, &back, o);
	if (o->status == 0) {
		ops->acts.acts[at].undone = true;
		/* carry_out has stored the undo as an act, too. That act is marked, because an undo
		 * cannot be undone */
		if (ops->acts.n > n_before)
			ops->acts.acts[ops->acts.n - 1].undone = true;
	}
}

static void record_act(struct operators *ops, const char *who, const struct msg_command *m,
		       const struct outcome *o)
{
	struct store_command sc = { .id = ++ops->commands,
				    .iteration = ops->run->committed + 1,
				    .wall_us = clock_wall_us(),
				    .who = who,
				    .verb = verb_name(m->verb),
				    .node = m->node,
				    .peer = m->peer,
				    .value = m->value,
				    .text = m->text,
				    .status = o->status,
				    .reply = o->text };
	struct error err = { "" };

	if (o->status == 0)
		drill_add(ops->run, m);
	if (store_command(ops->run->record.store, &sc, &err) != 0)
		log_line(&ops->run->log, LOG_ERROR, "%s", err.text);
}

/* Carries out a command of a script or of the operator who holds the lease, and records the command
 * with its outcome. */
static void give_command(struct operators *ops, const char *who, const struct msg_command *m,
			 struct outcome *o)
{
	carry_out(ops, who, m, o);
	record_act(ops, who, m, o);
}

/* Checks that the console may give the command. Every console may give some commands, other
 * commands need an operator's key, and all remaining commands need the lease. */
void command_receive(struct operators *ops, struct console *from, const struct msg_command *m)
{
	struct msg reply = { .type = MSG_SEE_REPLY };
	struct outcome o = { -EPERM, "" };

	if (m->verb == COMMAND_CUT && strncmp(m->text, "preview", strlen("preview")) == 0) {
		cut_preview_ask(ops, from, m);
		return;
	}
	if (strcmp(m->text, "preview") == 0) {
		previews_ask(ops, from, m);
		return;
	}
	if (m->verb == COMMAND_COMPARE) {
		previews_ask_candidate(&ops->previews, ops->planning, from, m, &o);
	} else if (!from->may_command) {
		outcome_set(&o, -EPERM, "this console may only watch");
	} else if (m->verb <= COMMAND_LAST && commands[m->verb].harmless) {
		carry_out(ops, from->name, m, &o);
	} else if (strcmp(ops->lease, from->name) != 0) {
		outcome_set(&o, -EACCES,
			    ops->lease[0] ? "%s holds the operator's lease"
					  : "locked%s: take the lease first (:arm 10m)",
			    ops->lease);
	} else {
		give_command(ops, from->name, m, &o);
	}
	reply.u.see_reply.command = m->id;
	reply.u.see_reply.status = o.status;
	memcpy(reply.u.see_reply.text, o.text, sizeof(o.text));
	console_send(ops->run, from, &reply);
}

static const char *act_name(const struct scripted_act *a)
{
	return a->fault != FAULT_NONE ? fault_name(a->fault) : verb_name(a->verb);
}

int command_check_script(const struct run *run, struct error *err)
{
	const struct options *o = &run->options;
	const struct cluster *cluster = run->cluster;

	for (uint32_t i = 0; i < o->n_acts; i++) {
		const struct scripted_act *a = &o->acts[i];
		unsigned long long iteration = a->iteration, last = o->iterations;
		bool of_node = a->verb == COMMAND_FAIL || a->verb == COMMAND_RECOVER ||
			       a->verb == COMMAND_INJECT;

		if (of_node && a->node >= cluster->n_nodes)
			return error_set(err, -EINVAL,
					 "--at %llu:%s:%d: the cluster has %d nodes, 0 to %d",
					 iteration, act_name(a), a->node, cluster->n_nodes,
					 cluster->n_nodes - 1);
		if (a->verb == COMMAND_SKIP &&
		    (int)skip_share_stages(a->value) > cluster_most_skipped(cluster))
			return error_set(err, -EINVAL,
					 "--at %llu:skip: of %d stages only %d may be skipped",
					 iteration, cluster->n_stages,
					 cluster_most_skipped(cluster));
		if (last > 0 && iteration > last && !o->mode.resume)
			return error_set(err, -EINVAL,
					 "--at %llu:%s: the run has %llu iterations (--iterations)",
					 iteration, act_name(a), last);
	}
	return 0;
}

void command_scripted(struct operators *ops)
{
	for (uint32_t i = 0; i < ops->run->options.n_acts; i++) {
		struct scripted_act *a = &ops->run->options.acts[i];
		struct msg_command m = {
			.verb = (uint8_t)a->verb,
			.node = a->node,
			.peer = -1,
			.value = a->value,
			.fault = (uint8_t)a->fault,
			.factor = fault_describe(a->fault)->factor == FACTOR_PROBABILITY ? 0.2f : 4,
			.ttl_ms = SCRIPTED_TTL_MS
		};
		struct outcome o = { 0, "" };

		if (a->verb == COMMAND_CUT)
			snprintf(m.text, sizeof(m.text), "%s", a->argument);
		if (a->done || a->iteration > ops->run->committed + 1)
			continue;
		a->done = true;
		give_command(ops, STORE_SCRIPT, &m, &o);
		record_scripted(ops->run, i, o.status, o.text);
		if (o.status != 0)
			note(ops->run, NOTE_WARNING, a->node, 0, "script: %s%s%s: %s", act_name(a),
			     a->argument ? ":" : "", a->argument ? a->argument : "", o.text);
	}
}

void command_turn(struct operators *ops)
{
	if (ops->lease[0] && ops->run->now_us >= ops->lease_ends_us) {
		note(ops->run, NOTE_EVENT, -1, 0, "%s's lease ended", ops->lease);
		ops->lease[0] = '\0';
		faults_heal_all(ops, "the lease ended");
		ops->run->stream.next_status_us = 0;
	}
	faults_turn(ops);
	stage_preview_turn(&ops->stages, ops->members);
	cut_preview_turn(ops);
	hours_preview_turn(&ops->hours, ops->run);
}

void command_fini(struct operators *ops)
{
	free(ops->acts.acts);
	free(ops->run->faults.list);
	previews_fini(&ops->previews);
	stage_preview_fini(&ops->stages);
	cut_preview_fini(&ops->cut);
	hours_preview_fini(&ops->hours);
}
