/* skippipe-agent: the program that runs one node. It reads the options and calls agent.c. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/device_proof.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/process/options.h"
#include "base/process/outlet.h"
#include "base/process/output.h"
#include "base/process/signals.h"
#include "base/process/user_folder.h"
#include "wire/address.h"
#include "wire/invite/enroll.h"
#include "wire/msg.h"
#include "wire/reach.h"
#include "wire/sessions/link.h"

enum {
	WAIT_MOST_US = 1000000,
	LOG_WAIT_US = 1000000,
	LISTEN_PORT = 7701,
	SEEN_WAIT_MS =
		/* Time to wait for the controller's report of this machine's outside address,
		 * ms. */
	3000
};

struct options {
	struct agent_options agent;
	const char *controller_key, *key, *name;
	char join[160], listen[160], advertise[160], seen[LINK_ADDRESS_SIZE];
	struct token token;
	/* Key from the token; NULL: --join has an address instead. */
	struct keys_identity *invitation;
	uint32_t memory_mib; /* limit of memory in MiB; 0: no limit */
	enum { PRINT_NOTHING, PRINT_DEVICES, PRINT_VERSION } print;
	struct log log;
	char corpus[1 << 16]; /* paths of the corpus, in the format of agent_options.corpus */
	size_t corpus_size;
};

/* Takes an address; "HOST:PORT" means tcp://HOST:PORT. */
static int take_address(char to[160], const char *name, const char *text, struct error *err)
{
	int n = snprintf(to, 160, "%s%s", strstr(text, "://") ? "" : "tcp://", text);

	return n > 0 && n < 160 ? 0 : error_set(err, -EINVAL, "--%s %s: too long", name, text);
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

/* ---- the options ---- */

/* Takes the value of --join: a token, or the controller's address. Overwrites a token in the
 * command line or the environment, so that other users cannot read it. */
static int take_join(void *options, const char *value, struct error *err)
{
	struct options *o = options;
	char text[TOKEN_SIZE];
	int rc = token_take((char *)value, text, err);

	keys_free(o->invitation);
	o->invitation = NULL;
	o->join[0] = 0;
	if (rc == 0 && token_is(text))
		rc = token_parse(text, &o->token, &o->invitation, err);
	else if (rc == 0 && (take_address(o->join, "join", text, NULL) < 0 || !can_dial(o->join)))
		/* The error message does not show the value, which may be a mistyped token. */
		rc = error_set(err, -EINVAL,
			       "expected a token of skippipe invite, or tcp://HOST:PORT");
	token_wipe(text);
	if (rc == 0 && o->invitation && o->token.role != KEYS_AGENT)
		rc = error_set(err, -EINVAL, "this token is for a %s: skippipe console TOKEN",
			       keys_role_name(o->token.role));
	return rc == 0 ? 0 : error_prefix(err, -EINVAL, "--join");
}

static int take_name(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	o->name = text;
	return strlen(text) < KEYS_NAME_SIZE ? 0
					     : error_set(err, -EINVAL, "--name %s: too long", text);
}

static int take_place(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	o->agent.place = text;
	return strlen(text) < sizeof(((struct msg_hello *)0)->place)
		       ? 0
		       : error_set(err, -EINVAL, "--place %s: too long", text);
}

static int take_listen(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	return take_address(o->listen, "listen", text, err);
}

static int take_advertise(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	return take_address(o->advertise, "advertise", text, err);
}

static int take_device(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	o->agent.device = text;
	return strlen(text) < 32 ? 0 : error_set(err, -EINVAL, "--device %s: too long", text);
}

static int take_recompute(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	return recompute_parse(text, &o->agent.recompute) == 0 &&
			       o->agent.recompute != RECOMPUTE_AUTO
		       ? 0
		       : error_set(err, -EINVAL,
				   "--recompute: expected none, norms or block, got \"%s\"", text);
}

static int take_corpus(void *options, const char *path, struct error *err)
{
	struct options *o = options;
	size_t n = strlen(path) + 1;

	if (n > sizeof(o->corpus) - o->corpus_size)
		return error_set(err, -EINVAL, "--corpus %s: too many files", path);
	memcpy(o->corpus + o->corpus_size, path, n);
	o->corpus_size += n;
	o->agent.n_corpus++;
	return 0;
}

static const char *const levels[] = { "debug", "info", "warn", "error", NULL };

static const struct options_row rows[] = {
#define AT(field) .at = offsetof(struct options, field)
#define LIMITS(least_, most_) .least = (least_), .most = (most_)
	{ "join", OPTIONS_PARSED, "TOKEN", .parse = take_join,
	  .help = "a token of skippipe invite, with which the controller admits this agent; or the "
		  "controller's address, tcp://HOST:PORT. @FILE and - read it from a file or from "
		  "standard input" },
	{ "name", OPTIONS_PARSED, "NAME", .parse = take_name,
	  .help = "name under which a token admits this node [the machine's, made unique]" },
	{ "place", OPTIONS_PARSED, "TEXT", .parse = take_place,
	  .help = "where the machine is, such as eu-west" },
	{ "controller-key", OPTIONS_TEXT, "KEY", AT(controller_key),
	  .help = "if --join is an address: the controller's public key, as 64 hex digits or as a "
		  "file" },
	{ "key", OPTIONS_TEXT, "FILE", AT(key),
	  .help = "this agent's key; created if it is missing. Without a token the controller must "
		  "admit its public half (skippipe admit) "
		  "[agent.key in --run-dir or ~/.local/state/skippipe]" },
	{ "listen", OPTIONS_PARSED, "ADDRESS", .parse = take_listen,
	  .help = "where this agent listens for other nodes; port 0: any free port "
		  "[tcp://[::]:7701, or a port that a provider maps]" },
	{ "advertise", OPTIONS_PARSED, "ADDRESS", .parse = take_advertise,
	  .help = "the address that other nodes dial [--listen. If that is all interfaces: a "
		  "provider's mapping, the address that the controller sees, or the machine's "
		  "own]" },
	{ "node", OPTIONS_INT, "I", AT(agent.node), LIMITS(0, 999),
	  .help = "the number of the node [the controller chooses]" },
	{ "device", OPTIONS_PARSED, "DEVICE", "cpu",
	  "cpu or cuda[:N], each also with :bf16 at its end. cpu:plain, cpu:v3 (AVX2), cpu:v4 "
	  "(AVX-512) and cpu:amx choose the instruction set. Without a GPU the CPU computes. "
	  "skippipe agent --device cuda:all starts an agent for each GPU (also cuda:all:bf16, or a "
	  "list with commas). Their keys are FILE.0, FILE.1, ...; port and node are counted up. "
	  "pretend computes nothing and sleeps for the times of the cluster file: for rehearsals "
	  "(skippipe help rehearse)",
	  .parse = take_device },
	{ "devices", OPTIONS_NUMBER, AT(print), .number = PRINT_DEVICES,
	  .help = "list this machine's devices and exit" },
	{ "recompute", OPTIONS_PARSED, "LEVEL", "norms",
	  "values that a backward pass recomputes to save memory: none, norms or block",
	  .parse = take_recompute },
	{ "memory", OPTIONS_U32, "MIB", AT(memory_mib), LIMITS(1, INT32_MAX),
	  .help = "limit of the machine's memory for the stage and an iteration "
		  "[the free memory]" },
	{ "corpus", OPTIONS_PARSED, "FILE...", .parse = take_corpus, .many = true,
	  .help = "the corpus on this machine [the run's paths; missing files are fetched from the "
		  "controller]" },
	{ "run-dir", OPTIONS_TEXT, "DIR", AT(agent.run_dir),
	  .help = "write checkpoints of this agent's stage to DIR/checkpoints [no checkpoints]" },
	{ "orphan-s", OPTIONS_U32, "N", "60", "end after N seconds without a controller",
	  AT(agent.orphan_s), LIMITS(1, 1000000) },
	{ "notice-s", OPTIONS_U32, "N", "80",
	  "after SIGTERM the agent drains: it works until the other nodes can do without it, N "
	  "seconds at most, and ends with status 0; a second signal ends it at once; 0: it does "
	  "not drain",
	  AT(agent.notice_s), LIMITS(0, 1000000) },
	{ "stuck-s", OPTIONS_U32, "N", "30",
	  "end if a task takes longer than N seconds plus 20 times the longest task so far; a task "
	  "that prepares, loads or measures a stage may take 40 times as long",
	  AT(agent.stuck_s), LIMITS(1, 1000000) },
	{ "log", OPTIONS_CHOICE, "LEVEL", "info", "debug, info, warn or error", AT(log.least),
	  .words = levels },
	{ "help", OPTIONS_HELP, .help = "print this help" },
	{ "version", OPTIONS_NUMBER, AT(print), .number = PRINT_VERSION,
	  .help = "print the version" },
#undef AT
#undef LIMITS
};

static const struct options_table table = {
	rows, sizeof(rows) / sizeof(rows[0]), .environment = "SKIPPIPE_",
	.intro = "usage: skippipe-agent --join TOKEN [option ...]\n"
		 "       skippipe-agent --join ADDRESS --controller-key KEY [option ...]\n"
		 "\n"
		 "Runs one node: joins a controller, trains the stage that it is given, and\n"
		 "exchanges activations and gradients with the other nodes. Logs to stderr.\n"
		 "\n",
	.end = "\n"
	       "Each option may also be a variable of the environment: SKIPPIPE_JOIN,\n"
	       "SKIPPIPE_RUN_DIR, SKIPPIPE_CORPUS=FILE:FILE. The command line wins. No list of\n"
	       "processes shows a token that is in a variable or in a file.\n"
	       "\n"
	       "Ends on SIGTERM, SIGINT and SIGHUP (unless nohup or a shell ignores it), and on\n"
	       "the controller's order. Exit status: 0 ended as ordered, 1 failed, 2 wrong usage,\n"
	       "3 refused for good: another process has this agent's key and keeps its node, or\n"
	       "the invitation is used up, expired or revoked.\n"
};

/* Chooses the port to listen at. If the provider of this machine maps a port of the machine to an
 * outside address, takes this port. If there is no such port, takes the default port. */
static void choose_listen(struct options *o)
{
	struct reach_mapping mapping = { .inside = LISTEN_PORT };

	reach_mapped(0, LISTEN_PORT, &mapping);
	snprintf(o->listen, sizeof(o->listen), "tcp://[::]:%u", mapping.inside);
}

/* Checks that the required options are given, and that other nodes can dial the addresses. */
static int check_options(struct options *o, struct error *err)
{
	if (!o->invitation && (!o->join[0] || !o->controller_key))
		return error_set(err, -EINVAL, "--%s is missing",
				 !o->join[0] ? "join" : "controller-key");
	if (!o->listen[0])
		choose_listen(o);
	if (o->advertise[0] && (is_every_interface(o->advertise) || !can_dial(o->advertise)))
		return error_set(err, -EINVAL,
				 "--advertise %s: other nodes cannot dial that: expected "
				 "tcp://HOST:PORT",
				 o->advertise);
	return 0;
}

/* Reads the command line. Returns -1 to continue, otherwise the exit status. */
static int read_options(struct options *o, int argc, char **argv)
{
	struct error err = { "" };
	int rc = options_read(&table, o, argc, argv, NULL, &err);

	if (rc > 0) {
		options_help(&table, stdout);
		return 0;
	}
	if (rc == 0 && o->print == PRINT_DEVICES)
		return list_devices();
	if (rc == 0 && o->print == PRINT_VERSION) {
		puts("skippipe-agent " SKIPPIPE_VERSION);
		return 0;
	}
	if (rc == 0)
		rc = check_options(o, &err);
	if (rc < 0) {
		fprintf(stderr, "skippipe-agent: %s\nskippipe-agent: --help lists the options\n",
			err.text);
		return 2;
	}
	o->agent.memory_bytes = (size_t)o->memory_mib << 20;
	o->agent.corpus = o->corpus;
	o->agent.join = o->join;
	o->agent.listen = o->listen;
	o->agent.advertise = o->advertise[0] ? o->advertise : NULL;
	return -1;
}

/* Reads the controller's key. text: 64 hex digits, or the name of a file that begins with 64 hex
 * digits. */
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

/* Checks that checkpoints can be written to the folder. Without this check the error would appear
 * only when the first checkpoint is due. */
static int check_run_dir(const struct agent_options *o, struct error *err)
{
	int rc = o->run_dir ? file_make_writable_folder(o->run_dir, err) : 0;

	return rc ? error_prefix(err, rc, "--run-dir") : 0;
}

/* Gives the path of the file with this agent's key. */
static int find_key(const struct options *o, char out[PATH_MAX], struct error *err)
{
	int n = 0;

	if (!o->key && !o->agent.run_dir) {
		n = user_state_file(out, PATH_MAX, "agent.key", err);
		return n == 0 ? 0 : error_prefix(err, n, "no folder for the key; give --run-dir");
	}
	n = o->key ? snprintf(out, PATH_MAX, "%s", o->key)
		   : snprintf(out, PATH_MAX, "%s/agent.key", o->agent.run_dir);
	return n < PATH_MAX ? 0 : error_set(err, -ENAMETOOLONG, "--key: too long");
}

/* Waits until the controller has admitted this agent by the agent's token. */
static int join_by_token(struct options *o, bool is_new, int signals, struct error *err)
{
	const struct enroll_options how = { .token = &o->token,
					    .invitation = o->invitation,
					    .own = o->agent.identity,
					    .is_new = is_new,
					    .name = o->name,
					    .wait_us = (int64_t)o->agent.orphan_s * 1000000,
					    .signals = signals,
					    .log = &o->log };
	struct enrolled joined;
	int rc = enroll(&how, &joined, err);

	keys_free(o->invitation);
	o->invitation = NULL;
	if (rc < 0)
		return rc;
	o->agent.controller = o->token.controller;
	memcpy(o->join, joined.address, sizeof(o->join));
	if (joined.name[0])
		log_line(&o->log, LOG_INFO, "admitted under the name %s", joined.name);
	return 0;
}

/* Loads or makes this agent's key (*identity). Finds the address and the key of the controller. */
static int find_controller(struct options *o, int signals, struct keys_identity **identity,
			   struct error *err)
{
	char path[PATH_MAX];
	bool is_new;
	int rc = find_key(o, path, err);

	if (rc < 0)
		return rc;
	is_new = access(path, F_OK) != 0;
	if (!o->invitation)
		rc = read_controller_key(o->controller_key, &o->agent.controller, err);
	if (rc == 0)
		rc = keys_load_or_make(identity, path, err);
	o->agent.identity = *identity;
	if (rc == 0 && o->invitation)
		rc = join_by_token(o, is_new, signals, err);
	/* An agent that listens on all interfaces does not know at which address other nodes can
	 * dial it. */
	if (rc == 0 && !o->agent.advertise && is_every_interface(o->listen) &&
	    reach_seen(o->join, SEEN_WAIT_MS, o->seen))
		o->agent.seen = o->seen;
	return rc;
}

/* Returns the exit status of an agent that did not join. */
static int status_of(int rc)
{
	return rc == -EPERM ? AGENT_REFUSED_FOR_GOOD : rc == -EINTR ? 0 : 1;
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
	/* Avoids an overflow of the subtraction if the deadline is far in the past. */
	if (deadline > now)
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
			agent_leave(a, strsignal((int)info.ssi_signo), info.ssi_signo == SIGTERM,
				    clock_monotonic_us());
		agent_receive(a, clock_monotonic_us());
		agent_work(a, clock_monotonic_us());
		agent_send(a, clock_monotonic_us());
		hang_ms = agent_hang_ms(a);
		/* An injected fault suspends the process. Only SIGCONT ends the suspension early.
		 */
		if (hang_ms)
			poll(&(struct pollfd) { .fd = signals, .events = POLLIN }, 1,
			     (int)(hang_ms < INT32_MAX ? hang_ms : INT32_MAX));
		now = clock_monotonic_us();
	}
	return status;
}

/* Tests the GPU. Call it before the first thread starts and before this agent contacts the
 * controller. Returns -1 to continue, otherwise the exit status. */
static int prove_device(const char *device)
{
	struct error err = { "" };

	if (device_proof_compiles(device))
		fprintf(stderr, "skippipe-agent: %s: the driver compiles this program's code for "
				"the GPU, which takes tens of seconds the first time\n",
			device);
	if (device_proof(device, &err) == 0)
		return -1;
	fprintf(stderr, "skippipe-agent: %s\n", err.text);
	return 1;
}

int main(int argc, char **argv)
{
	struct options o = { .agent.node = -1, .log = { .to = stderr, .who = "agent" } };
	struct keys_identity *identity = NULL;
	struct agent *a = NULL;
	struct outlet *log;
	struct error err = { "" };
	int signals, status, rc;

	output_check_at_exit("skippipe-agent");
	status = read_options(&o, argc, argv);
	if (status < 0)
		status = prove_device(o.agent.device);
	if (status >= 0)
		return status;
	link_tune_malloc();
	link_raise_files(8192);
	/* SIGCONT ends an injected suspension and has no other effect. */
	signals = signals_open(SIGCONT);
	/* The log's thread starts after signals_open, so that signals are not delivered to the
	 * log's thread. */
	log = outlet_new(stderr);
	o.log.to = outlet_stream(log);
	o.agent.log = &o.log;
	status = 1;
	if (signals < 0) {
		error_set(&err, signals, "signalfd: %s", strerror(-signals));
	} else if (check_run_dir(&o.agent, &err) == 0) {
		rc = find_controller(&o, signals, &identity, &err);
		if (rc < 0)
			status = status_of(rc);
		else if (agent_new(&a, &o.agent, clock_monotonic_us(), &err) == 0)
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
	keys_free(o.invitation);
	outlet_free(log, LOG_WAIT_US);
	if (signals >= 0)
		close(signals);
	return status;
}
