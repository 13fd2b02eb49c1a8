/* main.c - an agent that attacks the run (hostile.h). The attack begins with SIGUSR1 and ends with
 * SIGTERM. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/shared/route.h"
#include "agent/state.h"
#include "base/clock.h"
#include "tests/hostile/hostile.h"
#include "wire/sessions/link.h"

enum { TURN_MS = 5, ORPHAN_S = 600 };

static void nothing(struct hostile *h, int64_t now_us)
{
	(void)h;
	(void)now_us;
}

static const struct mode modes[] = {
	{ "nothing", "an honest agent", nothing },
	{ "numbers", "absurd numbers, hundreds to each node in every iteration", numbers },
	{ "evaluations", "activations of evaluations that were not ordered", evaluations },
	{ "early", "tensors of iterations in the future, or that never come", early },
	{ "links", "contradictory measurements of links, within its quota", contradict },
	{ "forge", "checkpoints and commits that were not requested", forge },
	{ "events", "tasks that start many times", repeat },
	{ "logs", "lines for the journal that imitate others or move a cursor", lines },
	{ "watch", "a watcher that connects, asks for comparisons and leaves, many times", watch },
	{ "announce", "the first chunks of messages without the rest", announce },
};

enum { MODES = sizeof(modes) / sizeof(modes[0]) };

bool hostile_send_control(struct hostile *h, struct msg *m, int64_t now_us)
{
	uint8_t bytes[65536];
	long size = msg_encode(m, bytes, sizeof(bytes));
	const struct post_part part = { bytes, (size_t)size };

	m->sequence = ++h->agent->tell.tally.sequence;
	return size > 0 && post_send(h->agent->tell.post, h->agent->tell.controller, &part, 1,
				     POST_RELIABLE, now_us) == 0;
}

bool hostile_send_tensor(struct hostile *h, uint16_t to, const struct msg *m, float value,
			 size_t floats, int64_t now_us)
{
	struct agent *a = h->agent;
	uint8_t head[4096];
	float *body = malloc(floats * sizeof(*body) + 1);
	long size = msg_encode(m, head, sizeof(head));
	const struct post_part parts[] = { { head, (size_t)size },
					   { body, floats * sizeof(*body) } };
	int rc = -ENOMEM;

	for (size_t i = 0; body && i < floats; i++)
		body[i] = value;
	if (body && size > 0 && a->peers.list[to].dial)
		rc = post_send(a->peers.post, a->peers.list[to].dial, parts, 2, POST_ACTIVATIONS,
			       now_us);
	free(body);
	return rc == 0;
}

int hostile_stage_of(const struct hostile *h, uint16_t node)
{
	for (int p = 0; p < 2; p++)
		for (uint32_t i = 0; h->agent->modules.plans.list[p].known &&
				     i < h->agent->modules.plans.list[p].n_routes;
		     i++) {
			const struct route *r = &h->agent->modules.plans.list[p].routes[i];
			int hop = route_find(r, node);

			if (hop >= 0)
				return r->stages[hop];
		}
	return -1;
}

static int catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Runs the loop of skippipe-agent, and attacks after each turn. Only SIGTERM ends the program: it
 * continues even if the controller stops the agent or excludes it. */
static int loop(struct hostile *h, const struct mode *mode, int signals)
{
	struct agent *a = h->agent;
	struct signalfd_siginfo info;
	bool attacks = false;

	for (;;) {
		int64_t now = clock_monotonic_us();
		struct pollfd p[1 + AGENT_FDS] = { { .fd = signals, .events = POLLIN } };
		int fds[AGENT_FDS];

		agent_fds(a, fds);
		for (int i = 0; i < AGENT_FDS; i++)
			p[1 + i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
		poll(p, 1 + AGENT_FDS, agent_deadline_us(a) <= now ? 0 : TURN_MS);
		while (read(signals, &info, sizeof(info)) == sizeof(info)) {
			if (info.ssi_signo == SIGTERM)
				return 0;
			attacks = true;
			fprintf(stderr, "hostile: %s\n", mode->description);
		}
		agent_receive(a, clock_monotonic_us());
		agent_work(a, clock_monotonic_us());
		agent_send(a, clock_monotonic_us());
		if (attacks && a->run.welcomed) {
			h->turns++;
			mode->act(h, clock_monotonic_us());
		}
	}
}

static int misuse(void)
{
	fprintf(stderr, "usage: hostile_agent MODE JOIN CONTROLLER-KEY KEY-FILE LISTEN NODE\n"
			"Modes:\n");
	for (int i = 0; i < MODES; i++)
		fprintf(stderr, "  %-12s %s\n", modes[i].name, modes[i].description);
	return 2;
}

int main(int argc, char **argv)
{
	struct log log = { .to = stderr, .least = LOG_WARN, .who = "hostile" };
	struct agent_options o = { .device = "cpu",
				   .node = -1,
				   .orphan_s = ORPHAN_S,
				   .stuck_s = ORPHAN_S,
				   .log = &log };
	struct keys_identity *identity = NULL;
	struct error err = { "" };
	struct hostile h = { 0 };
	int mode = 0, signals, status = 1;

	if (argc > 1 && (strcmp(argv[1], "stranger") == 0 || strcmp(argv[1], "invited") == 0))
		return flood(argc, argv);
	while (argc == 7 && mode < MODES && strcmp(argv[1], modes[mode].name) != 0)
		mode++;
	if (argc != 7 || mode == MODES)
		return misuse();
	o.join = argv[2];
	o.listen = argv[5];
	o.node = atoi(argv[6]);
	link_tune_malloc();
	link_raise_files(8192);
	signals = catch_signals();
	if (keys_parse(argv[3], &o.controller, &err) == 0 &&
	    keys_load(&identity, argv[4], &err) == 0) {
		o.identity = identity;
		if (agent_new(&h.agent, &o, clock_monotonic_us(), &err) == 0)
			status = loop(&h, &modes[mode], signals);
	}
	if (err.text[0])
		fprintf(stderr, "hostile: %s\n", err.text);
	agent_free(h.agent);
	keys_free(identity);
	close(signals);
	return status;
}
