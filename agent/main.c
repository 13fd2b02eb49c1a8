/* skippipe-agent: the program that runs one node. It reads the options and calls agent.c. */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/output.h"
#include "base/process/outlet.h"
#include "base/process/signals.h"
#include "wire/address.h"
#include "wire/sessions/link.h"

static const char usage[] =
	"usage: skippipe-agent --join ADDRESS --controller-key KEY --key FILE --listen ADDRESS\n"
	"                      [option ...]\n"
	"\n"
	"Runs one node: joins a controller, trains the stage that it is given, and exchanges\n"
	"activations and gradients with the other nodes. Logs to stderr.\n"
	"\n"
	"  --join ADDRESS        the controller's address, tcp://HOST:PORT\n"
	"  --controller-key KEY  the controller's public key: 64 hex digits, or a file with them\n"
	"  --key FILE            this agent's key; created if it is missing. The controller must\n"
	"                        admit its public half (skippipe admit)\n"
	"  --listen ADDRESS      where this agent listens for other nodes; port 0: any free port\n"
	"  --advertise ADDRESS   the address that other nodes dial, if it differs from --listen\n"
	"  --node I              the number of the node  [the controller chooses]\n"
	"  --device DEVICE       cpu or cuda[:N], each also with :bf16 at its end. cpu:plain,\n"
	"                        cpu:v3 (AVX2), cpu:v4 (AVX-512) and cpu:amx choose the\n"
	"                        instruction set. Without a GPU the CPU computes.\n"
	"                        skippipe agent --device cuda:all starts an agent for each GPU\n"
	"                        (also cuda:all:bf16, or a list with commas). Their keys are\n"
	"                        FILE.0, FILE.1, ...; port and node are counted up.\n"
	"                        pretend computes nothing and sleeps for the times of the\n"
	"                        cluster file: for rehearsals (skippipe help rehearse)  [cpu]\n"
	"  --devices             list this machine's devices and exit\n"
	"  --recompute LEVEL     values that a backward pass recomputes to save memory: none,\n"
	"                        norms or block  [norms]\n"
	"  --memory MIB          limit of the machine's memory for the stage and an iteration\n"
	"                        [the free memory]\n"
	"  --corpus FILE...      the corpus on this machine  [the run's paths; missing files are\n"
	"                        fetched from the controller]\n"
	"  --run-dir DIR         write checkpoints of this agent's stage to DIR/checkpoints\n"
	"                        [no checkpoints]\n"
	"  --orphan-s N          end after N seconds without a controller  [60]\n"
	"  --stuck-s N           end if a task takes longer than N seconds plus 20 times the\n"
	"                        longest task so far; a task that prepares, loads or measures a\n"
	"                        stage may take 40 times as long  [30]\n"
	"  --log LEVEL           debug, info, warn or error  [info]\n"
	"  --help, --version\n"
	"\n"
	"Ends on SIGTERM, SIGINT and SIGHUP (unless nohup or a shell ignores it), and on the\n"
	"controller's order. Exit status: 0 ended as ordered, 1 failed, 2 wrong usage,\n"
	"3 another process has this agent's key, and keeps its node.\n";

enum { WAIT_MOST_US = 1000000, LOG_WAIT_US = 1000000 };

struct options {
	struct agent_options agent;
	const char *controller_key, *key;
	char join[160], listen[160], advertise[160];
	struct log log;
	char corpus[1 << 16]; /* as agent_options.corpus */
	size_t corpus_size;
};

static int report_misuse(const char *format, const char *value)
{
	fprintf(stderr, "skippipe-agent: ");
	fprintf(stderr, format, value);
	fprintf(stderr, "\nskippipe-agent: --help lists the options\n");
	return 2;
}

/* "HOST:PORT" counts as tcp. */
static bool address_of(char to[160], const char *text)
{
	int n = snprintf(to, 160, "%s%s", strstr(text, "://") ? "" : "tcp://", text);

	return n > 0 && n < 160;
}

static bool is_every_interface(const char *address)
{
	return strncmp(address, "tcp://0.0.0.0:", 14) == 0 ||
	       strncmp(address, "tcp://*:", 8) == 0 || strncmp(address, "tcp://[::]:", 11) == 0;
}

static bool can_dial(const char *address)
{
	char host[LINK_ADDRESS_SIZE], port[8];

	if (strncmp(address, "ipc://", 6) == 0)
		return address[6] != 0;
	return address_split(address, host, port) && host[0] && atoi(port) > 0;
}

static bool read_number(const char *text, long most, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(text, &end, 10);
	return errno == 0 && end != text && *end == 0 && *out >= 0 && *out <= most;
}

static bool level_of(const char *text, enum log_level *out)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };

	for (int i = 0; i < 4; i++)
		if (strcmp(text, names[i]) == 0) {
			*out = (enum log_level)i;
			return true;
		}
	return false;
}

/* Prints a line for each device: its description, or why it cannot be used. */
static int list_devices(void)
{
	struct stage_device d;
	struct error err;
	char name[DEVICE_NAME_SIZE];

	puts(stage_device(&d, "cpu", &err) == 0 ? d.text : err.text);
	for (uint32_t i = 0; i < stage_gpus(); i++) {
		snprintf(name, sizeof(name), "cuda:%u", i);
		if (stage_device(&d, name, &err) == 0)
			printf("%s, %.1f GiB free\n", d.text, (double)d.free_bytes / 0x1p30);
		else
			puts(err.text);
	}
	if (stage_gpus() == 0 && stage_device(&d, "cuda", &err) < 0)
		puts(err.text);
	return 0;
}

/* Returns -1 to continue, otherwise the exit status. */
static int take_corpus(struct options *o, const char *path)
{
	size_t n = strlen(path) + 1;

	if (n > sizeof(o->corpus) - o->corpus_size)
		return report_misuse("--corpus %s: too many files", path);
	memcpy(o->corpus + o->corpus_size, path, n);
	o->corpus_size += n;
	o->agent.n_corpus++;
	return -1;
}

/* Returns -1 to continue, otherwise the exit status. */
static int read_option(struct options *o, int option, const char *value)
{
	long n;

	switch (option) {
	case 'j':
		return address_of(o->join, value) ? -1
						  : report_misuse("--join %s: too long", value);
	case 'l':
		return address_of(o->listen, value)
			       ? -1
			       : report_misuse("--listen %s: too long", value);
	case 'a':
		return address_of(o->advertise, value)
			       ? -1
			       : report_misuse("--advertise %s: too long", value);
	case 'c':
		o->controller_key = value;
		return -1;
	case 'k':
		o->key = value;
		return -1;
	case 'd':
		o->agent.device = value;
		return strlen(value) < 32 ? -1 : report_misuse("--device %s: too long", value);
	case 'r':
		return recompute_parse(value, &o->agent.recompute) == 0
			       ? -1
			       : report_misuse("--recompute %s: expected none, norms or block",
					       value);
	case 'm':
		if (!read_number(value, INT32_MAX, &n) || n == 0)
			return report_misuse("--memory %s: expected MiB, 1 or more", value);
		o->agent.memory_bytes = (size_t)n << 20;
		return -1;
	case 'n':
		if (!read_number(value, 999, &n))
			return report_misuse("--node %s: expected a number from 0 to 999", value);
		o->agent.node = (int32_t)n;
		return -1;
	case 'C':
		return take_corpus(o, value);
	case 'D':
		o->agent.run_dir = value;
		return -1;
	case 'o':
		if (!read_number(value, 1000000, &n) || n == 0)
			return report_misuse("--orphan-s %s: expected seconds, 1 or more", value);
		o->agent.orphan_s = (uint32_t)n;
		return -1;
	case 's':
		if (!read_number(value, 1000000, &n) || n == 0)
			return report_misuse("--stuck-s %s: expected seconds, 1 or more", value);
		o->agent.stuck_s = (uint32_t)n;
		return -1;
	case 'L':
		return level_of(value, &o->log.least)
			       ? -1
			       : report_misuse("--log %s: expected debug, info, warn or error",
					       value);
	case 'G':
		return list_devices();
	case 'h':
		fputs(usage, stdout);
		return 0;
	case 'v':
		puts("skippipe-agent " SKIPPIPE_VERSION);
		return 0;
	default:
		return report_misuse("%s", "see the message above");
	}
}

static int read_options(struct options *o, int argc, char **argv)
{
	static const struct option table[] = {
		{ "join", required_argument, NULL, 'j' },
		{ "listen", required_argument, NULL, 'l' },
		{ "advertise", required_argument, NULL, 'a' },
		{ "controller-key", required_argument, NULL, 'c' },
		{ "key", required_argument, NULL, 'k' },
		{ "device", required_argument, NULL, 'd' },
		{ "devices", no_argument, NULL, 'G' },
		{ "recompute", required_argument, NULL, 'r' },
		{ "memory", required_argument, NULL, 'm' },
		{ "node", required_argument, NULL, 'n' },
		{ "orphan-s", required_argument, NULL, 'o' },
		{ "stuck-s", required_argument, NULL, 's' },
		{ "corpus", required_argument, NULL, 'C' },
		{ "run-dir", required_argument, NULL, 'D' },
		{ "log", required_argument, NULL, 'L' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int option, rc;

	while ((option = getopt_long(argc, argv, "h", table, NULL)) != -1) {
		rc = read_option(o, option, optarg);
		while (rc < 0 && option == 'C' && optind < argc && argv[optind][0] != '-')
			rc = take_corpus(o, argv[optind++]);
		if (rc >= 0)
			return rc;
	}
	if (optind < argc)
		return report_misuse("%s: not an option", argv[optind]);
	if (!o->join[0])
		return report_misuse("--join is missing%s", "");
	if (!o->controller_key)
		return report_misuse("--controller-key is missing%s", "");
	if (!o->key)
		return report_misuse("--key is missing%s", "");
	if (!o->listen[0])
		return report_misuse("--listen is missing%s", "");
	if (!o->advertise[0] && is_every_interface(o->listen))
		return report_misuse("--listen %s: other nodes cannot dial that; "
				     "give --advertise too",
				     o->listen);
	if (o->advertise[0] && (is_every_interface(o->advertise) || !can_dial(o->advertise)))
		return report_misuse("--advertise %s: other nodes cannot dial that: expected "
				     "tcp://HOST:PORT",
				     o->advertise);
	o->agent.corpus = o->corpus;
	o->agent.join = o->join;
	o->agent.listen = o->listen;
	o->agent.advertise = o->advertise[0] ? o->advertise : NULL;
	return -1;
}

/* Reads a key of 64 hex digits, or the first word of a file. */
static int read_controller_key(const char *text, struct keys_public *out, struct error *err)
{
	struct error ignored;
	char *data, *end;
	size_t size;
	int rc;

	if (keys_parse(text, out, &ignored) == 0)
		return 0;
	rc = file_read_text(text, 4096, &data, &size, err);
	if (rc < 0)
		return error_prefix(err, rc, "--controller-key");
	end = data + strcspn(data, " \t\r\n");
	*end = 0;
	rc = keys_parse(data, out, err);
	free(data);
	return rc < 0 ? error_prefix(err, rc, "%s", text) : 0;
}

/* Finds a folder that cannot be written now, not when the first checkpoint is due. */
static int check_run_dir(const struct agent_options *o, struct error *err)
{
	int rc = o->run_dir ? file_make_writable_folder(o->run_dir, err) : 0;

	return rc ? error_prefix(err, rc, "--run-dir") : 0;
}

static void wait_for_something(const struct agent *a, int signals, int64_t now)
{
	struct pollfd p[1 + AGENT_FDS] = { { .fd = signals, .events = POLLIN } };
	int64_t deadline = agent_deadline_us(a), us = 0;
	int fds[AGENT_FDS];
	struct timespec t;

	agent_fds(a, fds);
	for (int i = 0; i < AGENT_FDS; i++)
		p[1 + i] = (struct pollfd) { .fd = fds[i], .events = POLLIN };
	if (deadline > now) /* the deadline may be long past, and a subtraction could overflow */
		us = deadline - now < WAIT_MOST_US ? deadline - now : WAIT_MOST_US;
	t.tv_sec = us / 1000000;
	t.tv_nsec = us % 1000000 * 1000;
	ppoll(p, 1 + AGENT_FDS, &t, NULL);
}

static int run_loop(struct agent *a, int signals)
{
	struct signalfd_siginfo info;
	int64_t now = clock_monotonic_us();
	uint32_t hang_ms;
	int status;

	while (!agent_over(a, &status, now)) {
		wait_for_something(a, signals, now);
		if (read(signals, &info, sizeof(info)) == sizeof(info) && info.ssi_signo != SIGCONT)
			agent_leave(a, strsignal((int)info.ssi_signo), clock_monotonic_us());
		agent_receive(a, clock_monotonic_us());
		agent_work(a, clock_monotonic_us());
		agent_send(a, clock_monotonic_us());
		hang_ms = agent_hang_ms(a);
		/* The process hangs for an injected fault; only a signal (SIGCONT) ends this early.
		 */
		if (hang_ms)
			poll(&(struct pollfd) { .fd = signals, .events = POLLIN }, 1,
			     (int)(hang_ms < INT32_MAX ? hang_ms : INT32_MAX));
		now = clock_monotonic_us();
	}
	return status;
}

int main(int argc, char **argv)
{
	struct options o = { .agent = { .device = "cpu", .node = -1, .orphan_s = 60,
				      .stuck_s = 30 },
			     .log = { .to = stderr, .least = LOG_INFO, .who = "agent" } };
	struct keys_identity *identity = NULL;
	struct agent *a = NULL;
	struct outlet *log;
	struct error err = { "" };
	int signals, status;

	output_check_at_exit("skippipe-agent");
	status = read_options(&o, argc, argv);
	if (status >= 0)
		return status;
	link_tune_malloc();
	link_raise_files(8192);
	signals = signals_open(SIGCONT); /* SIGCONT ends an injected hang, and nothing else */
	log = outlet_new(stderr); /* after signals_open, because its thread takes no signals */
	o.log.to = outlet_stream(log);
	o.agent.log = &o.log;
	status = 1;
	if (signals < 0) {
		error_set(&err, signals, "signalfd: %s", strerror(-signals));
	} else if (check_run_dir(&o.agent, &err) == 0 &&
		   read_controller_key(o.controller_key, &o.agent.controller, &err) == 0 &&
		   keys_load_or_make(&identity, o.key, &err) == 0) {
		o.agent.identity = identity;
		if (agent_new(&a, &o.agent, clock_monotonic_us(), &err) == 0)
			status = run_loop(a, signals);
	}
	if (err.text[0])
		fprintf(o.log.to, "skippipe-agent: %s\n", err.text);
	if (a && agent_stuck(a)) {
		outlet_free(log, LOG_WAIT_US);
		_exit(status);
	}
	agent_free(a);
	keys_free(identity);
	outlet_free(log, LOG_WAIT_US);
	if (signals >= 0)
		close(signals);
	return status;
}
