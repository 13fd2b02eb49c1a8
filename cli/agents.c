/* Starts an agent for each device of a machine. An agent computes on one device only, so a
 * machine with eight GPUs would otherwise need eight command lines. */
#include "cli/agents.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/process/options.h"
#include "base/process/signals.h"
#include "base/process/user_folder.h"
#include "cli/children.h"
#include "cli/devices.h"
#include "cli/verbs.h"

enum {
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	/* Time that the agents have to end before this process kills them. An agent needs 11 s at
	 * most (agent/agent.c). */
	END_US = 12000000,
	NOTICE_S = 80,
	NOTICE_MOST_S = 1000000 /* limit of --notice-s; NOTICE_S is its default */
};

/* Options whose value must differ between the agents of a machine; agent i gets the value plus
 * i. */
static const char *const moved[] = { "listen", "advertise", "node", "name" };
enum { N_MOVED = sizeof(moved) / sizeof(moved[0]) };

/* If the option `name` is at *at, as "--name VALUE" or "--name=VALUE", returns its value and moves
 * *at to the last word of the option. Otherwise returns NULL. */
static const char *value_of(char ***at, const char *name)
{
	size_t n = strlen(name);

	if (strncmp(**at, "--", 2) != 0 || strncmp(**at + 2, name, n) != 0)
		return NULL;
	if ((**at)[2 + n] == '=')
		return **at + 3 + n;
	if ((**at)[2 + n] || !(*at)[1])
		return NULL;
	return *++*at;
}

/* Returns the last value that the command line gives to the option; NULL if the option is
 * absent. */
static const char *given_value(char **argv, const char *option)
{
	const char *found = NULL, *value;

	for (char **at = argv; *at; at++)
		if ((value = value_of(&at, option)))
			found = value;
	return found;
}

/* Returns the option's value from the command line, or else from the environment; NULL if neither
 * has the option. */
static const char *find_value(char **argv, const char *option)
{
	const char *found = given_value(argv, option);
	char name[OPTIONS_VARIABLE_SIZE];

	if (found)
		return found;
	options_variable("SKIPPIPE_", option, name);
	found = getenv(name);
	return found && *found ? found : NULL;
}

static const char *devices_of(char **argv)
{
	return find_value(argv, "device");
}

bool agents_wanted(char **argv)
{
	const char *text = devices_of(argv);

	return text && devices_several(text);
}

/* Adds an option for agent i: the port or number at the end of its value is increased by i. Port
 * 0 stays 0, because it makes the system choose an unused port for each agent. A value without a
 * number at its end, such as a socket's path, gets ".i" appended. */
static void add_moved(struct args *a, const char *name, const char *value, size_t i)
{
	const char *colon = strrchr(value, ':'), *number = colon ? colon + 1 : value;
	char *end;
	unsigned long n = strtoul(number, &end, 10);

	if (end == number || *end)
		args_addf(a, "--%s=%s.%zu", name, value, i);
	else if (n == 0 && colon)
		args_addf(a, "--%s=%s", name, value);
	else
		args_addf(a, "--%s=%.*s%lu", name, (int)(number - value), value, n + i);
}

/* Adds options that the command line lacks but whose values must differ between the agents. */
static void add_missing(struct args *a, char **argv, const char *key, size_t i)
{
	static const char listen[] = "tcp://[::]:7701"; /* default of the agent's --listen */

	for (size_t k = 0; k < N_MOVED; k++) {
		const char *value = given_value(argv, moved[k]) ? NULL : find_value(argv, moved[k]);

		if (!value && strcmp(moved[k], "listen") == 0 && !given_value(argv, "listen"))
			value = listen;
		if (value)
			add_moved(a, moved[k], value, i);
	}
	if (!given_value(argv, "key"))
		args_addf(a, "--key=%s.%zu", key, i);
}

/* Finds the path of the key file. The caller appends the number of an agent to this path. */
static int find_key(char **argv, char out[PATH_MAX], struct error *err)
{
	const char *key = find_value(argv, "key"), *folder = find_value(argv, "run-dir");

	if (!key && !folder) {
		int rc = user_state_file(out, PATH_MAX, "agent.key", err);

		return rc == 0 ? 0 : error_prefix(err, rc, "no folder for the key; give --run-dir");
	}
	if (snprintf(out, PATH_MAX, "%s%s", key ? key : folder, key ? "" : "/agent.key") < PATH_MAX)
		return 0;
	return error_set(err, -ENAMETOOLONG, "--key: too long");
}

/* Returns true if the value of --join is a token. A token contains no colon, but an address
 * does. */
static bool is_token(const char *join)
{
	return join[0] != '@' && !strchr(join, ':');
}

/* Moves the token from the command line to the environment, which the agents inherit. A list of
 * processes (ps) shows command lines to all users. */
static int hide_token(char **argv, struct error *err)
{
	const char *join = given_value(argv, "join");

	if (join && strcmp(join, "-") == 0)
		return error_set(err, -EINVAL,
				 "--join -: several agents cannot read one standard input; use "
				 "@FILE or SKIPPIPE_JOIN");
	if (!join || !is_token(join))
		return 0;
	if (setenv("SKIPPIPE_JOIN", join, 1) != 0)
		return error_set(err, -errno, "SKIPPIPE_JOIN: %s", strerror(errno));
	for (char **at = argv; *at; at++) {
		char *value = (char *)value_of(&at, "join");

		if (value && is_token(value))
			explicit_bzero(value, strlen(value));
	}
	return 0;
}

/* Overwrites the token with zeros, after every agent has its own copy. */
static void wipe_token(void)
{
	char *join = getenv("SKIPPIPE_JOIN");

	if (join && is_token(join))
		explicit_bzero(join, strlen(join));
}

static void fill_agent_arguments(struct args *a, const char *program, char **argv, const char *key,
				 const char *device, size_t i)
{
	args_add(a, program);
	for (char **at = argv; *at; at++) {
		const char *value = NULL, *name = NULL;
		char **from = at;

		for (size_t k = 0; !value && k < N_MOVED; k++) {
			name = moved[k];
			value = value_of(&at, name);
		}
		if (value)
			add_moved(a, name, value, i);
		else if ((value = value_of(&at, "key")))
			args_addf(a, "--key=%s.%zu", value, i);
		else if ((value = value_of(&at, "join")))
			/* hide_token has overwritten the token, so --join is dropped. */
			for (; *value && from <= at; from++)
				args_add(a, *from);
		else if (!value_of(&at, "device"))
			args_add(a, *at);
	}
	add_missing(a, argv, key, i);
	args_addf(a, "--device=%s", device);
}

static void signal_all(struct child *agents, size_t n, int sig)
{
	for (size_t i = 0; i < n; i++)
		child_signal(&agents[i], sig);
}

/* Waits for a signal and returns its number. Returns -1 if none arrives for an hour or until the
 * time until_us. Returns SIGKILL if the time until_us has already passed. until_us INT64_MAX: no
 * time limit. */
static int next_signal(const sigset_t *set, int64_t until_us)
{
	int64_t left_us = until_us - clock_monotonic_us();
	struct timespec t = { .tv_sec = 3600 };

	if (left_us <= 0)
		return SIGKILL;
	if (left_us < INT64_C(3600000000))
		t = (struct timespec){ left_us / 1000000, left_us % 1000000 * 1000 };
	return sigtimedwait(set, NULL, &t);
}

/* Returns the time that the agents have after SIGTERM to hand over their stages (--notice-s). */
static int64_t notice_us(char **argv)
{
	const char *text = find_value(argv, "notice-s");
	unsigned long s = text ? strtoul(text, NULL, 10) : NOTICE_S;

	return (int64_t)(s < NOTICE_MOST_S ? s : NOTICE_MOST_S) * 1000000;
}

/* Waits until no agent runs. This process passes its first signal on to the agents; a second
 * signal kills the agents. Agents that still run END_US after the first signal, or END_US +
 * drains_us after SIGTERM, are killed. is_ending: the agents have already received their first
 * signal. Returns the highest exit status. */
static int wait_for_all(struct child *agents, size_t n, const sigset_t *set, int64_t drains_us,
			bool is_ending)
{
	int64_t until_us = is_ending ? clock_monotonic_us() + END_US : INT64_MAX;
	int worst = 0;

	for (size_t running = n; running > 0;) {
		int status, signal = next_signal(set, until_us);
		pid_t pid;

		if (signal == SIGKILL || (signal > 0 && signal != SIGCHLD && is_ending)) {
			signal_all(agents, n, SIGKILL);
			until_us = INT64_MAX;
		} else if (signal > 0 && signal != SIGCHLD) {
			signal_all(agents, n, signal);
			is_ending = true;
			until_us = clock_monotonic_us() + END_US +
				   (signal == SIGTERM ? drains_us : 0);
		}
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			for (size_t i = 0; i < n; i++)
				if (child_ended(&agents[i], pid, status)) {
					running--;
					if (child_exit_status(&agents[i]) > worst)
						worst = child_exit_status(&agents[i]);
				}
	}
	return worst;
}

/* Blocks signals before the first agent starts. wait_for_all then receives them one after another,
 * and ends every agent before this process ends. */
int agents_main(char **argv)
{
	const struct child_start how = { .pass_fd = -1,
					 .keep_stdout = true,
					 .parent_death_signal = SIGTERM };
	struct child agents[DEVICES_MOST] = { 0 };
	struct devices devices;
	char path[PATH_MAX], key[PATH_MAX];
	struct error err = { "" };
	size_t started = 0;
	int status = EXIT_FAILED, rc = devices_parse(&devices, devices_of(argv), &err);
	sigset_t set;

	if (rc == -EINVAL)
		status = EXIT_USAGE;
	if (rc == 0)
		rc = verbs_program("skippipe-agent", path, sizeof(path), &err);
	if (rc == 0)
		rc = find_key(argv, key, &err);
	if (rc == 0)
		rc = hide_token(argv, &err);
	signals_ending(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (size_t i = 0; rc == 0 && i < devices.n; i++) {
		fill_agent_arguments(&agents[i].args, path, argv, key, devices.names[i], i);
		rc = child_start(&agents[i], &how, &err);
		started += rc == 0;
	}
	wipe_token();
	if (rc != 0) {
		fprintf(stderr, "skippipe agent: %s\n", err.text);
		signal_all(agents, started, SIGTERM);
	}
	rc = wait_for_all(agents, started, &set, notice_us(argv), rc != 0);
	for (size_t i = 0; i < DEVICES_MOST; i++)
		child_free(&agents[i]);
	return err.text[0] ? status : rc;
}
