/* admission.c - limits the time, memory and disk space that one agent or console may use up at the
 * controller.
 *
 * Every message costs the controller time, memory or disk. This module charges senders for
 * expensive messages, and limits how often the journal repeats a complaint. It also removes a
 * node as soon as the list of admitted keys does not contain the node's key any more. Without
 * these limits one faulty or hostile peer could occupy the controller or fill its disk.
 *
 * A refused peer can repeat its attempt. The journal therefore reports refused connections at most
 * once in REPORT_EVERY_US, as counts. */
#include "controller/members/admission.h"

#include <string.h>

#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/members/peers.h"
#include "controller/run/journal.h"

enum { REPORT_EVERY_US = 10000000, LOOK_EVERY_US = 500000, REFRESH_US = 300000 };

enum { WRONG_COST = 100, WRONG_LINES = 50, STRAYS = 200, STRAY_COST = 5 };
static const double wrong_lines_per_s = 0.1, strays_per_s = 5, ignored_per_s = 1.0 / 600;

/* Charges the sender for an expensive message, as if it had sent more frames (post.h,
 * charge_per_s). HELLO sets up a node, and JOIN may write the list of admitted keys. ATTACH sends
 * all curves to a console. TROUBLE and LOG write to the journal. COMMAND may start the planner. The
 * charge for a list grows with its length. */
void admission_charge(struct run *run, post_peer_id from, const struct msg *m)
{
	double cost = 0;

	if (m->type == MSG_HELLO || m->type == MSG_JOIN || m->type == MSG_TROUBLE ||
	    m->type == MSG_LOG)
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
	struct post_peer_info info = { .name = "" };

	(void)post_peer(members->run->post, from, &info);
	post_charge(members->run->post, from, WRONG_COST, members->run->now_us);
	if (!rate_limit_take(&members->admission.wrong, 1, WRONG_LINES, wrong_lines_per_s,
			     members->run->now_us)) {
		members->admission.wrong.n_dropped++;
		return;
	}
	log_line(&members->run->log, LOG_WARN,
		 "key %s: a message that it must not send: %s (%u more since the last such line)",
		 info.name, what, members->admission.wrong.n_dropped);
	members->admission.wrong.n_dropped = 0;
}

void admission_ignored(struct run *run, struct member *m, const char *what)
{
	if (rate_limit_take(&m->quota.ignored, 1, 1, ignored_per_s, run->now_us))
		note(run, NOTE_WARNING, m->id, 0,
		     "n%02u %s: such messages are ignored", m->id, what);
}

void admission_stray(struct run *run, struct member *m, const char *what)
{
	if (rate_limit_take(&m->quota.strays, 1, STRAYS, strays_per_s, run->now_us))
		return;
	post_charge(run->post, m->peer, STRAY_COST, run->now_us);
	admission_ignored(run, m, what);
}

/* Reads the list of admitted keys again, because the operator may edit it during the run. */
static void refresh_keys(struct members *members)
{
	struct error err;

	if (members->run->now_us < members->admission.next_refresh_us)
		return;
	members->admission.next_refresh_us = members->run->now_us + REFRESH_US;
	if (keys_list_refresh(members->run->keys.admitted, &err) < 0)
		note(members->run, NOTE_WARNING, -1, 0, "%.180s", err.text);
}

/* Marks each node whose key was removed from the list, even if the node is not connected. */
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
		     "%s %s exceeded its quota: shut out until the list of admitted keys "
		     "changes",
		     m                              ? "agent"
		     : info.role == KEYS_INVITATION ? "invitation"
						    : "console",
		     info.name);
	if (!m || !member_alive(m))
		return;
	if (reason == LINK_FLOOD || reason == LINK_NOT_ADMITTED)
		member_apply(members->run, m, EVENT_LOST,
			     reason == LINK_FLOOD ? "was shut out" : "its key was expelled");
}

static bool is_reported(enum link_reason reason)
{
	return reason != LINK_REASON_NONE && reason != LINK_UNKNOWN_SESSION &&
	       reason != LINK_SILENT && reason != LINK_SUPERSEDED;
}

void admission_turn(struct members *members)
{
	struct post_counters now;

	refresh_keys(members);
	look_at_keys(members);
	if (members->run->now_us < members->admission.next_look_us)
		return;
	members->admission.next_look_us = members->run->now_us + LOOK_EVERY_US;
	post_count(members->run->post, &now);
	for (int i = 0; i < LINK_REASON_COUNT; i++) {
		uint64_t more = now.link.refused[i] - members->admission.refused_reported[i];

		if (!is_reported((enum link_reason)i) || more == 0)
			continue;
		members->admission.refused_reported[i] = now.link.refused[i];
		members->admission.next_look_us = members->run->now_us + REPORT_EVERY_US;
		note(members->run, NOTE_WARNING, -1, 0, "refused connections: %llu times: %s",
		     (unsigned long long)more, link_reason_text((enum link_reason)i));
	}
}
