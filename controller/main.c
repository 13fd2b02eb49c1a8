/* skippipe-controller: plans a run, commands its agents, records it, serves consoles. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "controller/controller.h"
#include "controller/replay/replay_serve.h"
#include "controller/setup.h"
#include "wire/sessions/link.h"

enum { MESSAGES_A_TURN = 256, FLUSH_US = 1500000, FLUSH_TRIPS = 4 };

static void from_agent(struct controller *c, struct member *m, const struct msg *msg)
{
	switch (msg->type) {
	case MSG_READY:
		members_ready(c, m, &msg->u.ready);
		break;
	case MSG_HEARTBEAT:
		members_heartbeat(c, m, &msg->u.heartbeat);
		break;
	case MSG_REPORT:
		iteration_report(c, m, &msg->u.report);
		break;
	case MSG_SAVED:
		checkpoint_saved(c, m, &msg->u.saved);
		break;
	case MSG_UNREADY:
		restore_failed(c, m, &msg->u.unready);
		break;
	case MSG_KEPT:
		copies_kept(c, m, &msg->u.kept);
		break;
	case MSG_REDUCED:
		iteration_reduced(c, m, &msg->u.reduced);
		break;
	case MSG_COMMITTED:
		iteration_committed(c, m, &msg->u.committed);
		break;
	case MSG_EVALUATED:
		iteration_evaluated(c, m, &msg->u.evaluated);
		break;
	case MSG_TROUBLE:
		members_trouble(c, m, &msg->u.trouble);
		break;
	case MSG_MEASURED:
		measuring_answer(c, m, &msg->u.measured);
		break;
	case MSG_LINKS:
		members_links(c, m, &msg->u.links);
		break;
	default:
		door_wrong(c, m->peer, msg_name(msg->type));
	}
}

static void take_message(struct controller *c, const struct post_message *p)
{
	struct member *m = member_of_peer(c, p->peer);
	struct console *k = console_of_peer(c, p->peer);
	struct msg msg;
	int rc = msg_decode(&msg, p->data, p->size);

	if (rc != 0) {
		door_wrong(c, p->peer, strerror(-rc));
		return;
	}
	door_charge(c, p->peer, &msg);
	if (msg.type == MSG_HELLO)
		members_hello(c, p->peer, &msg.u.hello);
	else if (msg.type == MSG_ATTACH)
		consoles_attach(c, p->peer, &msg.u.attach);
	else if (msg.type == MSG_COMMAND && k)
		command_receive(c, k, &msg.u.command);
	else if (m)
		from_agent(c, m, &msg);
	msg_clear(&msg);
}

static void receive(struct controller *c)
{
	struct post_message p;
	struct error err;

	post_tick(c->post, c->now_us);
	for (int i = 0; i < MESSAGES_A_TURN && post_receive(c->post, c->now_us, &p) == 0; i++) {
		if (p.kind == POST_DATA)
			take_message(c, &p);
		else if (p.kind == POST_DOWN) {
			door_down(c, p.peer, p.reason);
			consoles_down(c, p.peer);
		}
	}
	door_turn(c);
	if (c->now_us >= c->next_refresh_us) {
		c->next_refresh_us = c->now_us + 300000;
		if (keys_list_refresh(c->admitted, &err) < 0)
			note(c, NOTE_WARNING, -1, 0, "%.180s", err.text);
	}
}

static int timeout_ms(const struct controller *c)
{
	int64_t until = post_deadline_us(c->post), soon = c->now_us + 20000, now = clock_monotonic_us();

	if (until > soon)
		until = soon;
	return until <= now ? 0 : (int)((until - now + 999) / 1000);
}

static void take_signal(struct controller *c, int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		controller_stop(c, "stopped by a signal");
}

static void loop(struct controller *c, int signals)
{
	struct pollfd fds[] = { { post_fd(c->post), POLLIN, 0 },
				{ planner_fd(c->planner), POLLIN, 0 },
				{ signals, POLLIN, 0 } };

	while (c->phase != PHASE_FINISHED || (!post_idle(c->post, 0) &&
					      c->now_us - c->finished_us < FLUSH_US + FLUSH_TRIPS * quiet_farthest_us(c))) {
		if (poll(fds, 3, timeout_ms(c)) > 0 && (fds[2].revents & POLLIN))
			take_signal(c, signals);
		c->now_us = clock_monotonic_us();
		receive(c);
		if (c->phase != PHASE_FINISHED) {
			replan_turn(c);
			ahead_turn(c);
			members_check(c);
			measuring_joiners(c);
			copies_turn(c);
			command_turn(c);
			disk_turn(c);
			iteration_turn(c);
		}
		consoles_turn(c);
	}
}

int main(int argc, char **argv)
{
	static struct controller c; /* large; zeroed */
	struct error err = { "" };
	sigset_t set;
	int signals, rc = options_parse(&c.options, argc, argv, &err);

	if (rc > 0)
		return 0;
	if (rc < 0) {
		fprintf(stderr, "skippipe controller: %s\n", err.text);
		return 2;
	}
	link_tune_malloc();
	link_raise_files(8192);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	c.log = (struct log){ stderr, c.options.level, "controller" };
	if (c.options.replay) {
		rc = replay_serve(&c.options, &c.log, signals, &err);
		if (rc != 0)
			fprintf(stderr, "skippipe controller: %s\n", err.text);
		return rc != 0;
	}
	rc = controller_init(&c, &err);
	if (rc == 0) {
		loop(&c, signals);
		rc = c.exit_status;
	} else {
		fprintf(stderr, "skippipe controller: %s\n", err.text);
		rc = 1;
	}
	controller_fini(&c);
	return rc;
}
