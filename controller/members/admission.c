/* admission.c - who may not come in, or no more: what was refused is told in the journal, what costs
 * the controller more than a message's usual work is charged to its sender, and an agent whose
 * key was expelled or barred is out at once, at the other agents' doors as well.
 *
 * Everything that a refused sender can repeat is told at most every TELL_EVERY_US, as a number.
 */
#include "controller/members/admission.h"

#include <string.h>

#include "controller/members/members.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/members/peers.h"
#include "controller/operator/journal.h"

enum { TELL_EVERY_US = 10000000, LOOK_EVERY_US = 500000, REFRESH_US = 300000 };

enum { WRONG_COST = 100, WRONG_LINES = 50, STRAYS = 200, STRAY_COST = 5 };
static const double wrong_lines_per_s = 0.1, strays_per_s = 5, ignored_per_s = 1.0 / 600;

/* In frames (post.h, charge_per_s): a greeting sets up a node, an attaching console gets all
 * the curves, a trouble is journalled on disk, commands plan or are recorded, and what comes in lists is looked
 * at one by one. */
void admission_charge(struct run *run, post_peer_id from, const struct msg *m)
{
	double cost = 0;

	if (m->type == MSG_HELLO || m->type == MSG_TROUBLE)
		cost = 200;
	else if (m->type == MSG_ATTACH)
		cost = 1000;
	else if (m->type == MSG_COMMAND)
		cost = 100;
	else if (m->type == MSG_LINKS)
		cost = 0.5 * m->u.links.n_links;
	else if (m->type == MSG_REPORT)
		cost = 0.05 * m->u.report.n_events;
	if (cost > 0)
		post_charge(run->post, from, cost, run->now_us);
}

void admission_wrong(struct members *members, post_peer_id from, const char *what)
{
	const struct member *m = member_of_peer(members, from);

	post_charge(members->run->post, from, WRONG_COST, members->run->now_us);
	if (!rate_limit_take(&members->admission.wrong, 1, WRONG_LINES, wrong_lines_per_s,
			     members->run->now_us)) {
		members->admission.wrong.n_dropped++;
		return;
	}
	log_line(&members->run->log, LOG_WARN,
		 "node %d: a message that is none of its: %s (%u more since the last such line)",
		 m ? m->id : -1, what, members->admission.wrong.n_dropped);
	members->admission.wrong.n_dropped = 0;
}

void admission_ignored(struct run *run, struct member *m, const char *what)
{
	if (rate_limit_take(&m->quota.ignored, 1, 1, ignored_per_s, run->now_us))
		note(run, NOTE_WARNING, m->id, 0, "n%02u is not listened to until this ends: it %s",
		     m->id, what);
}

void admission_stray(struct run *run, struct member *m, const char *what)
{
	if (rate_limit_take(&m->quota.strays, 1, STRAYS, strays_per_s, run->now_us))
		return;
	post_charge(run->post, m->peer, STRAY_COST, run->now_us);
	admission_ignored(run, m, what);
}

/* The list of the admitted may be edited while the run goes on. */
static void refresh_keys(struct members *members)
{
	struct error err;

	if (members->run->now_us < members->admission.next_refresh_us)
		return;
	members->admission.next_refresh_us = members->run->now_us + REFRESH_US;
	if (keys_list_refresh(members->run->keys.admitted, &err) < 0)
		note(members->run, NOTE_WARNING, -1, 0, "%.180s", err.text);
}

/* Also of those that have no session. */
static void look_at_keys(struct members *members)
{
	uint64_t version = keys_list_version(members->run->keys.admitted);

	if (version == members->admission.keys_seen)
		return;
	members->admission.keys_seen = version;
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (m->peer != 0 && !keys_list_find(members->run->keys.admitted, &m->key))
			member_disown(members, m);
	}
}

void admission_down(struct members *members, post_peer_id peer, enum link_reason reason)
{
	struct member *m = member_of_peer(members, peer);
	struct post_peer_info info = { .name = "" };

	(void)post_peer(members->run->post, peer, &info);
	if (reason == LINK_FLOOD)
		note(members->run, NOTE_ALERT, m ? m->id : -1, 0,
		     "%s %s sent more than it may: shut out until the list of the admitted "
		     "changes",
		     m ? "agent" : "console", info.name);
	if (!m || !member_alive(m))
		return;
	if (reason == LINK_FLOOD || reason == LINK_NOT_ADMITTED)
		members_gone(members->run, m,
			     reason == LINK_FLOOD ? "was shut out" : "its key was expelled");
}

static bool told_of(enum link_reason reason)
{
	return reason != LINK_REASON_NONE && reason != LINK_UNKNOWN_SESSION &&
	       reason != LINK_SILENT && reason != LINK_SUPERSEDED;
}

void admission_turn(struct members *members)
{
	struct post_counters now;
	char text[160] = "";
	size_t at = 0;

	refresh_keys(members);
	look_at_keys(members);
	if (members->run->now_us < members->admission.next_look_us)
		return;
	members->admission.next_look_us = members->run->now_us + LOOK_EVERY_US;
	post_count(members->run->post, &now);
	for (int i = 0; i < LINK_REASON_COUNT; i++) {
		uint64_t more = now.link.refused[i] - members->admission.refused_told[i];

		if (!told_of((enum link_reason)i) || more == 0 || at >= sizeof(text))
			continue;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%llu times: %s",
				       at ? "; " : "", (unsigned long long)more,
				       link_reason_text((enum link_reason)i));
	}
	if (at == 0)
		return;
	memcpy(members->admission.refused_told, now.link.refused,
	       sizeof(members->admission.refused_told));
	members->admission.next_look_us = members->run->now_us + TELL_EVERY_US;
	note(members->run, NOTE_WARNING, -1, 0, "refused at the door %.*s", (int)sizeof(text) - 1,
	     text);
}
