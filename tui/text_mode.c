/* Prints the run as lines of text. On a screen, many changes are visible at once. A screen reader
 * or a pipe needs one event after another, so each kind of message has a sentence here. */
#include "tui/text_mode.h"

#include <stdio.h>
#include <string.h>

#include "tui/screen/glyphs.h"

enum { STEP_EVERY_US = 5000000 };

/* Writes the progress of a step before the first iteration. When a step begins, the journal has
 * an entry, which is printed instead; only the first step has no entry. */
static bool write_step(struct text_mode *p, const struct state *s, char *out, size_t room)
{
	const struct msg_see_status *t = &s->status;
	bool begins = !p->at_us || p->step != t->step;

	if (!state_is_starting(s) || (!begins && t->now_us < p->at_us + STEP_EVERY_US))
		return false;
	*p = (struct text_mode){ t->step, t->now_us };
	if (begins && t->step != GATHER_COMING)
		return false;
	snprintf(out, room, "%s", t->doing);
	return true;
}

/* Writes the line for an iteration. Without an emulated network, all times are on one clock; the
 * line then has the times of the sums and of the whole iteration too. */
static bool write_iteration(const struct state *s, const struct msg_see_iteration *it, char *out,
			  size_t room)
{
	int d = glyphs_decimals((double)it->predicted_s),
	    e = glyphs_decimals((double)it->predicted_sync_s);
	char sums[128] = "", loss[16];

	glyphs_loss(it->loss, 4, loss);
	if (!s->run.emulated)
		snprintf(sums, sizeof(sums), ", sums %.*f s (predicted %.*f s), all in %.*f s",
			 e, (double)it->sync_s, e, (double)it->predicted_sync_s,
			 glyphs_decimals((double)it->real_s), (double)it->real_s);
	snprintf(out, room,
		 "iteration %llu: loss %s, %.*f s (predicted %.*f s)%s, %u collisions waited "
		 "%.*f s, %u nodes alive, %.0f tokens/s%s",
		 (unsigned long long)it->iteration, loss, d, (double)it->iteration_s, d,
		 (double)it->predicted_s, sums, it->collisions, d, (double)it->wait_s, it->alive,
		 (double)it->tokens_per_s, it->rerun ? ", some were rerun" : "");
	return true;
}

static bool write_node(const struct state *s, const struct msg_see_node *n, char *out, size_t room)
{
	char stage[32] = "";

	if (n->state == NODE_LIVE)
		/* The journal has an entry for this change, which is printed instead. */
		return false;
	if (!state_has_no_stages(s))
		snprintf(stage, sizeof(stage), " of stage %u", (unsigned)n->stage);
	snprintf(out, room, "node %u%s is %s%s%s", (unsigned)n->node, stage,
		 node_state_shown(n->state), *n->why ? ": " : "", n->why);
	return true;
}

static bool write_note(const struct msg_see_note *n, char *out, size_t room)
{
	if (n->kind == NOTE_LOG || n->acknowledged)
		return false;
	snprintf(out, room, "%s: %s", n->kind == NOTE_ALERT ? "ALERT" : note_name(n->kind),
		 n->text);
	return true;
}

int64_t text_mode_wall_us(const struct state *s, const struct msg *m, int64_t unknown_us)
{
	const struct msg_see_note *last =
		s->history.n_notes ? &s->history.notes[s->history.n_notes - 1] : NULL;

	if (m->type == MSG_SEE_NOTE)
		return m->u.see_note.wall_us;
	if (m->type == MSG_SEE_ITERATION)
		return m->u.see_iteration.wall_us;
	if (!last || s->status.now_us == 0)
		return unknown_us;
	return last->wall_us + s->status.now_us - last->at_us;
}

/* Writes the line for a message. Returns false for messages that only change the screen. */
bool text_mode_line(struct text_mode *p, const struct state *s, const struct msg *m, char *out,
		    size_t room)
{
	char share[32] = "";
	bool has_line = false;

	switch (m->type) {
	case MSG_SEE_RUN:
		snprintf(
			out, room,
			"%srun %s, model %s, %u nodes in %u stages, %u microbatches an iteration%s",
			m->u.see_run.rehearsal ? "REHEARSAL, nothing is trained: " : "",
			m->u.see_run.name, m->u.see_run.model, m->u.see_run.n_nodes,
			m->u.see_run.n_stages, m->u.see_run.microbatches,
			m->u.see_run.emulated ? "; the network is emulated" : "");
		has_line = true;
		break;
	case MSG_SEE_PLAN:
		if (m->u.see_plan.skip_share > 0)
			snprintf(share, sizeof(share), " in %u%% of them",
				 m->u.see_plan.skip_share);
		snprintf(out, room,
			 "plan %llu from iteration %llu: %u of %u stages a microbatch%s, "
			 "predicted %.1f s (%s)",
			 (unsigned long long)m->u.see_plan.epoch,
			 (unsigned long long)m->u.see_plan.iteration, m->u.see_plan.path_length,
			 m->u.see_plan.n_stages, share, (double)m->u.see_plan.iteration_s,
			 m->u.see_plan.reason);
		has_line = true;
		break;
	case MSG_SEE_STATUS:
		has_line = write_step(p, s, out, room);
		break;
	case MSG_SEE_ITERATION:
		has_line = write_iteration(s, &m->u.see_iteration, out, room);
		break;
	case MSG_SEE_VALIDATION:
		snprintf(out, room, "validation after iteration %llu: loss %.4f",
			 (unsigned long long)m->u.see_validation.iteration,
			 (double)m->u.see_validation.loss);
		has_line = true;
		break;
	case MSG_SEE_NODE:
		has_line = s->stream.has_snapshot && write_node(s, &m->u.see_node, out, room);
		break;
	case MSG_SEE_NOTE:
		has_line = write_note(&m->u.see_note, out, room);
		break;
	case MSG_SEE_FAULT:
		snprintf(out, room, "fault %u, %s at node %d: %s", m->u.see_fault.fault,
			 fault_name(m->u.see_fault.kind), m->u.see_fault.node,
			 m->u.see_fault.active ? "active" : "healed");
		has_line = true;
		break;
	default:
		break;
	}
	for (char *c = out; has_line && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return has_line;
}
