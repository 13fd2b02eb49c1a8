/* Measures the controller with many agents that only pretend to compute, over real connections:
 *
 *     build/bench/controller [AGENTS] [ITERATIONS] [MICROBATCHES]
 *         default: 1000 agents, 12 iterations, 2 microbatches for each data node
 *
 * The installed controller runs the cluster. The agents are played by processes of this program,
 * about a hundred agents in each process. An agent has its own key and socket, sends ten heartbeats
 * a second, answers every message, and reports a started iteration as finished after two seconds.
 * Then the run is paused, so that only the heartbeats are left. The program prints lines of JSON:
 * the cores used by heartbeats and by the whole run, the CPU time that an iteration takes, and the
 * resident memory.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/clock.h"
#include "wire/keys.h"
#include "wire/msg.h"
#include "wire/post.h"

enum {
	AGENTS_A_PROCESS = 120,
	BEAT_US = 100000,
	FORWARD_US = 10000,
	BACKWARD_US = 20000,
	LOSS_US = 1000,
	COMPUTE_US = 2000000, /* time from the start of an iteration to an agent's report */
	STAGES = 10
};

/* ---- an agent ---- */

struct actor {
	struct keys_identity *id;
	struct post *post;
	post_peer_id to;
	bool greeted;
	uint16_t node;
	uint8_t stage;
	uint64_t committed, iteration, beat;
	/* Times at which the next heartbeat is due and at which the iteration in progress ends (0:
	 * no iteration is in progress). */
	int64_t beat_at_us, done_at_us;
	/* The controller's order to sum, which this agent answers after its report. If the order
	 * has no nodes, none has arrived. */
	struct msg_reduce ordered;
	int64_t ping_us, ping_at_us;
	struct msg_task_event *events; /* the tasks of this node in the plan, as events to report */
	uint32_t n_events;
	size_t room;
	uint64_t epoch;
};

static void send(struct actor *a, const struct msg *m, enum post_flags flags)
{
	size_t size = msg_size(m);
	unsigned char *data = alloc_new(size);
	struct post_part part = { data, size };

	if (msg_encode(m, data, size) > 0)
		post_send(a->post, a->to, &part, 1, flags, clock_monotonic_us());
	free(data);
}

static void send_hello(struct actor *a)
{
	struct msg m = { .type = MSG_HELLO };

	m.u.hello = (struct msg_hello){ .protocol = MSG_VERSION,
					.node = -1,
					.incarnation = (uint64_t)(uintptr_t)a,
					.address = "tcp://127.0.0.1:9",
					.device = "none",
					.host = "bench" };
	send(a, &m, POST_RELIABLE);
}

static void send_ready(struct actor *a, const struct msg_assign *s)
{
	struct msg m = { .type = MSG_READY };

	a->stage = s->stage;
	m.u.ready = (struct msg_ready){ .assignment = s->assignment,
					.stage = s->stage,
					.iteration = a->committed,
					.hash = 1,
					.forward_s = FORWARD_US * 1e-6,
					.backward_s = BACKWARD_US * 1e-6,
					.loss_s = LOSS_US * 1e-6,
					.corpus_hash = s->stage == 0 };
	send(a, &m, POST_RELIABLE);
}

static void put_task(struct actor *a, const struct route *r, uint8_t kind)
{
	struct msg_task_event e = { .type = WORK_STARTS,
				    .kind = kind,
				    .microbatch = r->microbatch,
				    .attempt = r->attempt,
				    .blocker = UINT32_MAX };

	array_reserve(&a->events, &a->room, a->n_events + 2, sizeof(*a->events));
	a->events[a->n_events++] = e;
	e.type = WORK_ENDS;
	e.loss = kind == TASK_LOSS ? 5 : 0;
	e.counted = kind != TASK_FORWARD;
	a->events[a->n_events++] = e;
}

/* Prepares the events that this node will report: the start and the end of each of its tasks. */
static void take_plan(struct actor *a, const struct msg_plan *p)
{
	a->n_events = 0;
	a->epoch = p->epoch;
	for (uint32_t i = 0; i < p->n_routes; i++)
		for (uint32_t h = 0; h < p->routes[i].n_hops; h++) {
			if (p->routes[i].nodes[h] != a->node)
				continue;
			put_task(a, &p->routes[i], TASK_FORWARD);
			if (h == 0)
				put_task(a, &p->routes[i], TASK_LOSS);
			put_task(a, &p->routes[i], TASK_BACKWARD);
		}
}

static int64_t duration_us(uint8_t kind)
{
	return kind == TASK_FORWARD ? FORWARD_US : kind == TASK_LOSS ? LOSS_US : BACKWARD_US;
}

static void send_report(struct actor *a, int64_t now)
{
	struct msg m = { .type = MSG_REPORT };
	int64_t at = now - COMPUTE_US;

	for (uint32_t i = 0; i < a->n_events; i++) {
		struct msg_task_event *e = &a->events[i];

		if (e->type == WORK_ENDS)
			at += duration_us(e->kind);
		e->at_us = e->arrived_us = at;
	}
	/* Sends a few events at a time, as a real agent does. */
	for (uint32_t i = 0; i < a->n_events; i += 4) {
		uint32_t left = a->n_events - i;

		m.u.report = (struct msg_report){ .iteration = a->iteration,
						  .n_events = left < 4 ? left : 4,
						  .events = a->events + i };
		send(a, &m, POST_RELIABLE);
	}
	a->done_at_us = 0;
}

/* Hashes of a sum. All agents report 0 for every hash, so their sums agree. */
static const uint64_t no_slices[MSG_NODES];

static void send_reduced(struct actor *a, const struct msg_reduce *order)
{
	struct msg m = { .type = MSG_REDUCED };

	m.u.reduced = (struct msg_reduced){ .iteration = order->iteration,
					    .attempt = order->attempt,
					    .stage = a->stage,
					    .sum_squares = 1,
					    .elapsed_us = 1000,
					    .n_slices = order->n_nodes,
					    .slices = no_slices };
	send(a, &m, POST_RELIABLE);
}

static void take_message(struct actor *a, const struct msg *in, int64_t now)
{
	struct msg m = { 0 };

	switch (in->type) {
	case MSG_WELCOME:
		a->node = in->u.welcome.node;
		break;
	case MSG_ASSIGN:
		send_ready(a, &in->u.assign);
		break;
	case MSG_PLAN:
		take_plan(a, &in->u.plan);
		break;
	case MSG_START:
		a->iteration = in->u.start.iteration;
		a->done_at_us = now + COMPUTE_US;
		break;
	case MSG_MEASURE: /* reports the same quality for every link */
		m.type = MSG_MEASURED;
		m.u.measured = (struct msg_measured){ in->u.measure.id, in->u.measure.to, 1,
						      0.0001f, 0.00001f, 1e9f, "" };
		send(a, &m, POST_RELIABLE);
		break;
	case MSG_CONNECT:
		m.type = MSG_CONNECTED;
		m.u.connected.id = in->u.connect.id;
		send(a, &m, POST_RELIABLE);
		break;
	case MSG_REDUCE:
		a->ordered.n_nodes = 0;
		if (in->u.reduce.when_counted && a->done_at_us)
			/* send_reduced uses only the number of nodes in this order. */
			a->ordered = in->u.reduce;
		else
			send_reduced(a, &in->u.reduce);
		break;
	case MSG_COMMIT:
		a->committed = in->u.commit.iteration;
		m.type = MSG_COMMITTED;
		m.u.committed = (struct msg_committed){ .iteration = a->committed,
							 .stage = a->stage,
							 .hash = a->committed + 1 };
		send(a, &m, POST_RELIABLE);
		break;
	case MSG_PING:
		a->ping_us = in->u.ping.now_us;
		a->ping_at_us = now;
		break;
	default:
		break;
	}
}

static void send_heartbeat(struct actor *a, int64_t now)
{
	struct msg m = { .type = MSG_HEARTBEAT };

	m.u.heartbeat =
		(struct msg_heartbeat){ .beat = ++a->beat,
					.now_us = now,
					.echo_us = a->ping_us,
					.echo_age_us = a->ping_us ? now - a->ping_at_us : 0,
					.iteration = a->iteration,
					.committed = a->committed,
					.stage = a->stage,
					.running = a->done_at_us != 0 };
	send(a, &m, POST_LOSSY);
	a->beat_at_us += BEAT_US;
	if (a->beat_at_us < now)
		a->beat_at_us = now + BEAT_US;
}

static void run_actor(struct actor *a)
{
	int64_t now = clock_monotonic_us();
	struct post_message in;
	struct msg m;

	post_tick(a->post, now);
	while (post_receive(a->post, now, &in) == 0) {
		if (in.kind == POST_UP && !a->greeted) {
			a->greeted = true;
			send_hello(a);
		}
		if (in.kind != POST_DATA || msg_decode(&m, in.data, in.size) != 0)
			continue;
		take_message(a, &m, now);
		msg_clear(&m);
	}
	if (a->greeted && now >= a->beat_at_us)
		send_heartbeat(a, now);
	if (a->done_at_us && now >= a->done_at_us) {
		send_report(a, now);
		if (a->ordered.n_nodes > 0)
			send_reduced(a, &a->ordered);
		a->ordered.n_nodes = 0;
	}
}

/* Plays the agents of one process. The process ends when its parent does. */
static int host(int argc, char **argv)
{
	int n = argc - 4;
	struct actor *actors = alloc_array((size_t)n, sizeof(*actors));
	struct pollfd *fds = alloc_array((size_t)n, sizeof(*fds));
	struct keys_public controller;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	link_raise_files(8192);
	if (keys_parse(argv[3], &controller, NULL) != 0)
		return 1;
	for (int i = 0; i < n; i++) {
		struct post_options o = { .chunk_bytes = 65536 };
		struct error err;

		if (keys_load(&actors[i].id, argv[4 + i], &err) != 0)
			return fprintf(stderr, "%s\n", err.text), 1;
		o.identity = actors[i].id;
		if (post_open(&actors[i].post, &o, &err) != 0 ||
		    post_dial(actors[i].post, argv[2], &controller, &actors[i].to, &err) != 0)
			return fprintf(stderr, "%s\n", err.text), 1;
		actors[i].beat_at_us = clock_monotonic_us() + i * (BEAT_US / n);
		fds[i] = (struct pollfd){ post_fd(actors[i].post), POLLIN, 0 };
	}
	for (;;) {
		poll(fds, (nfds_t)n, 5);
		for (int i = 0; i < n; i++)
			run_actor(&actors[i]);
	}
}

/* ---- the controller and its measurement ---- */

static char folder[64];
static pid_t controller_pid;

static int make_keys(int n)
{
	char path[128], name[32], admitted[128];
	struct keys_identity *id;
	FILE *list;

	snprintf(admitted, sizeof(admitted), "%s/admitted", folder);
	list = fopen(admitted, "w");
	if (!list)
		return -errno;
	fprintf(list, "skippipe-admitted 1\n");
	for (int i = -1; i < n; i++) {
		char text[KEYS_TEXT_SIZE];

		snprintf(name, sizeof(name), i < 0 ? "controller" : "%d", i);
		snprintf(path, sizeof(path), "%s/%s.key", folder, name);
		if (keys_generate(&id, NULL) != 0 || keys_save(id, path, NULL) != 0)
			return -EIO;
		keys_text(keys_public_of(id), text);
		if (i >= 0)
			fprintf(list, "%s agent a%d\n", text, i);
		keys_free(id);
	}
	return fclose(list);
}

static FILE *start_controller(int n, int iterations, int per_data_node, char *address, char *key)
{
	char run[128], key_file[128], admitted[128], agents[16], microbatches[16],
		stages[STAGES * 5] = "", act_at[32], line[512];
	int pipes[2];
	FILE *log;

	for (int s = 0; s < STAGES; s++)
		sprintf(stages + strlen(stages), s ? ",%d" : "%d",
			n / STAGES + (s < n % STAGES));
	snprintf(run, sizeof(run), "%s/run", folder);
	snprintf(key_file, sizeof(key_file), "%s/controller.key", folder);
	snprintf(admitted, sizeof(admitted), "%s/admitted", folder);
	snprintf(agents, sizeof(agents), "%d", n);
	snprintf(microbatches, sizeof(microbatches), "%d", per_data_node);
	snprintf(act_at, sizeof(act_at), "%d:pause", iterations + 1);
	if (pipe(pipes) != 0)
		return NULL;
	controller_pid = fork();
	if (controller_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(pipes[1], STDERR_FILENO);
		close(pipes[0]);
		execl("build/bin/skippipe-controller", "skippipe-controller", "--run-dir", run,
		      "--key", key_file, "--admitted", admitted, "--agents", agents, "--stages",
		      stages, "--skip", "4", "--microbatches", microbatches, "--eval-every", "0",
		      "--time-scale", "0", "--gather-s", "300", "--silence-ms", "5000", "--at",
		      act_at, (char *)NULL);
		_exit(127);
	}
	close(pipes[1]);
	log = fdopen(pipes[0], "r");
	while (log && fgets(line, sizeof(line), log)) {
		char *at = strstr(line, "listening at ");

		if (at && sscanf(at, "listening at %150s with key %64s", address, key) == 2)
			return log;
		fputs(line, stderr);
	}
	return NULL;
}

/* Returns the user and system time of the controller, in seconds. task: "task/ID/" for one thread;
 * "": all threads. */
static double cpu_s(const char *task)
{
	char path[96], text[1024];
	unsigned long user = 0, system = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%sstat", (int)controller_pid, task);
	f = fopen(path, "r");
	if (!f || !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	if (strrchr(text, ')'))
		sscanf(strrchr(text, ')'),
		       ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static long resident_kib(void)
{
	char path[64], line[256];
	long kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)controller_pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmHWM: %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

static char main_task[32];

/* Reads the controller's log until a line contains the words. Returns -1 at the end of the log. */
static int read_until(FILE *log, const char *words)
{
	char line[1024];

	while (fgets(line, sizeof(line), log)) {
		fputs(line, stderr);
		if (strstr(line, words))
			return 0;
	}
	return -1;
}

static uint64_t count_plans(void)
{
	char command[160], text[32] = "0";
	FILE *f;

	snprintf(command, sizeof(command), "ls -1 %s/run/plans | wc -l", folder);
	f = popen(command, "r");
	if (f && fgets(text, sizeof(text), f))
		pclose(f);
	return strtoull(text, NULL, 10);
}

static pid_t start_host(const char *self, const char *address, const char *key, int from,
			int to)
{
	char *args[AGENTS_A_PROCESS + 5],
		(*paths)[96] = alloc_array(AGENTS_A_PROCESS, sizeof(*paths));
	int n = 0;
	pid_t pid;

	args[n++] = (char *)self;
	args[n++] = (char *)"host";
	args[n++] = (char *)address;
	args[n++] = (char *)key;
	for (int i = from; i < to; i++) {
		snprintf(paths[i - from], sizeof(*paths), "%s/%d.key", folder, i);
		args[n++] = paths[i - from];
	}
	args[n] = NULL;
	pid = fork();
	if (pid == 0) {
		execv("/proc/self/exe", args);
		_exit(127);
	}
	free(paths);
	return pid;
}

struct sample {
	int64_t at_us;
	double all_s, main_s;
};

static struct sample sample(void)
{
	return (struct sample){ clock_monotonic_us(), cpu_s(""), cpu_s(main_task) };
}

static void measure(FILE *log, int n, int iterations)
{
	struct sample begun, paused, idle, end;
	double seconds, beats, both;

	if (read_until(log, "agents are here") != 0)
		return;
	begun = sample();
	if (read_until(log, "pause at the iteration's end") != 0)
		return;
	paused = sample();
	sleep(3);
	idle = sample();
	sleep(10);
	end = sample();

	seconds = (double)(end.at_us - idle.at_us) * 1e-6;
	beats = (end.main_s - idle.main_s) / seconds;
	printf("{\"bench\":\"heartbeats\",\"agents\":%d,\"cores\":%.3f,\"main_thread_cores\":%."
	       "3f}\n",
	       n, (end.all_s - idle.all_s) / seconds, beats);
	seconds = (double)(paused.at_us - begun.at_us) * 1e-6;
	both = paused.main_s - begun.main_s;
	printf("{\"bench\":\"training\",\"agents\":%d,\"iterations\":%d,\"seconds\":%.1f,"
	       "\"cores\":%.3f,"
	       "\"main_thread_cores\":%.3f,\"iteration_main_thread_ms\":%.1f,\"plans\":%llu,"
	       "\"peak_resident_mb\":%.0f}\n",
	       n, iterations, seconds, (paused.all_s - begun.all_s) / seconds, both / seconds,
	       1e3 * (both - beats * seconds) / iterations, (unsigned long long)count_plans(),
	       (double)resident_kib() / 1024);
}

int main(int argc, char **argv)
{
	char address[LINK_ADDRESS_SIZE], key[KEYS_TEXT_SIZE], clean[96];
	int n = argc > 1 ? atoi(argv[1]) : 1000, iterations = argc > 2 ? atoi(argv[2]) : 12,
	    data_nodes = n / STAGES + (n % STAGES > 0),
	    per_data_node = argc > 3 && n >= STAGES ? atoi(argv[3]) / data_nodes : 2;
	FILE *log;

	if (argc > 4 && strcmp(argv[1], "host") == 0)
		return host(argc, argv);
	if (n < STAGES || n > MSG_NODES || iterations < 1 || per_data_node < 1 ||
	    per_data_node * data_nodes > MSG_MICROBATCHES)
		return fprintf(stderr, "%d to %d agents, and 1 to %d microbatches a data node\n",
			       STAGES, MSG_NODES, MSG_MICROBATCHES / (data_nodes ? data_nodes : 1)),
		       2;
	strcpy(folder, "/tmp/skippipe-bench-XXXXXX");
	if (!mkdtemp(folder) || make_keys(n) != 0)
		return fprintf(stderr, "%s: no keys\n", folder), 1;
	log = start_controller(n, iterations, per_data_node, address, key);
	if (!log)
		return fprintf(stderr, "the controller does not start\n"), 1;
	snprintf(main_task, sizeof(main_task), "task/%d/", (int)controller_pid);
	for (int i = 0; i < n; i += AGENTS_A_PROCESS)
		start_host(argv[0], address, key, i,
			   i + AGENTS_A_PROCESS < n ? i + AGENTS_A_PROCESS : n);
	measure(log, n, iterations);
	kill(controller_pid, SIGTERM);
	while (waitpid(controller_pid, NULL, 0) < 0 && errno == EINTR)
		;
	/* The processes that play agents end when this process does (PR_SET_PDEATHSIG). */
	snprintf(clean, sizeof(clean), "rm -rf '%s'", folder);
	return system(clean);
}
