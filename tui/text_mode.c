#include "tui/text_mode.h"

#include <stdio.h>
#include <string.h>

#include "tui/screen/glyphs.h"

enum { STEP_EVERY_US = 5000000 };

/* While a step of a start lasts, how far it is; that it begins is said by the journal, but of the
 * first. */
static bool say_step(struct text_mode *p, const struct state *s, char *out, size_t room)
{
	const struct msg_see_status *t = &s->status;
	bool begins = !p->at_us || p->step != t->step;

	if (!state_starts(s) || (!begins && t->now_us < p->at_us + STEP_EVERY_US))
		return false;
	*p = (struct text_mode){ t->step, t->now_us };
	if (begins && t->step != GATHER_COMING)
		return false;
	snprintf(out, room, "%s", t->doing);
	return true;
}

/* Of a run whose links are measured all times are of one clock: then the sums and the whole, too. */
static bool say_iteration(const struct state *s, const struct msg_see_iteration *it, char *out,
			  size_t room)
{
	int d = glyphs_decimals((double)it->predicted_s),
	    e = glyphs_decimals((double)it->predicted_sync_s);
	char sums[128] = "";

	if (!s->run.emulated)
		snprintf(sums, sizeof(sums), ", sums %.*f s (predicted %.*f s), all in %.*f s",
			 e, (double)it->sync_s, e, (double)it->predicted_sync_s,
			 glyphs_decimals((double)it->real_s), (double)it->real_s);
	snprintf(out, room,
		 "iteration %llu: loss %.4f, %.*f s (predicted %.*f s)%s, %u collisions waited "
		 "%.*f s, %u nodes alive, %.0f tokens/s%s",
		 (unsigned long long)it->iteration, (double)it->loss, d, (double)it->iteration_s, d,
		 (double)it->predicted_s, sums, it->collisions, d, (double)it->wait_s, it->alive,
		 (double)it->tokens_per_s, it->rerun ? ", some ran again" : "");
	return true;
}

static bool say_node(const struct state *s, const struct msg_see_node *n, char *out, size_t room)
{
	char stage[32] = "";

	if (n->state == NODE_LIVE)
		return false; /* said by the journal when it comes back */
	if (!state_unplaced(s))
		snprintf(stage, sizeof(stage), " of stage %u", (unsigned)n->stage);
	snprintf(out, room, "node %u%s is %s%s%s", (unsigned)n->node, stage,
		 node_state_shown(n->state), *n->why ? ": " : "", n->why);
	return true;
}

static bool say_note(const struct msg_see_note *n, char *out, size_t room)
{
	if (n->kind == NOTE_LOG || n->acknowledged)
		return false;
	snprintf(out, room, "%s: %s", n->kind == NOTE_ALERT ? "ALERT" : note_name(n->kind), n->text);
	return true;
}

/* One kind of message a case; those that only move the picture say nothing. */
bool text_mode_line(struct text_mode *p, const struct state *s, const struct msg *m, char *out,
		    size_t room)
{
	bool said = false;

	switch (m->type) {
	case MSG_SEE_RUN:
		snprintf(
			out, room,
			"run %s, model %s, %u nodes in %u stages, %u microbatches an iteration%s",
			m->u.see_run.name, m->u.see_run.model, m->u.see_run.n_nodes,
			m->u.see_run.n_stages, m->u.see_run.microbatches,
			m->u.see_run.emulated ? "; the network is emulated" : "");
		said = true;
		break;
	case MSG_SEE_PLAN:
		snprintf(out, room,
			 "plan %llu from iteration %llu: %u of %u stages a microbatch, "
			 "predicted "
			 "%.1f s (%s)",
			 (unsigned long long)m->u.see_plan.epoch,
			 (unsigned long long)m->u.see_plan.iteration, m->u.see_plan.path_length,
			 m->u.see_plan.n_stages, (double)m->u.see_plan.iteration_s,
			 m->u.see_plan.reason);
		said = true;
		break;
	case MSG_SEE_STATUS:
		said = say_step(p, s, out, room);
		break;
	case MSG_SEE_ITERATION:
		said = say_iteration(s, &m->u.see_iteration, out, room);
		break;
	case MSG_SEE_VALIDATION:
		snprintf(out, room, "validation after iteration %llu: loss %.4f",
			 (unsigned long long)m->u.see_validation.iteration,
			 (double)m->u.see_validation.loss);
		said = true;
		break;
	case MSG_SEE_NODE:
		said = s->stream.has_snapshot && say_node(s, &m->u.see_node, out, room);
		break;
	case MSG_SEE_NOTE:
		said = say_note(&m->u.see_note, out, room);
		break;
	case MSG_SEE_FAULT:
		snprintf(out, room, "fault %u, %s at node %d: %s", m->u.see_fault.fault,
			 fault_name(m->u.see_fault.kind), m->u.see_fault.node,
			 m->u.see_fault.active ? "active" : "healed");
		said = true;
		break;
	default:
		break;
	}
	for (char *c = out; said && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return said;
}
