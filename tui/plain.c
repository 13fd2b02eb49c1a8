#include "tui/plain.h"

#include <stdio.h>
#include <string.h>

static bool say_iteration(const struct msg_see_iteration *it, char *out, size_t room)
{
	snprintf(out, room,
		 "iteration %llu: loss %.4f, %.1f s (predicted %.1f s), %u collisions waited "
		 "%.1f s, %u nodes alive, %.0f tokens/s%s",
		 (unsigned long long)it->iteration, (double)it->loss, (double)it->iteration_s,
		 (double)it->predicted_s, it->collisions, (double)it->wait_s, it->alive,
		 (double)it->tokens_per_s, it->rerun ? ", some ran again" : "");
	return true;
}

static bool say_node(const struct msg_see_node *n, char *out, size_t room)
{
	if (n->state == NODE_LIVE)
		return false; /* said by the journal when it comes back */
	snprintf(out, room, "node %u of stage %u is %s%s%s", (unsigned)n->node,
		 (unsigned)n->stage, state_node_name(n->state), *n->why ? ": " : "", n->why);
	return true;
}

static bool say_note(const struct msg_see_note *n, char *out, size_t room)
{
	static const char *const kinds[] = { "log",        "event",   "command",
					     "prediction", "warning", "ALERT" };

	if (n->kind == NOTE_LOG || n->acknowledged)
		return false;
	snprintf(out, room, "%s: %s", kinds[n->kind <= NOTE_ALERT ? n->kind : 0], n->text);
	return true;
}

bool plain_line(const struct state *s, const struct msg *m, char *out, size_t room)
{
	bool said = false;

	switch (m->type) {
	case MSG_SEE_RUN:
		snprintf(
			out, room,
			"run %s, model %s, %u nodes in %u stages, %u microbatches an iteration",
			m->u.see_run.name, m->u.see_run.model, m->u.see_run.n_nodes,
			m->u.see_run.n_stages, m->u.see_run.microbatches);
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
	case MSG_SEE_ITERATION:
		said = say_iteration(&m->u.see_iteration, out, room);
		break;
	case MSG_SEE_VALIDATION:
		snprintf(out, room, "validation after iteration %llu: loss %.4f",
			 (unsigned long long)m->u.see_validation.iteration,
			 (double)m->u.see_validation.loss);
		said = true;
		break;
	case MSG_SEE_NODE:
		said = s->synced && say_node(&m->u.see_node, out, room);
		break;
	case MSG_SEE_NOTE:
		said = say_note(&m->u.see_note, out, room);
		break;
	case MSG_SEE_FAULT:
		snprintf(out, room, "fault %u, %s at node %d: %s", m->u.see_fault.fault,
			 state_fault_name(m->u.see_fault.kind), m->u.see_fault.node,
			 m->u.see_fault.active ? "active" : "healed");
		said = true;
		break;
	default:
		break;
	}
	for (char *p = out; said && *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	return said;
}
