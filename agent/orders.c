/* orders.c - carries out the controller's orders. Most orders are carried out at once, and some
 * orders wait in a queue.
 *
 * An order that uses the weights waits while a job changes the weights. Otherwise the order would
 * use weights that are half changed. The stage and the standby copy have one queue (struct line)
 * each. An order that makes the waiting orders pointless, such as a new assignment, clears their
 * queue. A WELCOME to another run waits until the worker's job has ended. All orders that arrive
 * after this WELCOME wait too.
 */
#include "agent/orders.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/assign.h"
#include "agent/execution/needs.h"
#include "agent/execution/queue.h"
#include "agent/execution/tasks.h"
#include "agent/heartbeat.h"
#include "agent/join.h"
#include "agent/network/connections.h"
#include "agent/network/measure.h"
#include "agent/shared/worker.h"
#include "agent/state.h"
#include "agent/sums/reduction.h"
#include "agent/weights/files.h"
#include "agent/weights/restore.h"
#include "agent/weights/save.h"
#include "agent/weights/standby.h"
#include "base/alloc.h"

/* A queue of messages in order of arrival. The queue owns the arrays of the messages. */
struct line {
	struct msg *list;
	size_t n, room;
};

struct orders {
	struct line stage;        /* orders for this node's stage */
	struct line copy;         /* orders for the standby copy */
	/* A WELCOME that waits until the previous run's job has ended, and all orders that
	 * arrived after this WELCOME. */
	struct line next_run;
	enum link_reason refusal; /* reason of the refused connection that was logged last */
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
	clear_line(&o->next_run);
	free(o->stage.list);
	free(o->copy.list);
	free(o->next_run.list);
	free(o);
}

/* ---- orders that wait ---- */

/* Returns true if the order is for this node's stage and must wait until the weights are
 * settled. */
static bool needs_settled(enum msg_type type)
{
	return type == MSG_START || type == MSG_REROUTE || type == MSG_REDUCE ||
	       type == MSG_COMMIT || type == MSG_EVALUATE || type == MSG_SAVE;
}

/* Returns true if no job or request changes the stage's weights, and if no job waits to read the
 * weights for a checkpoint. A running task is allowed, because an order that replaces the task
 * lets the task end first. A job that copies a part of a snapshot may run too, because the worker
 * changes the weights only after this job has ended. */
static bool is_settled(const struct agent *a)
{
	bool task = a->job.kind == JOB_TASK || a->job.kind == JOB_STATE;

	return !assign_under_way(&a->held) && !a->requests.step && !a->requests.zero &&
	       !save_wanted(a->modules.save) &&
	       (!worker_busy(a->worker) || task || a->job.kind == JOB_KEEP ||
		a->job.kind == JOB_FOLLOW);
}

/* Appends the message. The queue owns the message's arrays from now on. */
static void join_line(struct line *l, struct msg *m)
{
	if (l->n == l->room) {
		l->room = l->room ? 2 * l->room : 8;
		l->list = alloc_resize(l->list, l->room, sizeof(*l->list));
	}
	l->list[l->n++] = *m;
}

/* Removes the first `done` orders, which have been carried out. */
static void leave_line(struct line *l, size_t done)
{
	for (size_t i = 0; i < done; i++)
		msg_clear(&l->list[i]);
	l->n -= done;
	if (done > 0 && l->n > 0)
		memmove(l->list, l->list + done, l->n * sizeof(l->list[0]));
}

/* Carries out an order for this node's stage, whose weights are settled. */
static void obey_settled(struct agent *a, const struct msg *m, int64_t now_us)
{
	if (a->held.standing != STAND_READY && m->type == MSG_COMMIT &&
	    standby_standing(a->modules.standby) != STANDBY_NONE)
		return; /* the commit is meant for the standby copy only */
	if (a->held.standing != STAND_READY) {
		tell_trouble(&a->tell, false, "%s for an agent without a stage", msg_name(m->type));
		return;
	}
	switch (m->type) {
	case MSG_START:
		iteration_start(&a->iteration, &m->u.start, now_us);
		break;
	case MSG_REROUTE:
		iteration_reroute(&a->iteration, &m->u.reroute, now_us);
		break;
	case MSG_REDUCE:
		reduction_begin(a->modules.reduction, &m->u.reduce,
				queue_counts(tasks_queue(a->modules.tasks)), now_us);
		break;
	case MSG_COMMIT:
		iteration_commit(&a->iteration, &m->u.commit, now_us);
		break;
	case MSG_SAVE:
		save_begin(a->modules.save, &m->u.save, now_us);
		break;
	case MSG_EVALUATE:
		iteration_evaluate(&a->iteration, &m->u.evaluate, now_us);
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
	for (; copy < o->copy.n && standby_settled(a->modules.standby); copy++)
		standby_control(a->modules.standby, &o->copy.list[copy], now_us);
	leave_line(&o->copy, copy);
	if (stage + copy > 0)
		a->requests.look_again = true;
}

/* Appends the order to the queue of the stage or of the standby copy. A COMMIT goes to both
 * queues, a REDUCE to only one of them. */
static void put_in_line(struct agent *a, struct msg *m)
{
	const struct msg_reduce *r = &m->u.reduce;
	struct orders *o = a->modules.orders;
	bool copy = m->type == MSG_KEEP;

	if (copy) { /* KEEP replaces the copy, so orders for the old copy are void */
		clear_line(&o->copy);
		standby_abandon(a->modules.standby);
	}
	for (uint32_t i = 0; m->type == MSG_REDUCE && i < r->n_copies; i++)
		copy = copy || r->copies[i] == a->run.welcome.node;
	if (m->type == MSG_COMMIT && (standby_ordered(a->modules.standby) || o->copy.n > 0))
		join_line(&o->copy, &(struct msg){ .type = m->type, .u = m->u });
	join_line(copy ? &o->copy : &o->stage, m);
}

/* ---- orders carried out at once ---- */

/* Returns the number of committed iterations that the message implies. If the message implies no
 * number, returns the newest number that an earlier message implied. The number may fall, because
 * a run may return to a checkpoint. */
static uint64_t committed_according_to(const struct agent *a, const struct msg *m)
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
	log_line(a->tell.log, LOG_INFO, "fault %u: %s, peer %d, factor %g, %u ms", m->fault,
		 fault_name(m->kind), m->peer, (double)m->factor, m->ttl_ms);
	if (m->kind == FAULT_KILL)
		raise(SIGKILL);
	else if (m->kind == FAULT_HANG)
		a->requests.hang_ms = m->ttl_ms;
	else if (fault_apply(&a->faults, m, now_us) < 0)
		tell_trouble(&a->tell, false, "fault %u makes no sense here", m->fault);
}

/* Carries out an order that is valid even outside a run. Returns false if the order is of another
 * kind. */
static bool obey_any_time(struct agent *a, const struct msg *m, int64_t now_us)
{
	switch (m->type) {
	case MSG_REFUSED:
		log_line(a->tell.log, LOG_ERROR, "the controller refused this agent: %s",
			 m->u.refused.reason);
		tell_last(&a->tell, m->u.refused.final ? AGENT_REFUSED_FOR_GOOD : 1, now_us);
		return true;
	case MSG_STOP:
		log_line(a->tell.log, LOG_INFO, "ordered to stop: %s", m->u.stop.reason);
		tell_last(&a->tell, 0, now_us);
		return true;
	case MSG_PING:
		heartbeat_ping(a->modules.heartbeat, &a->tell, &m->u.ping, now_us);
		return true;
	default:
		return false;
	}
}

/* Carries out an order that need not wait for settled weights. If the order is a new assignment,
 * drops the orders that were given for the old assignment and still wait. */
static void obey_in_run(struct agent *a, const struct msg *m, int64_t now_us)
{
	switch (m->type) {
	case MSG_MEASURE:
		measure_begin(a->modules.measure, &m->u.measure, now_us);
		break;
	case MSG_CONNECT:
		connections_begin(a->modules.connections, &m->u.connect);
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
		restore_begin(a->modules.restore, &m->u.restore);
		break;
	case MSG_FILE_ASK:
		files_asked(a->modules.files, &m->u.file_ask, now_us);
		break;
	case MSG_FILE_PART:
		files_part_arrived(a->modules.files, m, now_us);
		break;
	case MSG_PLAN:
		plans_take(&a->modules.plans, &m->u.plan);
		break;
	case MSG_FAULT:
		take_fault(a, &m->u.fault, now_us);
		break;
	default:
		a->tell.tally.refused++;
		tell_log(&a->tell, LOG_WARN, "the controller sent a %s, which it may not",
			 msg_name(m->type));
	}
}

/* Handles a WELCOME. If an earlier WELCOME still waits, drops the earlier WELCOME and all orders
 * that arrived after it. */
static void take_welcome(struct agent *a, struct msg *m, int64_t now_us)
{
	struct line *l = &a->modules.orders->next_run;

	clear_line(l);
	if (join_welcome(a, &m->u.welcome, now_us) == -EAGAIN)
		join_line(l, m);
	else
		msg_clear(m);
}

/* Lets an order wait until the new run begins. Drops a message with a part of a file, because the
 * previous run requested the file. */
static void wait_for_run(struct agent *a, struct msg *m)
{
	if (m->type == MSG_FILE_PART) {
		a->tell.tally.dropped++;
		msg_clear(m);
	} else {
		join_line(&a->modules.orders->next_run, m);
	}
}

/* Carries out the order or appends it to a queue. This function owns *m from now on. */
static void obey_order(struct agent *a, struct msg *m, int64_t now_us)
{
	if (obey_any_time(a, m, now_us)) {
		msg_clear(m);
		return;
	}
	if (m->type != MSG_WELCOME && a->modules.orders->next_run.n > 0) {
		wait_for_run(a, m);
		return;
	}
	a->held.announced = committed_according_to(a, m);
	if (m->type == MSG_WELCOME) {
		take_welcome(a, m, now_us);
	} else if (!a->run.welcomed) {
		a->tell.tally.refused++;
		tell_log(&a->tell, LOG_WARN, "%s before a welcome", msg_name(m->type));
		msg_clear(m);
	} else if (needs_settled(m->type) || m->type == MSG_KEEP) {
		put_in_line(a, m);
	} else {
		obey_in_run(a, m, now_us);
		msg_clear(m);
	}
}

void orders_begin_run(struct agent *a, int64_t now_us)
{
	struct line l = a->modules.orders->next_run;

	a->modules.orders->next_run = (struct line){ .n = 0 };
	for (size_t i = 0; i < l.n; i++)
		obey_order(a, &l.list[i], now_us);
	free(l.list);
}

/* Drops the waiting orders of the previous controller. Thus the state that HELLO reports stays true
 * until the new controller sends an order. */
static void begin_with_successor(struct agent *a, int64_t now_us)
{
	clear_line(&a->modules.orders->stage);
	clear_line(&a->modules.orders->copy);
	clear_line(&a->modules.orders->next_run);
	join_hello(a, now_us);
}

/* Ends the agent if the controller has another version of the protocol, because agent and
 * controller then cannot decode each other's messages. */
static void refuse_version(struct agent *a, int64_t now_us)
{
	if (a->tell.end.leaving)
		return;
	log_line(a->tell.log, LOG_ERROR,
		 "the controller is of another version of skippipe; this is " SKIPPIPE_VERSION);
	tell_last(&a->tell, 1, now_us);
}

/* Carries out messages of the controller. Logs each change of the connection once. */
void orders_take(struct agent *a, struct post_message *p, int64_t now_us)
{
	struct msg m;
	int rc;

	switch (p->kind) {
	case POST_DATA:
		rc = msg_decode(&m, p->data, p->size);
		if (rc == 0) {
			log_line(a->tell.log, LOG_DEBUG, "%s from the controller",
				 msg_name(m.type));
			obey_order(a, &m, now_us);
			break;
		}
		a->tell.tally.refused++;
		if (rc == -EPROTONOSUPPORT)
			refuse_version(a, now_us);
		else
			tell_log(&a->tell, LOG_WARN, "a message of the controller: %s",
				 strerror(-rc));
		break;
	case POST_UP:
		log_line(a->tell.log, LOG_INFO, "the controller is up%s",
			 p->restarted ? ", and is a new process" : "");
		a->modules.orders->refusal = LINK_REASON_NONE;
		if (p->restarted)
			begin_with_successor(a, now_us);
		break;
	case POST_DOWN:
		tell_log(&a->tell, LOG_WARN, "no controller: %s", link_reason_text(p->reason));
		break;
	case POST_LOST:
		tell_log(&a->tell, LOG_WARN,
			 "messages for the previous controller were dropped: %" PRIu64, p->lost);
		break;
	case POST_REFUSED:
		if (p->reason != a->modules.orders->refusal)
			tell_log(&a->tell, LOG_WARN,
				 "the controller refuses the connection: "
				 "%s; trying again",
				 link_reason_text(p->reason));
		a->modules.orders->refusal = p->reason;
		break;
	}
}
