/* The what-if shows the current iteration as it would be under another plan. Thus an operator sees
 * the effect of a decision before taking it. The controller computes the plan, and changes nothing
 * in the run. */
#include "tui/input/branch.h"

#include <stdio.h>
#include <string.h>

#include "tui/screen/glyphs.h"

/* Writes the nodes that are absent at the time shown, in the controller's syntax: "branch 3,7", or
 * "branch -" for no node. Returns false if `text` has no room for all of these nodes. */
static bool write_absent(const struct state *s, char text[128])
{
	size_t n = (size_t)snprintf(text, 128, "branch ");

	for (uint32_t i = 0; i < s->n_nodes; i++) {
		const struct state_node *node = &s->nodes[i];

		if (node->known &&
		    (node->see.state == NODE_LIVE || node->see.state == NODE_SUSPECT))
			continue;
		n += (size_t)snprintf(text + n, 128 - n, "%s%u", text[n - 1] == ' ' ? "" : ",",
				      i);
		if (n >= 122)
			return false;
	}
	if (text[n - 1] == ' ')
		snprintf(text + n, 128 - n, "-");
	return true;
}

void branch_ask(struct ui *u, const struct state *s, uint32_t skip, int32_t without)
{
	struct msg_command c = { .verb = COMMAND_COMPARE,
				 .node = without,
				 .peer = -1,
				 .value = skip,
				 .text = "branch" };
	struct ui_branch *b = &u->branch;
	char absent[24] = "", ratio[SKIP_SHARE_TEXT];

	if (u->connection.state != UI_LIVE) {
		ui_say(u, STYLE_WARNING, "no what-if: only a controller can plan it%s",
		       u->connection.state == UI_RECORDED ? " (skippipe controller --replay)" : "");
		return;
	}
	if (u->clock.behind_us > 0 && !s->run.replay && !write_absent(s, c.text)) {
		ui_say(u, STYLE_WARNING, "no what-if: too many nodes were absent then");
		return;
	}
	b->id = ui_send(u, s, c);
	if (b->id == 0)
		return;
	if (without >= 0)
		snprintf(absent, sizeof(absent), " -n%02d", without);
	skip_share_format(skip_share_of(skip), skip_share_stages(skip), s->run.n_stages, ratio);
	snprintf(b->name, sizeof(b->name), "branch %.14s%.8s", ratio, absent);
	if (!b->open)
		b->back = u->display.view;
	b->open = true;
	b->has_plan = false;
	b->refused[0] = '\0';
	b->skip = skip;
	b->without = without;
	b->asked_us = u->clock.local_us;
	u->display.view = VIEW_TIMELINE;
}

bool branch_take_answer(struct ui *u, const struct state *s, const struct msg *m)
{
	const struct msg_see_plan *p = &m->u.see_plan;
	struct ui_branch *b = &u->branch;

	if (!b->open)
		return false;
	if (m->type == MSG_SEE_REPLY && m->u.see_reply.command == b->id) {
		if (m->u.see_reply.status != 0)
			snprintf(b->refused, sizeof(b->refused), "%.90s", m->u.see_reply.text);
		return true;
	}
	if (m->type != MSG_SEE_PLAN || !p->candidate || strcmp(p->name, b->name) != 0)
		return false;
	if (!b->plan.first)
		state_plan_init(&b->plan);
	state_plan_fill(s, &b->plan, p);
	b->has_plan = true;
	return true;
}

void branch_leave(struct ui *u)
{
	u->branch.open = false;
	if (u->display.view == VIEW_TIMELINE)
		u->display.view = u->branch.back;
}

const struct state_plan *branch_plan(const struct ui *u)
{
	return u->branch.open && u->branch.has_plan ? &u->branch.plan : NULL;
}

void branch_title(const struct ui *u, const struct state *s, char text[128])
{
	const struct ui_branch *b = &u->branch;
	const struct state_plan *p = branch_plan(u);
	char change[16], ratio[SKIP_SHARE_TEXT];
	int d = glyphs_decimals((double)s->plan.see.iteration_s), n;

	skip_share_format(skip_share_of(b->skip), skip_share_stages(b->skip), s->run.n_stages,
			  ratio);
	n = snprintf(text, 128, "WHAT IF skip %s", ratio);

	if (b->without >= 0)
		n += snprintf(text + n, 128 - (size_t)n, " without n%02d", b->without);
	if (p) {
		glyphs_change((double)s->plan.see.iteration_s, (double)p->see.iteration_s,
			      change);
		snprintf(text + n, 128 - (size_t)n, ": %.*fs instead of %.*f (%s)", d,
			 (double)p->see.iteration_s, d, (double)s->plan.see.iteration_s,
			 change);
	} else if (*b->refused) {
		snprintf(text + n, 128 - (size_t)n, ": not possible");
	} else {
		glyphs_age((double)(u->clock.local_us - b->asked_us) / 1e6, change);
		snprintf(text + n, 128 - (size_t)n, ": planning %s", change);
	}
}

static uint32_t least_visited(const struct state_plan *p)
{
	uint32_t least = 1 < p->see.n_stages ? 1 : 0;

	for (uint32_t i = 1; i < p->see.n_stages && i < MSG_STAGES; i++)
		if (p->visits[i] < p->visits[least])
			least = i;
	return least;
}

void branch_effects(const struct ui *u, const struct state *s, char text[192])
{
	const struct state_plan *p = branch_plan(u), *now = &s->plan;
	int d = glyphs_decimals((double)now->see.iteration_s);
	uint32_t least;

	if (!p) {
		snprintf(text, 192, "%s", u->branch.refused);
		return;
	}
	least = least_visited(p);
	snprintf(text, 192,
		 "blocked %.*f>%.*fs  collisions %u>%u  idle %.0f>%.0f%%  S%u %u>%u visits  "
		 "%u paths change",
		 d, (double)now->see.wait_s, d, (double)p->see.wait_s, now->see.collisions,
		 p->see.collisions, (double)now->see.idle_fraction * 100,
		 (double)p->see.idle_fraction * 100, least, now->visits[least],
		 p->visits[least], p->paths_changed);
}
