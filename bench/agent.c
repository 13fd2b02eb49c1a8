/* Measures what the host does to pass tensors through an agent. Three agents run on loopback, each
 * a process with a stage of its own. Every microbatch goes to each of them in turn and back to the
 * first, forward and backward. This takes six transfers of a tensor. The device `pretend` takes the
 * time of a card but computes nothing, so the processor times are those of the host's work.
 *
 *     build/bench/agent [FORMAT] [MICROBATCHES] [TOKENS]
 *         FORMAT fp32, bf16, q8 or q6, or all (default); 8 microbatches of 4,096 tokens with
 *         2,048 channels: 33.5 MB in fp32
 *     build/bench/agent sum [MILLIONS] [FORMAT]
 *         what one of three replicas computes to sum the gradients of a stage with MILLIONS
 *         million weights (default: 250)
 *
 * Every figure is one line of JSON. It describes the agent in the middle unless the line says
 * otherwise. A GB is 10^9 bytes of the tensors in fp32, whatever their format. The processes fork
 * before they use nanomsg, because its state does not survive a fork.
 */
#include <dirent.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/sums/slices.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/process/cgroup.h"
#include "base/tensor_format.h"
#include "model/config.h"
#include "wire/msg.h"
#include "wire/post.h"

enum { N = 3, BATCHES_MOST = 64, TENSORS = 6, DIM = 2048, SEQUENCE = 1024 };

/* Processor time of an agent's threads, and figures of the agent's main loop. */
struct usage {
	double loop_s, compute_s, codec_s, others_s;
	/* Longest turn of the loop: in wall time, and in processor time. */
	double longest_turn_s, longest_busy_s;
	long faults; /* minor page faults during the measurement */
	long turns;  /* turns of the loop */
};

static struct keys_identity *ids[N + 1]; /* keys of the agents, then the controller's key */
static struct agent_options options;
static int to_agent[N][2], from_agent[N][2]; /* pipes between this process and the agents */
static pid_t agents[N];

static void die(const char *what, const struct error *err)
{
	fprintf(stderr, "bench/agent: %s %s\n", what, err ? err->text : "");
	exit(1);
}

/* ---- an agent's process ---- */

/* Adds up the processor times of this process's threads. */
static void read_threads(struct usage *u)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[300], name[32] = "", text[64] = "";
		double s;
		FILE *f;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		if ((f = fopen(path, "r"))) {
			if (!fgets(name, sizeof(name), f))
				name[0] = 0;
			fclose(f);
		}
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", e->d_name);
		if ((f = fopen(path, "r"))) {
			if (!fgets(text, sizeof(text), f))
				text[0] = 0;
			fclose(f);
		}
		s = atof(text) * 1e-9;
		if (atoi(e->d_name) == getpid())
			u->loop_s += s;
		else if (strncmp(name, "compute", 7) == 0)
			u->compute_s += s;
		else if (strncmp(name, "tensors", 7) == 0 || strncmp(name, "seals", 5) == 0)
			u->codec_s += s;
		else
			u->others_s += s;
	}
	if (d)
		closedir(d);
}

static struct usage usage_now(void)
{
	struct usage u = { 0 };
	struct rusage r;

	read_threads(&u);
	getrusage(RUSAGE_SELF, &r);
	u.faults = r.ru_minflt;
	return u;
}

static double busy_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void send_usage(const struct usage *from, const double longest_s[2], long turns, int fd)
{
	struct usage u = usage_now();

	u.loop_s -= from->loop_s;
	u.compute_s -= from->compute_s;
	u.codec_s -= from->codec_s;
	u.others_s -= from->others_s;
	u.faults -= from->faults;
	u.longest_turn_s = longest_s[0];
	u.longest_busy_s = longest_s[1];
	u.turns = turns;
	if (write(fd, &u, sizeof(u)) != sizeof(u))
		_exit(1);
}

/* Runs an agent's loop. The parent sends a byte to begin a measurement, and another byte to end
 * it. */
static void be_agent(int i)
{
	char address[LINK_ADDRESS_SIZE];
	struct log log = { .to = getenv("BENCH_LOG") ? stderr : NULL, .least = LOG_DEBUG };
	struct usage from = { 0 };
	struct error err = { "" };
	double longest_s[2] = { 0 }, busy;
	struct agent *a;
	long turns = 0;
	char order;

	if (read(to_agent[i][0], address, sizeof(address)) != sizeof(address))
		_exit(1);
	link_tune_malloc();
	link_raise_files(8192);
	options.join = address;
	options.identity = ids[i];
	options.node = i;
	options.log = &log;
	if (agent_new(&a, &options, clock_monotonic_us(), &err) < 0)
		die("agent", &err);
	for (bool measures = false;;) {
		struct pollfd p[1 + AGENT_FDS] = { { .fd = to_agent[i][0], .events = POLLIN } };
		int64_t now = clock_monotonic_us(), us = agent_deadline_us(a) - now;
		int fds[AGENT_FDS];

		agent_fds(a, fds);
		for (int k = 0; k < AGENT_FDS; k++)
			p[1 + k] = (struct pollfd){ .fd = fds[k], .events = POLLIN };
		us = us < 0 ? 0 : us < 100000 ? us : 100000;
		ppoll(p, 1 + AGENT_FDS, &(struct timespec){ 0, us * 1000 }, NULL);
		if (p[0].revents) {
			if (read(to_agent[i][0], &order, 1) != 1)
				_exit(0);
			if (measures)
				send_usage(&from, longest_s, turns, from_agent[i][1]);
			measures = !measures;
			longest_s[0] = longest_s[1] = 0;
			turns = 0;
			from = usage_now();
		}
		now = clock_monotonic_us();
		turns++;
		busy = busy_s();
		agent_receive(a, clock_monotonic_us());
		agent_work(a, clock_monotonic_us());
		agent_send(a, clock_monotonic_us());
		longest_s[0] = fmax(longest_s[0], (double)(clock_monotonic_us() - now) * 1e-6);
		longest_s[1] = fmax(longest_s[1], busy_s() - busy);
	}
}

/* ---- the controller ---- */

struct controller {
	struct post *post;
	post_peer_id peers[N];
	struct msg_hello hello[N];
	uint32_t n_hello, n_ready, n_reduced, n_committed, n_batches, n_counted;
	uint64_t iteration;
	char model[1024], corpus[64];
	uint32_t sequences;
};

static void take(struct controller *c, const struct post_message *p)
{
	struct msg m;

	if (p->kind != POST_DATA || msg_decode(&m, p->data, p->size) < 0)
		return;
	switch (m.type) {
	case MSG_HELLO:
		c->peers[m.u.hello.node] = p->peer;
		c->hello[m.u.hello.node] = m.u.hello;
		c->n_hello++;
		break;
	case MSG_READY:
		c->n_ready++;
		break;
	case MSG_REDUCED:
		c->n_reduced++;
		break;
	case MSG_COMMITTED:
		c->n_committed++;
		break;
	case MSG_REPORT:
		for (uint32_t i = 0; i < m.u.report.n_events; i++)
			c->n_counted += m.u.report.events[i].type == WORK_ENDS &&
					m.u.report.events[i].kind == TASK_BACKWARD;
		break;
	case MSG_TROUBLE:
		die(m.u.trouble.text, NULL);
		break;
	default:
		break;
	}
	msg_clear(&m);
}

static void wait_for(struct controller *c, const uint32_t *count, uint32_t wanted)
{
	struct pollfd fd = { .fd = post_fd(c->post), .events = POLLIN };
	int64_t by = clock_monotonic_us() + 120000000;
	struct post_message p;

	while (*count < wanted) {
		poll(&fd, 1, 5);
		post_tick(c->post, clock_monotonic_us());
		while (post_receive(c->post, clock_monotonic_us(), &p) == 0)
			take(c, &p);
		if (clock_monotonic_us() > by)
			die("an agent did not answer", NULL);
	}
}

static void tell(struct controller *c, int node, const struct msg *m)
{
	static char bytes[1 << 20];
	long size = msg_encode(m, bytes, sizeof(bytes));
	struct post_part part = { bytes, (size_t)size };

	if (size < 0 || post_send(c->post, c->peers[node], &part, 1, POST_RELIABLE,
				  clock_monotonic_us()) < 0)
		die("a message", NULL);
}

static void tell_all(struct controller *c, const struct msg *m)
{
	for (int i = 0; i < N; i++)
		tell(c, i, m);
}

/* Gives every agent its stage. The times are those of a card: 5 ms forward, 9 ms backward. */
static void gather(struct controller *c)
{
	struct msg_peer peers[N];
	float zeros[N] = { 0 };

	wait_for(c, &c->n_hello, N);
	for (uint16_t i = 0; i < N; i++) {
		struct msg m = { .type = MSG_WELCOME };

		m.u.welcome = (struct msg_welcome){ .node = i, .n_nodes = N, .run = 1, .seed = 1,
			.batch = c->sequences, .sequence = SEQUENCE, .n_shards = 1, .threads = 1,
			.slots = BATCHES_MOST, .forward_s = 0.005, .backward_s = 0.009,
			.loss_s = 0.001, .n_delays = N, .delay_s = zeros, .n_bytes = N,
			.bytes_s = zeros, .n_syncs = N, .sync_s = zeros,
			.corpus = c->corpus, .n_corpus = (uint32_t)strlen(c->corpus) + 1 };
		memcpy(m.u.welcome.model, c->model, sizeof(c->model));
		tell(c, i, &m);
		peers[i] = (struct msg_peer){ .node = i };
		memcpy(peers[i].key, keys_public_of(ids[i])->bytes, 32);
		memcpy(peers[i].address, c->hello[i].address, sizeof(peers[i].address));
	}
	tell_all(c, &(struct msg){ .type = MSG_PEERS, .u.peers = { N, peers } });
	for (uint8_t i = 0; i < N; i++)
		tell(c, i, &(struct msg){ .type = MSG_ASSIGN, .u.assign = { 1, i, 0 } });
	wait_for(c, &c->n_ready, N);
}

/* Starts an iteration and returns the seconds until all gradients are counted. */
static double compute(struct controller *c, enum tensor_format format)
{
	struct route routes[BATCHES_MOST];
	int64_t began_us = clock_monotonic_us();
	struct msg m = { .type = MSG_PLAN };

	c->iteration++;
	for (uint32_t i = 0; i < c->n_batches; i++)
		routes[i] = (struct route){ .microbatch = i, .wave = i, .n_hops = N, .attempt = 1,
			.since = 1, .nodes = { 0, 1, 2 }, .stages = { 0, 1, 2 } };
	m.u.plan = (struct msg_plan){ c->iteration, c->n_batches, routes, 0, NULL };
	tell_all(c, &m);
	m.type = MSG_START;
	m.u.start = (struct msg_start){ c->iteration, c->iteration, c->n_batches,
					(c->iteration - 1) * c->n_batches, (uint8_t)format };
	c->n_counted = 0;
	tell_all(c, &m);
	wait_for(c, &c->n_counted, N * c->n_batches);
	return (double)(clock_monotonic_us() - began_us) * 1e-6;
}

static void commit(struct controller *c)
{
	struct msg m = { .type = MSG_REDUCE };

	c->n_reduced = c->n_committed = 0;
	for (uint8_t i = 0; i < N; i++) {
		uint16_t self = i;

		m.u.reduce = (struct msg_reduce){ .iteration = c->iteration, .attempt = 1,
						  .stage = i, .n_nodes = 1, .nodes = &self };
		tell(c, i, &m);
	}
	wait_for(c, &c->n_reduced, N);
	m.type = MSG_COMMIT;
	m.u.commit = (struct msg_commit){ .iteration = c->iteration, .attempt = 1, .scale = 1,
					  .lr = 1e-4f, .beta1 = 0.9f, .beta2 = 0.95f,
					  .eps = 1e-8f };
	tell_all(c, &m);
	wait_for(c, &c->n_committed, N);
}

static void order_usage(void)
{
	for (int i = 0; i < N; i++)
		if (write(to_agent[i][1], "m", 1) != 1)
			die("a pipe", NULL);
}

static double sum_of(const struct usage *u)
{
	return u->loop_s + u->compute_s + u->codec_s + u->others_s;
}

static void measure(struct controller *c, enum tensor_format format)
{
	double gb = (double)c->sequences * SEQUENCE * DIM * sizeof(float) * 1e-9;
	double n = c->n_batches, s, all = 0, device = 0;
	struct usage u[N];

	/* A first iteration opens the connections and touches the memory, and is not measured. */
	compute(c, format);
	commit(c);
	order_usage();
	s = compute(c, format);
	order_usage();
	for (int i = 0; i < N; i++) {
		if (read(from_agent[i][0], &u[i], sizeof(u[i])) != sizeof(u[i]))
			die("an agent ended", NULL);
		all += sum_of(&u[i]);
		device += u[i].compute_s;
	}
	commit(c);
	printf("{\"format\":\"%s\",\"tensor_mb\":%.1f,\"microbatches\":%u,\"iteration_s\":%.3f,"
	       "\"microbatches_per_s\":%.2f,\"loop_ms\":%.1f,\"loop_turns\":%.0f,"
	       "\"longest_turn_ms\":%.1f,"
	       "\"longest_busy_turn_ms\":%.1f,"
	       "\"compute_ms\":%.1f,\"tensor_threads_ms\":%.1f,\"network_threads_ms\":%.1f,"
	       "\"page_faults\":%.0f,\"cpu_s_per_gb\":%.2f,\"cpu_s_per_gb_without_device\":%.2f}\n",
	       tensor_format_name(format), gb * 1e3, c->n_batches, s, n / s, u[1].loop_s / n * 1e3,
	       (double)u[1].turns / n, u[1].longest_turn_s * 1e3, u[1].longest_busy_s * 1e3,
	       u[1].compute_s / n * 1e3, u[1].codec_s / n * 1e3, u[1].others_s / n * 1e3,
	       (double)u[1].faults / n, all / (gb * TENSORS * n),
	       (all - device) / (gb * TENSORS * n));
	fflush(stdout);
}

static void be_controller(struct controller *c, const char *format)
{
	static const enum tensor_format formats[] = { FORMAT_FP32, FORMAT_BF16, FORMAT_Q8,
						      FORMAT_Q6 };
	char address[LINK_ADDRESS_SIZE] = "";
	struct keys_list *admitted = keys_list_new();
	struct post_options o = { .identity = ids[N], .admitted = admitted };
	struct error err = { "" };

	for (int i = 0; i < N; i++) {
		const char name[] = { (char)('a' + i), 0 };

		if (keys_list_admit(admitted, keys_public_of(ids[i]), KEYS_AGENT, name, &err) < 0)
			die("admit", &err);
	}
	if (post_open(&c->post, &o, &err) < 0 ||
	    post_listen(c->post, "tcp://127.0.0.1:0", address, &err) < 0)
		die("post", &err);
	for (int i = 0; i < N; i++)
		if (write(to_agent[i][1], address, sizeof(address)) != sizeof(address))
			die("a pipe", NULL);
	gather(c);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(format, "all") == 0 ||
		    strcmp(format, tensor_format_name(formats[i])) == 0)
			measure(c, formats[i]);
	post_close(c->post);
	keys_list_free(admitted);
}

static void prepare(struct controller *c, int argc, char **argv)
{
	struct model_config config = { .vocab = 256, .dim = DIM, .n_layers = N, .n_heads = 16,
		.n_kv_heads = 1, .ffn_dim = 64, .context = SEQUENCE, .n_stages = N,
		.rope_theta = 10000, .norm_eps = 1e-5f, .init_std = 0.02f, .rehearsal = 1 };
	struct error err = { "" };
	char *model;
	FILE *f;

	c->n_batches = argc > 2 ? (uint32_t)atoi(argv[2]) : 8;
	c->sequences = argc > 3 ? (uint32_t)atoi(argv[3]) / SEQUENCE : 4;
	if (c->n_batches < 1 || c->n_batches > BATCHES_MOST || c->sequences < 1)
		die("1 to 64 microbatches of at least 1024 tokens", NULL);
	model = model_config_print(&config, NULL);
	if (model_config_check(&config, &err) < 0 || !model)
		die("model", &err);
	snprintf(c->model, sizeof(c->model), "%s", model);
	free(model);
	snprintf(c->corpus, sizeof(c->corpus), "/tmp/bench-agent-%d.txt", getpid());
	f = fopen(c->corpus, "w");
	for (uint32_t i = 0; f && i < 40 * BATCHES_MOST * SEQUENCE; i++)
		fputc('a' + (int)(i * 7919 % 23), f);
	if (!f || fclose(f) != 0)
		die(c->corpus, NULL);
	for (int i = 0; i <= N; i++)
		if (keys_generate(&ids[i], &err) < 0)
			die("key", &err);
	options = (struct agent_options){ .controller = *keys_public_of(ids[N]),
		.listen = "tcp://127.0.0.1:0", .device = "pretend", .orphan_s = 60,
		.stuck_s = 60 };
}

/* ---- sums ---- */

static double s_since(int64_t us)
{
	return (double)(clock_monotonic_us() - us) * 1e-6;
}

/* Measures what one of three replicas computes when the replicas sum a stage's gradient. The
 * replica encodes its gradient, sums its third of all three gradients, and decodes and hashes the
 * whole sum. An agent's worker calls the same functions. */
static void measure_sum(size_t floats, enum tensor_format format)
{
	static const uint16_t nodes[] = { 0, 1, 2 };
	const size_t starts[] = { 0, floats / 5, floats / 2 };
	const struct sum_codec codec = { format, starts, 3 };
	float *gradient = malloc(floats * sizeof(float)), *other = malloc(floats * sizeof(float));
	double encode_s, add_s, norm_s, copy_s;
	struct pool *pool = NULL;
	struct slices *r;
	struct error err;
	int64_t at;

	if (!gradient || !other || slices_new(&r, 1, 1, nodes, 3, 1, floats, &codec) < 0)
		die("no memory", NULL);
	if (cores_usable() > 1 && pool_new(&pool, cores_usable(), &err) < 0)
		die("threads", &err);
	for (size_t i = 0; i < floats; i++)
		gradient[i] = (float)(i * 2654435761u % 2001) * 1e-6f - 1e-3f;
	memcpy(other, gradient, floats * sizeof(float));
	slices_encode(r, 1, slices_own_part(r), gradient, pool); /* touches the memory */
	memset((void *)(uintptr_t)slices_staging(r), 0, floats * sizeof(float));
	at = clock_monotonic_us();
	memcpy(other, gradient, floats * sizeof(float));
	copy_s = s_since(at);
	at = clock_monotonic_us();
	for (uint32_t j = 0; j < 3; j++)
		slices_encode(r, j, j == 1 ? slices_own_part(r) : (void *)other, gradient, pool);
	encode_s = s_since(at);
	slices_own_part_in(r);
	for (uint16_t i = 0; i < 3; i += 2)
		if (slices_put_part(r, i, 1, 0, slices_own_part(r), slices_bytes(r, 1)) < 0)
			die("a part", NULL);
	at = clock_monotonic_us();
	slices_sum(r, pool);
	add_s = s_since(at);
	slices_summed(r);
	for (uint16_t i = 0; i < 3; i += 2)
		if (slices_put_sum(r, i, i, 0, other, slices_bytes(r, i)) < 0)
			die("a sum", NULL);
	at = clock_monotonic_us();
	slices_decode(r, pool);
	slices_hash(r, pool);
	norm_s = s_since(at);
	printf("{\"sum_of\":%zu,\"replicas\":3,\"format\":\"%s\",\"threads\":%u,"
	       "\"encode_s\":%.3f,\"add_s\":%.3f,\"decode_hash_squares_s\":%.3f,"
	       "\"all_s\":%.3f,\"memcpy_s\":%.3f}\n",
	       floats, tensor_format_name(format), cores_usable(), encode_s, add_s, norm_s,
	       encode_s + add_s + norm_s, copy_s);
	slices_free(r);
	pool_free(pool);
	free(gradient);
	free(other);
}

static int measure_sums(int argc, char **argv)
{
	double millions = argc > 2 ? atof(argv[2]) : 250;
	enum tensor_format format = FORMAT_FP32;

	if (!(millions >= 1 && millions <= 2000) ||
	    (argc > 3 && tensor_format_parse(argv[3], &format) < 0))
		die("sum [MILLIONS] [FORMAT]", NULL);
	measure_sum((size_t)(millions * 1e6), format);
	return 0;
}

int main(int argc, char **argv)
{
	struct controller *c;

	if (argc > 1 && strcmp(argv[1], "sum") == 0)
		return measure_sums(argc, argv);
	c = alloc_new(sizeof(*c));
	prepare(c, argc, argv);
	for (int i = 0; i < N; i++) {
		if (pipe(to_agent[i]) < 0 || pipe(from_agent[i]) < 0)
			die("pipe", NULL);
		agents[i] = fork();
		if (agents[i] == 0) {
			for (int k = 0; k <= i; k++)
				close(to_agent[k][1]);
			be_agent(i);
		}
	}
	be_controller(c, argc > 1 ? argv[1] : "all");
	for (int i = 0; i < N; i++)
		close(to_agent[i][1]);
	for (int i = 0; i < N; i++)
		waitpid(agents[i], NULL, 0);
	unlink(c->corpus);
	for (int i = 0; i <= N; i++)
		keys_free(ids[i]);
	free(c);
	return 0;
}
