/* loop.c - the controller's main loop: it gives every part its turn, in a fixed order.
 *
 * A part changes only its own state. To change the iteration under way, it queues a request
 * (requests.h). loop_act carries the requests out after each message and after each part's turn,
 * so the next part finds no requests left. */
#include "controller/loop.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "controller/controller.h"
#include "controller/iteration/answers.h"
#include "controller/iteration/commit.h"
#include "controller/iteration/cut_links.h"
#include "controller/iteration/drain.h"
#include "controller/iteration/evaluate.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/recover.h"
#include "controller/iteration/restart.h"
#include "controller/iteration/stall_detector.h"
#include "controller/iteration/sums.h"
#include "controller/joining/agents.h"
#include "controller/joining/join_requests.h"
#include "controller/joining/recut.h"
#include "controller/joining/rivals.h"
#include "controller/joining/startup.h"
#include "controller/members/admission.h"
#include "controller/members/failure_detector.h"
#include "controller/members/finish.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/members/peers.h"
#include "controller/network/link_record.h"
#include "controller/network/measuring.h"
#include "controller/operator/command.h"
#include "controller/operator/consoles.h"
#include "controller/operator/previews.h"
#include "controller/planning/contingency.h"
#include "controller/planning/predict.h"
#include "controller/run/disk.h"
#include "controller/run/journal.h"
#include "controller/run/phase.h"
#include "controller/run/stream.h"
#include "controller/weights/assign.h"
#include "controller/weights/checkpoints.h"
#include "controller/weights/files.h"
#include "controller/weights/phase_moves.h"
#include "controller/weights/rebalance.h"
#include "controller/weights/restore.h"
#include "controller/weights/standbys.h"

enum { MESSAGES_A_TURN = 256, FLUSH_US = 1500000, FLUSH_TRIPS = 4 };

/* ---- requests ---- */

/* Carries out the requests in this order.
 *
 * 1. Forgets sums that have become void. Otherwise the loss of a node could complete these sums,
 *    and they would be committed.
 *
 * 2. Gives the work of lost nodes to other nodes, or stalls the run.
 *
 * 3. Restarts void sums, unless a loss has restarted them already. Then checks whether all sums
 *    have arrived.
 *
 * 4. Restarts the iteration. This comes last because the new attempt voids everything that agents
 *    have sent, and because the new attempt must wait if a stage is lost. */
static void carry_out(struct iteration *it)
{
	struct requests *r = &it->run->requests;
	const char *why = r->restart_reason;
	bool sums = r->restart_sums && it->run->phase == PHASE_REDUCING, look = r->look_at_sums;
	uint32_t attempt;
	int lost;

	r->restart_sums = r->look_at_sums = false;
	r->restart_reason = NULL;
	if (sums)
		sums_forget(it);
	attempt = it->reduce_attempt;
	while ((lost = requests_next_lost(r)) >= 0)
		iteration_lost(it, &it->members->list[lost]);
	if (sums && it->run->phase == PHASE_REDUCING && it->reduce_attempt == attempt)
		begin_reduction(it);
	if (look && it->run->phase == PHASE_REDUCING)
		commit_when_reduced(it);
	if (why && it->run->phase != PHASE_FINISHED)
		restart_iteration(it, why);
}

void loop_act(struct iteration *it)
{
	while (requests_any(&it->run->requests) && it->run->phase != PHASE_FINISHED)
		carry_out(it);
	if (it->run->phase == PHASE_FINISHED)
		it->run->requests = (struct requests){ .n_lost = 0 };
}

/* ---- messages ---- */

/* Passes the message to the part that handles its kind. */
static void take_agent_message(struct iteration *it, struct member *m, const struct msg *msg)
{
	switch (msg->type) {
	case MSG_READY:
		members_ready(it->members, m, &msg->u.ready);
		break;
	case MSG_HEARTBEAT:
		members_heartbeat(it, m, &msg->u.heartbeat);
		break;
	case MSG_REPORT:
		iteration_report(it, m, &msg->u.report);
		break;
	case MSG_SAVED:
		checkpoint_saved(it->backups, m, &msg->u.saved);
		break;
	case MSG_UNREADY:
		restore_failed(it->backups, m, &msg->u.unready);
		break;
	case MSG_FILE_ASK:
		files_asked(it->backups, m, &msg->u.file_ask);
		break;
	case MSG_FILE_PART:
		offsite_part(it->backups, m, msg);
		break;
	case MSG_KEPT:
		standbys_kept(it->members, m, &msg->u.kept);
		break;
	case MSG_REDUCED:
		iteration_reduced(it, m, &msg->u.reduced);
		break;
	case MSG_COMMITTED:
		iteration_committed(it->members, m, &msg->u.committed);
		break;
	case MSG_EVALUATED:
		iteration_evaluated(it, m, &msg->u.evaluated);
		break;
	case MSG_TROUBLE:
		members_trouble(it->members, m, &msg->u.trouble);
		break;
	case MSG_LOG:
		members_log(it->run, m, &msg->u.log);
		break;
	case MSG_MEASURED:
		measuring_answer(it->members, m, &msg->u.measured);
		break;
	case MSG_CONNECTED:
		preparation_answer(m, &msg->u.connected);
		break;
	case MSG_LINKS:
		members_links(it->planning, m, &msg->u.links);
		break;
	default:
		admission_wrong(it->members, m->peer, msg_name(msg->type));
	}
}

static bool is_agent(const struct run *run, post_peer_id peer)
{
	struct post_peer_info info;

	return post_peer(run->post, peer, &info) == 0 && info.role == KEYS_AGENT;
}

/* A HELLO may give the node another stage. If the node was lost, the loss concerns its old stage,
 * so the loss is handled first. */
static void take_hello(struct iteration *it, post_peer_id peer, const struct msg_hello *hello)
{
	members_replaced(it->members, peer, hello);
	loop_act(it);
	members_hello(it->backups, peer, hello);
}

/* An agent sends heartbeats before it is a member, so a heartbeat from a stranger is no
 * violation. */
static void take_message(struct controller *c, const struct post_message *p)
{
	struct member *m = member_of_peer(&c->members, p->peer);
	struct console *k = console_of_peer(&c->run, p->peer);
	struct msg msg;
	int rc = msg_decode(&msg, p->data, p->size);

	if (rc == -EPROTONOSUPPORT)
		members_refuse_version(&c->members, p->peer);
	if (rc != 0) {
		admission_wrong(&c->members, p->peer,
				rc == -EPROTONOSUPPORT ? "a message of another version of skippipe"
						       : strerror(-rc));
		return;
	}
	admission_charge(&c->run, p->peer, &msg);
	if (join_requests_is_invited(&c->members, p->peer)) {
		join_requests_take(&c->members, p->peer, &msg);
	} else if (msg.type == MSG_HELLO) {
		if (!rivals_wait(&c->members, p->peer, &msg.u.hello))
			take_hello(&c->iteration, p->peer, &msg.u.hello);
	} else if (msg.type == MSG_ATTACH) {
		consoles_attach(&c->operators, p->peer, &msg.u.attach);
	} else if (msg.type == MSG_COMMAND && k) {
		command_receive(&c->operators, k, &msg.u.command);
	} else if (m) {
		m->assigned.message_sequence = msg.sequence;
		take_agent_message(&c->iteration, m, &msg);
	} else if (!is_agent(&c->run, p->peer)) {
		admission_wrong(&c->members, p->peer, msg_name(msg.type));
	}
	msg_clear(&msg);
}

static void receive_messages(struct controller *c)
{
	struct post_message p;

	post_tick(c->run.post, c->run.now_us);
	for (int i = 0; i < MESSAGES_A_TURN && post_receive(c->run.post, c->run.now_us, &p) == 0;
	     i++) {
		if (p.kind == POST_DATA)
			take_message(c, &p);
		else if (p.kind == POST_DOWN) {
			admission_down(&c->members, p.peer, p.reason);
			rivals_down(&c->members, p.peer);
			consoles_down(&c->run, p.peer);
		}
		loop_act(&c->iteration);
	}
	admission_turn(&c->members);
}

/* ---- the phases of a run ---- */

/* Admits joiners first, so that acts of --at can name them. These acts apply to the iteration that
 * begins. */
static void begin_next(struct controller *c)
{
	iteration_admit_joiners(&c->planning);
	command_scripted(&c->operators);
	if (!recut_turn(&c->backups))
		iteration_boundary(&c->iteration);
}

void loop_phase(struct controller *c)
{
	switch (c->run.phase) {
	case PHASE_GATHERING: /* waits until every node has joined and has a stage */
		startup_turn(&c->iteration);
		break;
	case PHASE_PLANNING: /* between two iterations */
	case PHASE_PAUSED:
		if (c->iteration.evaluation.wanted && replicas_everywhere(&c->members))
			evaluation_begin(&c->iteration);
		else
			begin_next(c);
		break;
	case PHASE_COMPUTING: /* agents' reports advance the iteration; the call detects a stall */
		stall_turn(&c->iteration);
		break;
	case PHASE_REDUCING: /* agents' reports advance the sums; the call detects a stall */
		if (!disk_waits(&c->run))
			stall_sums_turn(&c->iteration);
		break;
	case PHASE_COMMITTING: /* waits until the commit is announced, and shown to consoles */
		set_phase(&c->run, PHASE_PLANNING);
		break;
	case PHASE_EVALUATING:
		evaluation_turn(&c->iteration);
		break;
	case PHASE_STALLED: /* some stage has no replica */
		if (c->run.ending.stopping)
			controller_finish(&c->members, c->run.ending.exit_status,
					  c->run.ending.stopping);
		else
			recover_turn(&c->iteration);
		break;
	default:
		break;
	}
}

/* ---- a turn ---- */

void loop_look_at_members(struct iteration *it)
{
	struct msg_hello hello;
	post_peer_id peer;

	while (rivals_next(it->members, &peer, &hello))
		take_hello(it, peer, &hello);
	members_tell_peers(it->members);
	if (!members_due(it->members))
		return;
	members_hear_silence(it->members);
	loop_act(it);
	members_check_joiners(it->backups);
	loop_act(it);
	cut_links_check(it);
	loop_act(it);
	drain_turn(it);
	loop_act(it);
	members_ping(it->members);
}

void loop_take_answers(struct controller *c)
{
	struct planned *a;

	while ((a = planner_take(c->planning.planner)) != NULL) {
		if (a->kind == PLANNER_RUN)
			/* reports the plan's figures before predict changes them */
			answers_tell_sums(&c->planning, a);
		predict(&c->members, a);
		switch (a->kind) {
		case PLANNER_RUN:
			answers_run(&c->planning, a);
			break;
		case PLANNER_PREVIEW:
		case PLANNER_COMPARE:
			previews_answered(&c->operators.previews, &c->iteration, a);
			break;
		case PLANNER_BASELINE:
			answers_baseline(&c->members, a);
			break;
		case PLANNER_PHASES: /* not expected: phase_targets.c has its own planner */
			planned_free(a);
			break;
		}
	}
}

/* Gives each part its turn. Planner answers come first, so that all parts use the newest plan.
 * Then dead nodes are found, so that nothing begins with them. The connections of a new plan,
 * joiners' links and standby copies follow. Due acts of operators and due faults come before the
 * iteration, so that they apply to the next iteration. The iteration comes last, when everything
 * else is settled. */
static void take_turn(struct controller *c)
{
	loop_take_answers(c);
	loop_act(&c->iteration);
	contingency_turn(&c->planning);
	loop_look_at_members(&c->iteration);
	preparation_turn(&c->planning);
	if (measuring_joiners(&c->members))
		c->planning.drift.links_corrected = c->members.has_unrecorded_nodes = true;
	record_late_nodes(&c->members);
	phase_moves_turn(&c->backups);
	if (standbys_turn(&c->backups, iteration_sums_took_s(&c->iteration)))
		rebalance_turn(&c->backups);
	loop_act(&c->iteration);
	command_turn(&c->operators);
	disk_turn(&c->run);
	offsite_turn(&c->backups);
	loop_act(&c->iteration);
	disk_continue(&c->run);
	loop_phase(c);
	loop_act(&c->iteration);
}

static int turn_timeout_ms(const struct run *run)
{
	int64_t until = post_deadline_us(run->post), soon = run->now_us + 20000,
		now = clock_monotonic_us();

	if (until > soon)
		until = soon;
	return until <= now ? 0 : (int)((until - now + 999) / 1000);
}

static void take_signal(struct iteration *it, int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		controller_stop(it, "stopped by a signal");
}

/* Returns true if this controller should exit, because another controller continues the run in this
 * process, or because the run has ended. After the end, the controller first waits a limited time
 * until every peer has received the last messages. */
static bool is_over(const struct members *members)
{
	if (members->run->ending.restarts)
		return true;
	return members->run->phase == PHASE_FINISHED &&
	       (post_idle(members->run->post, 0) ||
		members->run->now_us - members->run->ending.at_us >=
			FLUSH_US + FLUSH_TRIPS * failure_detector_farthest_us(members));
}

void loop_run(struct controller *c, int signals)
{
	struct pollfd fds[] = { { post_fd(c->run.post), POLLIN, 0 },
				{ planner_fd(c->planning.planner), POLLIN, 0 },
				{ signals, POLLIN, 0 } };

	while (!is_over(&c->members)) {
		if (poll(fds, 3, turn_timeout_ms(&c->run)) > 0 && (fds[2].revents & POLLIN))
			take_signal(&c->iteration, signals);
		c->run.now_us = clock_monotonic_us();
		receive_messages(c);
		if (c->run.phase != PHASE_FINISHED)
			take_turn(c);
		consoles_turn(&c->operators);
		monitor_turn(c->monitor);
	}
}
