/* Runs ssh for many hosts at once, and reads their answers.
 *
 * One poll loop serves all commands, so that a slow or silent host delays no other host. Every
 * command has a time limit and a limit of output. ssh writes its own messages to the same pipe;
 * when a command fails, the last of them gives the reason ("Connection refused").
 */
#include "cli/fleet/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/process/ending.h"
#include "base/process/signals.h"
#include "cli/fleet/connections.h"
#include "cli/fleet/script.h"
#include "cli/fleet/words.h"

extern char **environ;

enum {
	PARALLEL = 24,
	OUTPUT_MOST = 1 << 20,
	CHUNK = 65536,
	TURN_MS = 50,
	SSH_FAILED = 255, /* exit status of ssh if it cannot connect */
	/* Largest number of connections that log in at the same time. A server drops connections
	 * at random if ten or more log in (MaxStartups of sshd), and a jump host serves the whole
	 * fleet. A connection that is older than LOGIN_US does not count, because its host is
	 * probably silent. LOGIN_US is ConnectTimeout of connections.c: a login behind a jump
	 * host may take seconds. */
	LOGINS = 8,
	LOGIN_US = 10000000,
	END_US = 1000000, /* time between SIGTERM and SIGKILL */
	SAID_MOST = 1100  /* most bytes of a message in a failure's reason */
};

struct remote {
	struct connections connections;
	const char *version;
	int signals;
	bool is_stopped;
};

/* A command that runs, or a free entry of the list of commands. */
struct running {
	struct remote_job *job; /* the job that the command does; NULL: the entry is free */
	pid_t pid;
	int in, out; /* this program's ends of the command's pipes; -1: closed */
	int file;    /* descriptor of the file for the command's standard input; -1: none */
	const char *text;
	/* Bytes for the command's standard input; `left` bytes from `at` on are still to be
	 * written. */
	char *chunk;
	size_t at, left;
	char line[REMOTE_LINE * 2]; /* a line of output whose end has not arrived yet */
	size_t length;
	size_t total; /* number of bytes of output so far */
	int64_t since_us, limit_us, until_us;
};

int remote_new(struct remote **out, const char *version, struct error *err)
{
	struct remote *r = alloc_new(sizeof(*r));
	int rc = connections_open(&r->connections, err);

	r->version = version;
	r->signals = rc == 0 ? signals_open(0) : -1;
	if (rc == 0 && r->signals < 0)
		rc = error_set(err, r->signals, "signalfd: %s", strerror(-r->signals));
	if (rc == 0)
		*out = r;
	else
		remote_free(r);
	return rc;
}

/* ---- starting ---- */

/* Makes the command line of a job. On this machine it is sh with the script; on another host it is
 * ssh with the quoted script. */
static void make_command(const struct remote *r, const struct remote_job *job, struct args *out)
{
	struct args script = { 0 };
	char *line;

	args_add(&script, "sh");
	args_add(&script, "-c");
	args_add(&script, script_text);
	args_add(&script, "fleet");
	args_add(&script, job->words.list[0]);
	args_add(&script, job->folder);
	args_add(&script, r->version);
	args_add(&script, job->program);
	for (size_t i = 1; i < job->words.n; i++)
		args_add(&script, job->words.list[i]);
	if (!job->host->target[0]) {
		*out = script;
		return;
	}
	line = words_login_line(script.list);
	connections_add_ssh(&r->connections, job->host, out);
	args_add(out, line);
	free(line);
	args_free(&script);
}

/* Starts a command in a process group of its own. Ctrl-C therefore does not reach the command, and
 * this program can end it in order. `in` and `out` are the command's ends of the pipes. */
static int spawn_command(pid_t *pid, const struct args *command, int in, int out)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETPGROUP);
	rc = posix_spawnp(pid, command->list[0], &actions, &attributes, command->list, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -rc;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int start_job(const struct remote *r, struct running *c, struct remote_job *job,
		     int64_t limit_us, struct error *err)
{
	struct args command = { 0 };
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, rc = 0;

	*c = (struct running){ .in = -1, .out = -1, .file = -1, .text = job->text };
	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
		rc = error_set(err, -errno, "pipe: %s", strerror(errno));
	if (rc == 0 && job->file && (c->file = open(job->file, O_RDONLY | O_CLOEXEC)) < 0)
		rc = error_set(err, -errno, "%s: %s", job->file, strerror(errno));
	if (rc == 0) {
		make_command(r, job, &command);
		rc = spawn_command(&c->pid, &command, in[0], out[1]);
		if (rc != 0)
			error_set(err, rc, "%s: %s", command.list[0], strerror(-rc));
		args_free(&command);
	}
	close_fd(&in[0]);
	close_fd(&out[1]);
	if (rc != 0) {
		close_fd(&in[1]);
		close_fd(&out[0]);
		close_fd(&c->file);
		return rc;
	}
	c->job = job;
	c->in = in[1];
	c->out = out[0];
	fcntl(c->in, F_SETFL, O_NONBLOCK);
	fcntl(c->out, F_SETFL, O_NONBLOCK);
	c->since_us = clock_monotonic_us();
	c->limit_us = limit_us;
	c->until_us = job->is_endless ? INT64_MAX : c->since_us + limit_us;
	return 0;
}

/* ---- standard input ---- */

/* Reads the next bytes for the command's standard input into c->chunk. Returns false at their
 * end. */
static bool fill_chunk(struct running *c)
{
	ssize_t n;

	if (!c->chunk)
		c->chunk = alloc_new(CHUNK);
	c->at = c->left = 0;
	if (c->text && *c->text) {
		c->left = strlen(c->text) < CHUNK ? strlen(c->text) : CHUNK;
		memcpy(c->chunk, c->text, c->left);
		c->text += c->left;
	} else if (c->file >= 0) {
		n = read(c->file, c->chunk, CHUNK);
		c->left = n > 0 ? (size_t)n : 0;
	}
	return c->left > 0;
}

static bool has_input(const struct running *c)
{
	return c->in >= 0 && (c->left > 0 || (c->text && *c->text) || c->file >= 0);
}

static void write_input(struct running *c)
{
	ssize_t n;

	if (c->left == 0 && !fill_chunk(c))
		close_fd(&c->file);
	if (c->left > 0) {
		n = write(c->in, c->chunk + c->at, c->left);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			close_fd(&c->in);
		if (n > 0) {
			c->at += (size_t)n;
			c->left -= (size_t)n;
			/* A file may travel for hours over a slow link. The limit therefore begins
			 * again with each part that ssh takes. */
			if (c->file >= 0)
				c->until_us = clock_monotonic_us() + c->limit_us;
		}
	}
	if (!has_input(c) && !c->job->is_endless)
		close_fd(&c->in);
}

/* ---- output ---- */

/* Returns true if the line only says that the connection has ended, that a host's key is refused,
 * or that a file of options is wrong. An earlier line of ssh may then say more. */
static bool is_end_of_connection(const char *line)
{
	static const char *const begins[] = { "Connection closed by ", "Connection reset by ",
					      "Disconnected from ", "kex_exchange_identification: ",
					      "Host key verification failed" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(line, begins[i], strlen(begins[i])) == 0)
			return true;
	return strstr(line, "terminating, ") && strstr(line, " bad configuration option");
}

/* Keeps a line as the reason of a later failure, unless an earlier line says more. */
static void keep_said(struct remote_job *job, const char line[REMOTE_LINE])
{
	static const char stored_key[] = "Warning: Permanently added ";

	if (!line[0] || strncmp(line, stored_key, sizeof(stored_key) - 1) == 0)
		return;
	if (job->has_answered || !is_end_of_connection(line) || !job->said[0] ||
	    is_end_of_connection(job->said))
		memcpy(job->said, line, REMOTE_LINE);
}

/* Passes a line of output to the job's callback. The script begins with the line "@ here". Before
 * that line, ssh and the host's login shell may have written anything. After it, a line
 * "@ KEY VALUE" is an answer. */
static void take_line(struct running *c, const struct remote_calls *calls)
{
	char line[REMOTE_LINE], *value;
	bool is_begin = false;

	words_clean(c->line, c->length, line, sizeof(line));
	c->length = 0;
	if (!c->job->has_answered)
		is_begin = c->job->has_answered = strcmp(line, "@ here") == 0;
	if (is_begin)
		return;
	if (!c->job->has_answered || strncmp(line, "@ ", 2) != 0 || c->job->is_endless) {
		keep_said(c->job, line);
		if (c->job->has_answered)
			calls->line(calls->owner, c->job, NULL, line);
		return;
	}
	value = line + 2 + strcspn(line + 2, " ");
	if (*value)
		*value++ = '\0';
	if (strcmp(line + 2, "failed") == 0)
		snprintf(c->job->why, sizeof(c->job->why), "%s", value);
	calls->line(calls->owner, c->job, line + 2, value);
}

static void read_output(struct running *c, const struct remote_calls *calls)
{
	char buffer[4096];
	ssize_t n = read(c->out, buffer, sizeof(buffer));

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		close_fd(&c->out);
	c->total += n > 0 ? (size_t)n : 0;
	if (c->total > OUTPUT_MOST && !c->job->is_endless) {
		snprintf(c->job->why, sizeof(c->job->why), "it sends more than it should");
		c->until_us = 0;
		return;
	}
	for (ssize_t i = 0; i < n; i++) {
		if (buffer[i] == '\n')
			take_line(c, calls);
		else if (c->length < sizeof(c->line))
			c->line[c->length++] = buffer[i];
	}
	if (c->out < 0 && c->length > 0)
		take_line(c, calls);
}

/* ---- the end of a job ---- */

/* Returns what to do about a last message of ssh or of its server; "": unknown. */
static const char *remedy_of(const char *said)
{
	static const struct {
		const char *words, *remedy;
	} all[] = {
		{ "Host key verification failed",
		  " (if ssh has never seen this host: set StrictHostKeyChecking accept-new)" },
		{ "has changed and you have requested strict checking",
		  " (if another machine has this address now: run ssh-keygen -R ADDRESS)" },
		{ "Too many authentication failures",
		  " (name the host's key: IdentityFile, and IdentitiesOnly yes)" },
		{ "closed by UNKNOWN port", /* ssh hides the messages of its ProxyCommand */
		  " (the jump host or ProxyCommand failed: run ssh to the jump host to see why)" },
		{ "Permission denied (password", " (nobody enters a password here: let the host "
						 "accept the key alone)" },
		{ "Permission denied (keyboard-interactive",
		  " (nobody enters a code here: let the host accept the key alone)" },
		{ "support PTY", " (at RunPod, take the address of SSH over exposed TCP)" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strstr(said, all[i].words))
			return all[i].remedy;
	return "";
}

/* Sets job->why if the script has given no reason. */
static void explain_failure(struct remote_job *job)
{
	static const char no_commands[] = "its login shell runs no commands";
	/* ssh has logged in, but the host has not run the script. */
	const bool runs_nothing = !job->has_answered && job->status >= 0 &&
				  job->status != SSH_FAILED;

	if (!job->said[0]) {
		snprintf(job->why, sizeof(job->why), "%s",
			 runs_nothing                ? no_commands
			 : job->status == SSH_FAILED ? "the connection was lost"
						     : "the command failed");
		return;
	}
	snprintf(job->why, sizeof(job->why), "%s%s%.*s%s", runs_nothing ? no_commands : "",
		 runs_nothing ? ": " : "", SAID_MOST, job->said,
		 job->has_answered ? "" : remedy_of(job->said));
}

static void end_job(struct running *c, int rc, int status, const struct remote_calls *calls)
{
	struct remote_job *job = c->job;

	close_fd(&c->in);
	close_fd(&c->out);
	close_fd(&c->file);
	if (c->chunk)
		explicit_bzero(c->chunk, CHUNK); /* the bytes may contain a token */
	free(c->chunk);
	if (rc == 0 && !job->has_answered)
		rc = -EIO;
	job->rc = rc;
	job->status = status;
	if (rc == -ETIMEDOUT && !job->why[0])
		snprintf(job->why, sizeof(job->why), "it does not answer in time");
	if (rc == -ECANCELED)
		snprintf(job->why, sizeof(job->why), "interrupted");
	if (rc != 0 && !job->why[0])
		explain_failure(job);
	explicit_bzero(c, sizeof(*c));
	if (calls->turn)
		calls->turn(calls->owner, job, true);
}

/* Ends the job if its command has ended or its time is over. The function reads only the output
 * that has already arrived. It does not wait for the pipe's end, because the connection that ssh
 * keeps for later commands may hold the pipe open. */
static void check_end(struct running *c, const struct remote_calls *calls)
{
	int status = 0;

	if (clock_monotonic_us() >= c->until_us) {
		process_end(c->pid, true, END_US, &status);
		end_job(c, -ETIMEDOUT, -1, calls);
		return;
	}
	if (waitpid(c->pid, &status, WNOHANG) != c->pid)
		return;
	while (c->out >= 0 && poll(&(struct pollfd){ .fd = c->out, .events = POLLIN }, 1, 0) > 0 &&
	       clock_monotonic_us() < c->until_us)
		read_output(c, calls);
	if (c->out >= 0 && c->length > 0)
		take_line(c, calls);
	status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	end_job(c, status == 0 ? 0 : -EIO, status, calls);
}

static void cancel_all(struct running *list, size_t room, const struct remote_calls *calls)
{
	int status;

	for (size_t i = 0; i < room; i++)
		if (list[i].job)
			kill(-list[i].pid, SIGTERM);
	for (size_t i = 0; i < room; i++) {
		if (!list[i].job)
			continue;
		process_end(list[i].pid, true, END_US, &status);
		end_job(&list[i], -ECANCELED, -1, calls);
	}
}

/* ---- the loop ---- */

static bool take_signal(struct remote *r)
{
	struct signalfd_siginfo info;

	if (read(r->signals, &info, sizeof(info)) == sizeof(info))
		r->is_stopped = true;
	return r->is_stopped;
}

/* Waits until a signal or output arrives, or a command can take input, but for TURN_MS at most.
 * Then serves all commands, and ends the jobs whose commands have ended or are out of time. */
static void turn(struct remote *r, struct running *list, size_t room,
		 const struct remote_calls *calls)
{
	struct pollfd *p = alloc_array(2 * room + 1, sizeof(*p));

	p[0] = (struct pollfd){ .fd = r->signals, .events = POLLIN };
	for (size_t i = 0; i < room; i++) {
		const struct running *c = &list[i];

		p[1 + 2 * i] = (struct pollfd){ .fd = c->job ? c->out : -1, .events = POLLIN };
		p[2 + 2 * i] = (struct pollfd){ .fd = c->job && has_input(c) ? c->in : -1,
						.events = POLLOUT };
		if (c->job && c->in >= 0 && !has_input(c) && !c->job->is_endless)
			close_fd(&list[i].in);
	}
	poll(p, 2 * room + 1, TURN_MS);
	for (size_t i = 0; i < room; i++) {
		if (list[i].job && list[i].in >= 0 && p[2 + 2 * i].revents)
			write_input(&list[i]);
		if (list[i].job && list[i].out >= 0 && p[1 + 2 * i].revents)
			read_output(&list[i], calls);
		if (list[i].job)
			check_end(&list[i], calls);
	}
	free(p);
}

/* Returns true if fewer than LOGINS connections log in. */
static bool may_log_in(const struct running *list, size_t room)
{
	int64_t now_us = clock_monotonic_us();
	int n = 0;

	for (size_t i = 0; i < room; i++)
		n += list[i].job && !list[i].job->has_answered &&
		     now_us - list[i].since_us < LOGIN_US;
	return n < LOGINS;
}

int remote_run(struct remote *r, struct remote_job *jobs, size_t n, int64_t limit_us,
	       const struct remote_calls *calls, struct error *err)
{
	const size_t room = n > 0 && jobs[0].is_endless ? n : PARALLEL;
	struct running *list = alloc_array(room, sizeof(*list));
	size_t next = 0, live = 0;
	int rc = 0;

	while (rc == 0 && (next < n || live > 0) && !take_signal(r)) {
		for (size_t i = 0; i < room && next < n && rc == 0; i++) {
			if (list[i].job)
				continue;
			if (!may_log_in(list, room))
				break;
			rc = start_job(r, &list[i], &jobs[next], limit_us, err);
			if (rc == 0 && calls->turn)
				calls->turn(calls->owner, &jobs[next], false);
			next++;
		}
		turn(r, list, room, calls);
		live = 0;
		for (size_t i = 0; i < room; i++)
			live += list[i].job != NULL;
	}
	cancel_all(list, room, calls);
	for (; next < n; next++) {
		jobs[next].rc = -ECANCELED;
		snprintf(jobs[next].why, sizeof(jobs[next].why), "not asked");
	}
	free(list);
	if (rc == 0 && r->is_stopped)
		rc = error_set(err, -EINTR,
			       "ended by a signal; the same command goes on from here");
	return rc;
}

bool remote_is_unreachable(const struct remote_job *job)
{
	return !job->has_answered && job->host->target[0] &&
	       (job->status == SSH_FAILED || job->rc == -ETIMEDOUT);
}

int remote_sleep(struct remote *r, int64_t us)
{
	poll(&(struct pollfd){ .fd = r->signals, .events = POLLIN }, 1, (int)(us / 1000));
	return take_signal(r) ? -EINTR : 0;
}

void remote_free(struct remote *r)
{
	if (!r)
		return;
	connections_close(&r->connections);
	if (r->signals >= 0)
		close(r->signals);
	free(r);
}
