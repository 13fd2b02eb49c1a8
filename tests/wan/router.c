/* router.c - the program wan_router, which emulates a wide-area network on one machine. Each node
 * has a network namespace, and TUN devices connect the namespaces to this program. The program
 * delays and loses the packets between nodes as the map describes (traffic.h). Both ends use the
 * kernel's own TCP. docs/testbed.md describes the use.
 *
 * A single thread delivers the packets that are due, reads packets from the nodes, and executes
 * commands.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/wan/map.h"
#include "tests/wan/orders.h"
#include "tests/wan/traffic.h"
#include "tests/wan/tun.h"

static const char usage[] =
	"usage: wan_router --cluster FILE --namespaces PREFIX --control PATH [option ...]\n"
	"       wan_router --regions FILE --agents N --namespaces PREFIX --control PATH\n"
	"                  [option ...]\n"
	"       wan_router --cluster FILE | --regions FILE --agents N --list\n"
	"\n"
	"Connects the network namespaces PREFIX0, PREFIX1, ... (made with ip netns add), one for\n"
	"each node and one more for the controller, and delays the packets between them. Prints\n"
	"\"ready\" once it does.\n"
	"\n"
	"  --cluster FILE        reads nodes and links from skippipe.cluster/1 with links\n"
	"  --regions FILE        spreads the nodes over the places of deploy/regions.json\n"
	"  --agents N --setting NAME   number of nodes, and their setting  [geo-distributed]\n"
	"  --list                only prints number, address and place of each node\n"
	"  --controller-at PLACE place of the controller  [that of node 0]\n"
	"  --least-mbs X         raises slower links, million bytes a second\n"
	"                        [5.24288 with --regions]\n"
	"  --up-mbs X --down-mbs X   uplink and downlink of each node; 0: no limit  [0]\n"
	"  --divide-bandwidth K  divides all of these bandwidths, for a rehearsal whose tensors\n"
	"                        take 1/K of the bytes  [1]\n"
	"  --loss SHARE          share of lost packets on every link  [0]\n"
	"  --jitter SHARE        share of the latency, at random for each packet  [0]\n"
	"  --queue-ms X          drops a packet that would wait longer in a queue  [200]\n"
	"  --held-mib X          memory for packets in transit; drops more packets  [1024]\n"
	"  --seed N              seed of the random numbers  [1]\n"
	"  --with-parent         ends when its parent process ends in any way\n"
	"  --stages A,B,... --activation-bytes X --weights-bytes X --compute F,B,L\n"
	"                        with --regions, for the output of the command cluster: nodes\n"
	"                        of each stage, sizes, and seconds of forward, backward, loss\n"
	"\n"
	"`wan_tool ask PATH help` lists the commands for the running router. Exit status:\n"
	"0 ended by a signal, 1 failed, 2 wrong usage, 77 this machine does not permit it.\n";

enum {
	NOT_PERMITTED = 77,
	GRAIN_NS = 50000, /* shortest time for which the router sleeps */
	READS = 64,       /* limit of the packets that are read from one node in a turn */
	DELIVERIES = 256, /* limit of the packets that are delivered in a turn */
	EVENTS = 64,
	/* Limit of an answer in bytes; the kernel stores an answer until it is read. */
	REPLY_MAX = 64 << 20
};

struct options {
	struct map_request map;
	struct orders_start start;
	const char *namespaces, *control;
	double queue_s, held_mib, least_bytes_per_s;
	uint64_t seed;
	bool list, with_parent;
};

struct router {
	struct options options;
	struct map *map;
	struct traffic *traffic;
	struct orders_counts counts;
	int *tuns; /* descriptor of each node's TUN device */
	int epoll, control, signals;
};

/* ---- options ---- */

enum {
	O_CLUSTER = 256, O_REGIONS, O_AGENTS, O_SETTING, O_LIST, O_NAMESPACES, O_CONTROL, O_AT,
	O_LEAST, O_UP, O_DOWN, O_LOSS, O_JITTER, O_QUEUE, O_HELD, O_SEED, O_STAGES, O_ACTIVATION,
	O_WEIGHTS, O_COMPUTE, O_DIVIDE, O_WITH_PARENT, O_HELP
};

static const struct option longs[] = {
	{ "cluster", 1, NULL, O_CLUSTER }, { "regions", 1, NULL, O_REGIONS },
	{ "agents", 1, NULL, O_AGENTS }, { "setting", 1, NULL, O_SETTING },
	{ "list", 0, NULL, O_LIST },
	{ "namespaces", 1, NULL, O_NAMESPACES }, { "control", 1, NULL, O_CONTROL },
	{ "controller-at", 1, NULL, O_AT }, { "least-mbs", 1, NULL, O_LEAST },
	{ "divide-bandwidth", 1, NULL, O_DIVIDE },
	{ "up-mbs", 1, NULL, O_UP }, { "down-mbs", 1, NULL, O_DOWN },
	{ "loss", 1, NULL, O_LOSS },
	{ "jitter", 1, NULL, O_JITTER }, { "queue-ms", 1, NULL, O_QUEUE },
	{ "held-mib", 1, NULL, O_HELD }, { "seed", 1, NULL, O_SEED },
	{ "stages", 1, NULL, O_STAGES }, { "activation-bytes", 1, NULL, O_ACTIVATION },
	{ "weights-bytes", 1, NULL, O_WEIGHTS },
	{ "compute", 1, NULL, O_COMPUTE }, { "with-parent", 0, NULL, O_WITH_PARENT },
	{ "help", 0, NULL, O_HELP }, { NULL, 0, NULL, 0 }
};

/* Reads at most max_n numbers, separated by commas. Each must be from min to max. */
static int read_numbers(const char *name, const char *text, double min, double max, double *out,
			int max_n, int *n, struct error *err)
{
	const char *at = text;

	for (*n = 0; *n < max_n; at++) {
		char *end;
		double v = strtod(at, &end);

		if (end == at || (*end && *end != ',') || !isfinite(v) || v < min || v > max)
			break;
		out[(*n)++] = v;
		at = end;
		if (*end == '\0')
			return 0;
	}
	return error_set(err, -EINVAL, "--%s: expected %s from %g to %g, got \"%s\"", name,
			 max_n > 1 ? "numbers with commas between" : "a number", min, max, text);
}

static int read_number(struct options *o, int option, const char *name, const char *text,
		       struct error *err)
{
	const struct {
		int option;
		double min, max, unit, *to;
	} numbers[] = {
		{ O_LEAST, 0, 1e6, 1e6, &o->least_bytes_per_s },
		{ O_DIVIDE, 1, 1e6, 1, &o->map.divisor },
		{ O_UP, 0, 1e6, 1e6, &o->start.up_bytes_per_s },
		{ O_DOWN, 0, 1e6, 1e6, &o->start.down_bytes_per_s },
		{ O_LOSS, 0, 1, 1, &o->start.loss },
		{ O_JITTER, 0, 1, 1, &o->start.jitter },
		{ O_QUEUE, 0, 60000, 1e-3, &o->queue_s },
		{ O_HELD, 1, 1 << 20, 1, &o->held_mib },
		{ O_ACTIVATION, 0, 1e15, 1, &o->map.activation_bytes },
		{ O_WEIGHTS, 0, 1e15, 1, &o->map.weights_bytes_per_stage },
	};
	double v = 0;
	int n, rc;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (numbers[i].option != option)
			continue;
		rc = read_numbers(name, text, numbers[i].min, numbers[i].max, &v, 1, &n, err);
		*numbers[i].to = v * numbers[i].unit;
		return rc;
	}
	rc = read_numbers(name, text, option == O_AGENTS ? 1 : 0,
			  option == O_AGENTS ? MAP_MAX_NODES : 9e15, &v, 1, &n, err);
	if (option == O_AGENTS)
		o->map.n_nodes = (int)v;
	else
		o->seed = (uint64_t)v;
	return rc;
}

static int take_option(struct options *o, int option, const char *name, const char *text,
		       struct error *err)
{
	double numbers[CLUSTER_MOST_STAGES];
	int n, rc;

	switch (option) {
	case O_CLUSTER: o->map.cluster = text; return 0;
	case O_REGIONS: o->map.regions = text; return 0;
	case O_SETTING: o->map.setting = text; return 0;
	case O_AT: o->map.controller_at = text; return 0;
	case O_NAMESPACES: o->namespaces = text; return 0;
	case O_CONTROL: o->control = text; return 0;
	case O_LIST: o->list = true; return 0;
	case O_WITH_PARENT: o->with_parent = true; return 0;
	case O_STAGES:
		rc = read_numbers(name, text, 1, MAP_MAX_NODES, numbers, CLUSTER_MOST_STAGES, &n,
				  err);
		for (int s = 0; rc == 0 && s < n; s++)
			o->map.stages[s] = (int)numbers[s];
		o->map.n_stages = n;
		return rc;
	case O_COMPUTE:
		rc = read_numbers(name, text, 0, 1e6, numbers, 3, &n, err);
		if (rc == 0 && n != 3)
			return error_set(err, -EINVAL,
					 "--compute: expected three numbers, got \"%s\"", text);
		o->map.forward_s = numbers[0];
		o->map.backward_s = numbers[1];
		o->map.loss_s = numbers[2];
		return rc;
	default: return read_number(o, option, name, text, err);
	}
}

static int check_options(struct options *o, struct error *err)
{
	if (!o->map.cluster == !o->map.regions)
		return error_set(err, -EINVAL, "expected either --cluster or --regions");
	if (o->map.regions && !o->map.n_nodes)
		return error_set(err, -EINVAL, "--regions: needs --agents, too");
	if (!o->list && (!o->namespaces || !o->control))
		return error_set(err, -EINVAL, "expected --%s",
				 o->namespaces ? "control" : "namespaces");
	if (o->control && strlen(o->control) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return error_set(err, -EINVAL, "--control %s: expected at most %zu letters",
				 o->control, sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	o->start.up_bytes_per_s /= o->map.divisor;
	o->start.down_bytes_per_s /= o->map.divisor;
	o->map.least_bytes_per_s = o->least_bytes_per_s >= 0 ? o->least_bytes_per_s :
				   o->map.regions	     ? 5 * 1048576.0 :
							       0;
	return 0;
}

/* Reads the command line. Returns 1 if --help was given and the usage was printed. */
static int read_options(struct options *o, int argc, char **argv, struct error *err)
{
	int option, at = 0, rc;

	*o = (struct options){ .queue_s = 0.2,
			       .held_mib = 1024,
			       .map.divisor = 1,
			       .least_bytes_per_s = -1,
			       .seed = 1 };
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", longs, &at)) != -1) {
		if (option == O_HELP) {
			fputs(usage, stdout);
			return 1;
		}
		if (option == '?' || option == ':')
			return error_set(err, -EINVAL, "%s: %s (see --help)", argv[optind - 1],
					 option == '?' ? "unknown option" : "needs a value");
		rc = take_option(o, option, longs[at].name, optarg, err);
		if (rc != 0)
			return rc;
	}
	if (optind < argc)
		return error_set(err, -EINVAL, "%s: unexpected (see --help)", argv[optind]);
	return check_options(o, err);
}

/* ---- opening ---- */

static int watch(struct router *r, int fd, uint64_t source, struct error *err)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = source };

	return epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &e) == 0
		       ? 0
		       : error_set(err, -errno, "epoll: %s", strerror(errno));
}

/* Numbers of event sources that are not nodes. An operator's connection has the number OPERATOR +
 * its descriptor. */
enum { CONTROL = 1 << 16, SIGNALS, OPERATOR = 1 << 17 };

static int listen_control(struct router *r, struct error *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", r->options.control);
	r->control = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r->control < 0 || bind(r->control, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    listen(r->control, 16) < 0)
		return error_set(err, -errno, "%s: %s", r->options.control, strerror(errno));
	return watch(r, r->control, CONTROL, err);
}

static int catch_signals(struct router *r, struct error *err)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (r->options.with_parent)
		prctl(PR_SET_PDEATHSIG, SIGTERM);
	r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signals < 0 ? error_set(err, -errno, "signalfd: %s", strerror(errno))
			      : watch(r, r->signals, SIGNALS, err);
}

static int open_tuns(struct router *r, struct error *err)
{
	uint32_t n = map_nodes(r->map);
	struct rlimit files;
	int rc = 0;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	r->tuns = alloc_array(n, sizeof(*r->tuns));
	for (uint32_t i = 0; i < n; i++)
		r->tuns[i] = -1;
	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		char name[256];

		snprintf(name, sizeof(name), "%s%u", r->options.namespaces, i);
		rc = tun_open(name, map_address(i), &r->tuns[i], err);
		if (rc == 0)
			rc = watch(r, r->tuns[i], i, err);
	}
	return rc;
}

/* Raises the router's priority. The router competes with all nodes for the CPUs, and its delay
 * adds to every latency. If the system allows no real-time priority, takes the best ordinary
 * priority. The command `stats` shows how late packets were. */
static void raise_priority(void)
{
	struct sched_param first = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO, &first) < 0)
		setpriority(PRIO_PROCESS, 0, -20);
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

static int open_router(struct router *r, struct error *err)
{
	struct traffic_options t = {
		.n_nodes = map_nodes(r->map),
		.seed = r->options.seed,
		.queue_s = r->options.queue_s,
		.held_max = (size_t)(r->options.held_mib * 1048576 / sizeof(struct traffic_packet)),
	};
	int rc;

	r->traffic = traffic_new(&t);
	orders_reset(r->map, r->traffic, &r->options.start);
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll < 0)
		return error_set(err, -errno, "epoll: %s", strerror(errno));
	rc = catch_signals(r, err);
	if (rc == 0)
		rc = open_tuns(r, err);
	if (rc == 0)
		rc = listen_control(r, err);
	raise_priority();
	return rc;
}

static void close_router(struct router *r)
{
	for (uint32_t i = 0; r->tuns && i < map_nodes(r->map); i++)
		if (r->tuns[i] >= 0)
			close(r->tuns[i]);
	if (r->control >= 0) {
		close(r->control);
		unlink(r->options.control);
	}
	if (r->signals >= 0)
		close(r->signals);
	if (r->epoll >= 0)
		close(r->epoll);
	free(r->tuns);
	traffic_free(r->traffic);
	map_free(r->map);
}

/* ---- the loop ---- */

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Delivers packets that are due, at most DELIVERIES. Returns true if more packets are due. */
static bool deliver(struct router *r)
{
	int64_t now = now_ns();

	for (int i = 0; i < DELIVERIES; i++) {
		struct traffic_packet *p = traffic_arrive(r->traffic, now);
		double late_s;

		if (!p)
			return false;
		if (write(r->tuns[p->to], p->data, p->size) < 0)
			r->counts.refused++;
		late_s = 1e-9 * (double)(now - p->due_ns);
		r->counts.delivered++;
		r->counts.late_sum_s += late_s;
		if (late_s > r->counts.late_max_s)
			r->counts.late_max_s = late_s;
		traffic_packet_free(r->traffic, p);
	}
	return true;
}

/* Returns the node to which an IPv4 packet goes; the number of nodes: it goes to no other node. */
static uint32_t destination(const struct router *r, const struct traffic_packet *p)
{
	uint32_t n = map_nodes(r->map), to;

	if (p->size < 20 || p->data[0] >> 4 != 4)
		return n;
	to = map_node_at(r->map, (uint32_t)p->data[16] << 24 | (uint32_t)p->data[17] << 16 |
					 (uint32_t)p->data[18] << 8 | p->data[19]);
	return to == p->from ? n : to;
}

static int take_packets(struct router *r, uint32_t from, struct error *err)
{
	int64_t now = now_ns();

	for (int i = 0; i < READS; i++) {
		struct traffic_packet *p = traffic_packet_new(r->traffic);
		ssize_t got;

		got = read(r->tuns[from], p->data, sizeof(p->data));
		if (got < 0) {
			int code = errno;

			traffic_packet_free(r->traffic, p);
			return code == EAGAIN || code == EINTR
				       ? 0
				       : error_set(err, -code, "node %u: %s", from, strerror(code));
		}
		p->from = from;
		p->size = (size_t)got;
		p->to = destination(r, p);
		if (p->to < map_nodes(r->map)) {
			traffic_send(r->traffic, p, now);
		} else {
			r->counts.strays++;
			traffic_packet_free(r->traffic, p);
		}
	}
	return 0;
}

static void accept_operator(struct router *r)
{
	int fd = accept4(r->control, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int room = REPLY_MAX;

	if (fd < 0)
		return;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) < 0 ||
	    watch(r, fd, OPERATOR + (uint64_t)fd, NULL) != 0)
		close(fd);
}

/* Executes the command in an operator's message and answers. The answer begins with `+`, or after
 * an error with `-`. */
static void serve_operator(struct router *r, int fd)
{
	char line[8192], *text = NULL;
	struct error err = { "" };
	ssize_t got = recv(fd, line, sizeof(line) - 1, 0);
	size_t size = 0;
	FILE *reply;

	if (got > 0 && (reply = open_memstream(&text, &size)) != NULL) {
		line[got] = '\0';
		fputc('+', reply);
		if (orders_do(r->map, r->traffic, &r->options.start, &r->counts, line, reply,
			      &err) != 0) {
			rewind(reply);
			fprintf(reply, "-%s\n", err.text);
		}
		fclose(reply);
		for (size_t at = 0; at < size; at += 65536)
			if (send(fd, text + at, size - at < 65536 ? size - at : 65536,
				 MSG_NOSIGNAL) < 0)
				break;
		free(text);
	}
	close(fd);
}

static int serve_events(struct router *r, const struct epoll_event *events, int n, bool *stop,
			struct error *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < n; i++) {
		uint64_t source = events[i].data.u64;

		if (source >= OPERATOR)
			serve_operator(r, (int)(source - OPERATOR));
		else if (source == CONTROL)
			accept_operator(r);
		else if (source == SIGNALS)
			*stop = true;
		else
			rc = take_packets(r, (uint32_t)source, err);
	}
	return rc;
}

static int run_router(struct router *r, struct error *err)
{
	struct epoll_event events[EVENTS];
	bool stop = false;
	int rc = 0;

	while (rc == 0 && !stop) {
		bool more = deliver(r);
		int64_t next = traffic_next_ns(r->traffic), wait = next - now_ns();
		struct timespec t;
		int n;

		wait = more ? 0 : wait > GRAIN_NS ? wait : GRAIN_NS;
		t = (struct timespec){ wait / 1000000000, wait % 1000000000 };
		n = epoll_pwait2(r->epoll, events, EVENTS, next == TRAFFIC_NEVER ? NULL : &t, NULL);
		if (n < 0 && errno != EINTR)
			rc = error_set(err, -errno, "epoll: %s", strerror(errno));
		else
			rc = serve_events(r, events, n, &stop, err);
	}
	return rc;
}

static bool not_permitted(int rc)
{
	return rc == -EPERM || rc == -EACCES || rc == -ENOENT || rc == -ENODEV || rc == -ENXIO;
}

int main(int argc, char **argv)
{
	struct router r = { .epoll = -1, .control = -1, .signals = -1 };
	struct error err = { "" };
	int status = 2, rc = read_options(&r.options, argc, argv, &err);

	if (rc == 1)
		return 0;
	if (rc == 0) {
		status = 1;
		rc = map_new(&r.options.map, &r.map, &err);
	}
	if (rc == 0 && r.options.list) {
		orders_nodes(r.map, stdout);
	} else if (rc == 0) {
		rc = open_router(&r, &err);
		status = not_permitted(rc) ? NOT_PERMITTED : 1;
		if (rc == 0) {
			puts("ready");
			fflush(stdout);
			rc = run_router(&r, &err);
		}
	}
	if (rc != 0)
		fprintf(stderr, "wan_router: %s\n", err.text);
	if (r.map)
		close_router(&r);
	return rc == 0 ? 0 : status;
}
