/* What the controller orders. Most orders are obeyed as they come. Those that need a settled
 * agent, whose weights are not just being changed, wait in line: one line for the own stage, one
 * for the copy that is kept beside it. An order that makes others pointless clears their line.
 */
#include "agent/orders.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "base/alloc.h"
#include "base/array.h"

/* Messages in the order they came, with their arrays. */
struct line {
	struct msg *list;
	size_t n, room;
};

struct orders {
	struct line stage; /* until the own stage is settled */
	struct line copy;  /* until the copy is */
	enum link_reason refusal; /* as last logged */
};

struct orders *orders_new(void)
{
	struct orders *o = alloc_new(sizeof(*o));

	return o;
}

static void clear_line(struct line *l)
{
	for (size_t i = 0; i < l->n; i++)
		msg_clear(&l->list[i]);
	l->n = 0;
}

void orders_free(struct orders *o)
{
	if (!o)
		return;
	clear_line(&o->stage);
	clear_line(&o->copy);
	free(o->stage.list);
	free(o->copy.list);
	free(o);
}

/* ---- those that wait ---- */

/* Whether the message is for the own stage, and needs settled weights. */
static bool needs_settled(enum msg_type type)
{
	return type == MSG_START || type == MSG_REROUTE || type == MSG_REDUCE ||
	       type == MSG_COMMIT || type == MSG_EVALUATE || type == MSG_SAVE;
}

/* Nothing is about to change the own stage's weights, or to count on them as they are. A task may
 * run: what supersedes it lets it end. */
static bool is_settled(const struct agent *a)
{
	bool task = a->job.kind == JOB_TASK || a->job.kind == JOB_STATE;

	return !assign_under_way(a) && !a->requests.step && !a->requests.zero && !save_wanted(a) &&
	       (!worker_busy(a->worker) || task || a->job.kind == JOB_KEEP ||
		a->job.kind == JOB_FOLLOW);
}

/* Takes the message, arrays and all. */
static void join_line(struct agent *a, struct line *l, struct msg *m)
{
	if (!array_grow(&l->list, &l->room, l->n + 1, sizeof(*l->list))) {
		tell_trouble(a, true, "no memory for the controller's messages");
		msg_clear(m);
		return;
	}
	l->list[l->n++] = *m;
}

/* Orders that are done leave the line. */
static void leave_line(struct line *l, size_t done)
{
	for (size_t i = 0; i < done; i++)
		msg_clear(&l->list[i]);
	l->n -= done;
	if (done > 0 && l->n > 0)
		memmove(l->list, l->list + done, l->n * sizeof(l->list[0]));
}

/* An order to the own stage, which is settled. */
static void obey_settled(struct agent *a, const struct msg *m, int64_t now_us)
{
	if (a->held.standing != STAND_READY && m->type == MSG_COMMIT &&
	    standby_standing(a) != STANDBY_NONE)
		return; /* it was for the copy */
	if (a->held.standing != STAND_READY) {
		tell_trouble(a, false, "%s for an agent without a stage", msg_name(m->type));
		return;
	}
	switch (m->type) {
	case MSG_START:
		iteration_start(a, &m->u.start, now_us);
		break;
	case MSG_REROUTE:
		iteration_reroute(a, &m->u.reroute, now_us);
		break;
	case MSG_REDUCE:
		reduction_begin(a, &m->u.reduce, now_us);
		break;
	case MSG_COMMIT:
		iteration_commit(a, &m->u.commit, now_us);
		break;
	case MSG_SAVE:
		save_begin(a, &m->u.save, now_us);
		break;
	case MSG_EVALUATE:
		iteration_evaluate(a, &m->u.evaluate, now_us);
		break;
	default:
		break;
	}
}

void orders_turn(struct agent *a, int64_t now_us)
{
	struct orders *o = a->modules.orders;
	size_t stage = 0, copy = 0;

	for (; stage < o->stage.n && is_settled(a); stage++)
		obey_settled(a, &o->stage.list[stage], now_us);
	leave_line(&o->stage, stage);
	for (; copy < o->copy.n && standby_settled(a); copy++)
		standby_control(a, &o->copy.list[copy], now_us);
	leave_line(&o->copy, copy);
	if (stage + copy > 0)
		a->requests.look_again = true;
}

/* Into the line it waits in. A commit is for the own stage and for the copy; a sum for one of them. */
static void put_in_line(struct agent *a, struct msg *m)
{
	const struct msg_reduce *r = &m->u.reduce;
	struct orders *o = a->modules.orders;
	bool copy = m->type == MSG_KEEP;

	if (copy) { /* what waits is for the copy before it */
		clear_line(&o->copy);
		standby_abandon(a);
	}
	for (uint32_t i = 0; m->type == MSG_REDUCE && i < r->n_copies; i++)
		copy = copy || r->copies[i] == a->run.node;
	if (m->type == MSG_COMMIT && (standby_ordered(a) || o->copy.n > 0))
		join_line(a, &o->copy, &(struct msg){ .type = m->type, .u = m->u });
	join_line(a, copy ? &o->copy : &o->stage, m);
}

/* ---- as they come ---- */

/* What the message says of commits: the newest word counts, for a run may go back. */
static uint64_t told_by(const struct agent *a, const struct msg *m)
{
	switch (m->type) {
	case MSG_START:
		return m->u.start.iteration ? m->u.start.iteration - 1 : 0;
	case MSG_REROUTE:
		return m->u.reroute.iteration ? m->u.reroute.iteration - 1 : 0;
	case MSG_REDUCE:
		return m->u.reduce.iteration ? m->u.reduce.iteration - 1 : 0;
	case MSG_COMMIT:
		return m->u.commit.iteration;
	case MSG_EVALUATE:
		return m->u.evaluate.iteration;
	case MSG_RESTORE:
		return m->u.restore.iteration;
	default:
		return a->held.announced;
	}
}

static void take_fault(struct agent *a, const struct msg_fault *m, int64_t now_us)
{
	log_line(a->options.log, LOG_INFO, "fault %u: %s, peer %d, factor %g, %u ms",
		 m->fault, fault_name(m->kind), m->peer, (double)m->factor, m->ttl_ms);
	if (m->kind == FAULT_KILL)
		raise(SIGKILL);
	else if (m->kind == FAULT_HANG)
		a->requests.hang_ms = m->ttl_ms;
	else if (fault_apply(&a->faults, m, now_us) < 0)
		tell_trouble(a, false, "fault %u makes no sense here", m->fault);
}

/* Orders that an agent obeys before it is in a run, too. False: it is none of them. */
static bool obey_any_time(struct agent *a, const struct msg *m, int64_t now_us)
{
	switch (m->type) {
	case MSG_REFUSED:
		log_line(a->options.log, LOG_ERROR, "the controller refused this agent: %s",
			 m->u.refused.reason);
		tell_last(a, 1, now_us);
		return true;
	case MSG_STOP:
		log_line(a->options.log, LOG_INFO, "told to stop: %s", m->u.stop.reason);
		tell_last(a, 0, now_us);
		return true;
	case MSG_WELCOME:
		join_welcome(a, &m->u.welcome, now_us);
		return true;
	case MSG_PING:
		heartbeat_ping(a, &m->u.ping, now_us);
		return true;
	default:
		return false;
	}
}

/* Orders that need no settled weights. A new assignment makes pointless what waits for the old one. */
static void obey_in_run(struct agent *a, const struct msg *m, int64_t now_us)
{
	switch (m->type) {
	case MSG_MEASURE:
		measure_begin(a, &m->u.measure, now_us);
		break;
	case MSG_PEERS:
		join_peers(a, &m->u.peers);
		break;
	case MSG_ASSIGN:
		clear_line(&a->modules.orders->stage);
		assign_begin(a, &m->u.assign);
		break;
	case MSG_RESTORE:
		clear_line(&a->modules.orders->stage);
		restore_begin(a, &m->u.restore);
		break;
	case MSG_PLAN:
		plans_take(a, &m->u.plan);
		break;
	case MSG_FAULT:
		take_fault(a, &m->u.fault, now_us);
		break;
	default:
		a->tally.refused++;
		log_line(a->options.log, LOG_WARN, "a %s is not the controller's to send",
			 msg_name(m->type));
	}
}

/* Takes over what it keeps of *m. */
static void obey_order(struct agent *a, struct msg *m, int64_t now_us)
{
	log_line(a->options.log, LOG_DEBUG, "%s from the controller", msg_name(m->type));
	a->held.announced = told_by(a, m);
	if (obey_any_time(a, m, now_us)) {
		msg_clear(m);
	} else if (!a->welcomed) {
		a->tally.refused++;
		log_line(a->options.log, LOG_WARN, "%s before a welcome", msg_name(m->type));
		msg_clear(m);
	} else if (needs_settled(m->type) || m->type == MSG_KEEP) {
		put_in_line(a, m);
	} else {
		obey_in_run(a, m, now_us);
		msg_clear(m);
	}
}

/* What waits in line is of its predecessor, and void: what is held is as it is told, until this one orders something. */
static void begin_with_successor(struct agent *a, int64_t now_us)
{
	clear_line(&a->modules.orders->stage);
	clear_line(&a->modules.orders->copy);
	join_hello(a, now_us);
}

/* Messages are obeyed; of the connection's ups and downs each is logged once. */
void orders_take(struct agent *a, struct post_message *p, int64_t now_us)
{
	struct msg m;
	int rc;

	switch (p->kind) {
	case POST_DATA:
		rc = msg_decode(&m, p->data, p->size);
		if (rc == 0) {
			obey_order(a, &m, now_us);
			break;
		}
		a->tally.refused++;
		log_line(a->options.log, LOG_WARN, "a message of the controller: %s",
			 strerror(-rc));
		break;
	case POST_UP:
		log_line(a->options.log, LOG_INFO, "the controller is up%s",
			 p->restarted ? ", and is a new process" : "");
		a->modules.orders->refusal = LINK_REASON_NONE;
		if (p->restarted)
			begin_with_successor(a, now_us);
		break;
	case POST_DOWN:
		log_line(a->options.log, LOG_WARN, "no controller: %s",
			 link_reason_text(p->reason));
		break;
	case POST_LOST:
		log_line(a->options.log, LOG_WARN, "%" PRIu64 " messages were for the old one",
			 p->lost);
		break;
	case POST_REFUSED:
		if (p->reason != a->modules.orders->refusal)
			log_line(a->options.log, LOG_WARN, "the controller does not let us in: "
				 "%s; trying on", link_reason_text(p->reason));
		a->modules.orders->refusal = p->reason;
		break;
	}
}
