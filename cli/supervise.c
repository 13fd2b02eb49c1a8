/* A play with a cast: children are started, their ends noted by SIGCHLD, the controller's
 * orders read from a pipe. One loop waits for any of it and then takes one turn; how all of
 * it ends is a row of acts (advance_act), each with a deadline. */
#include "cli/supervise.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	LEAVE_US = 20000000, /* for the controller to have a checkpoint written, and close its store */
	PART_US = 2000000,  /* for agents to end as the controller told them */
	TERM_US = 1000000,  /* between SIGTERM and SIGKILL */
	LOGS_MS = 1000,    /* between looks at how long logs are */
	LOG_MOST = 16 << 20,
	ECHO_MS = 200,      /* between looks at the controller's log */
	RESUME_MOST = 5,    /* times in a row, each having lived less than */
	RESUME_US = 5000000
};

enum act {
	PLAYING,
	LEAVING /* controller asked to end */,
	PARTING /* controller gone */,
	TERMINATING
};

struct play {
	struct cast *cast;
	const struct log *log;
	enum act act;
	int64_t deadline_us;     /* of every act but PLAYING */
	int signals;             /* signalfd */
	sigset_t was;            /* mask before */
	struct termios terminal; /* as it was */
	bool has_terminal;
	char line[64]; /* an order half read */
	size_t line_length;
	bool orders_open;
	int echo;         /* the controller's log; -1 */
	bool over;        /* the controller has said that it ends the run */
	unsigned resumed; /* times in a row */
	int64_t resumed_us;
	struct error gave_up; /* text "" unless every agent ended by itself */
};

static const struct child_start agent_start = { .pass_fd = -1, .dies_by = SIGKILL };

static void start_agent(struct play *p, uint32_t i)
{
	struct error err;

	if (p->cast->agents[i].pid > 0 || p->act != PLAYING)
		return;
	if (child_start(&p->cast->agents[i], &agent_start, &err) != 0)
		log_line(p->log, LOG_ERROR, "agent %u: %s", i, err.text);
	else
		log_line(p->log, LOG_INFO, "agent %u started, process %ld", i,
			 (long)p->cast->agents[i].pid);
}

static int start_controller(struct play *p, struct error *err)
{
	struct cast *c = p->cast;
	struct child_start how = { .keep_stdout = c->headless,
				   .pass_fd = c->orders_to,
				   .dies_by = SIGTERM };
	int rc = child_start(&c->controller, &how, err);

	if (rc == 0)
		log_line(p->log, LOG_INFO, "controller started, process %ld",
			 (long)c->controller.pid);
	return rc;
}

/* Whether there is something to go on with. Where nothing was recorded yet, only a crash is begun again: what a start
 * failed for it would fail for again. */
static bool can_resume(const struct play *p)
{
	const struct cast *c = p->cast;

	if (p->act != PLAYING || p->over || c->resume.n == 0)
		return false;
	if (WIFSIGNALED(c->controller.status))
		return true;
	return WEXITSTATUS(c->controller.status) != 0 && (!c->record || access(c->record, F_OK) == 0);
}

/* After kill -9, a crash, the end of memory, files or disk: what is committed is in the store, and agents wait.
 * One that keeps ending is let go. */
static void resume_controller(struct play *p)
{
	struct cast *c = p->cast;
	int64_t now = clock_monotonic_us();
	struct error err;

	if (!can_resume(p))
		return;
	p->resumed = now - p->resumed_us < RESUME_US ? p->resumed + 1 : 1;
	p->resumed_us = now;
	if (p->resumed > RESUME_MOST) {
		log_line(p->log, LOG_ERROR, "the controller ended %d times in a row",
			 RESUME_MOST);
		return;
	}
	if (c->controller.args.list != c->resume.list &&
	    (!c->record || access(c->record, F_OK) == 0)) {
		args_free(&c->controller.args);
		c->controller.args = c->resume;
	}
	if (start_controller(p, &err) != 0)
		log_line(p->log, LOG_ERROR, "%s", err.text);
}

static int start_all(struct play *p, struct error *err)
{
	struct cast *c = p->cast;
	struct child_start console = { .terminal = true, .pass_fd = -1, .dies_by = SIGTERM };
	int rc = start_controller(p, err);

	if (rc != 0)
		return rc;
	if (c->echo)
		p->echo = open(c->controller.log, O_RDONLY | O_CLOEXEC);
	if (c->console.args.n > 0)
		rc = child_start(&c->console, &console, err);
	for (uint32_t i = 0; rc == 0 && i < c->n_agents; i++)
		start_agent(p, i);
	return rc;
}

/* ---- orders ---- */

static void obey_request(struct play *p, const char *line)
{
	unsigned node;
	char verb[8], rest;

	if (strcmp(line, "end") == 0) {
		p->over = true;
		return;
	}
	if (sscanf(line, "%7s %u%c", verb, &node, &rest) != 2 || node >= p->cast->n_agents) {
		log_line(p->log, LOG_WARN, "the controller's order \"%s\" makes no sense",
			 line);
		return;
	}
	log_line(p->log, LOG_INFO, "ordered: %s", line);
	if (strcmp(verb, "start") == 0)
		start_agent(p, node);
	else if (strcmp(verb, "kill") == 0)
		child_signal(&p->cast->agents[node], SIGKILL);
	else if (strcmp(verb, "wake") == 0)
		child_signal(&p->cast->agents[node], SIGCONT);
}

/* A line too long to be an order is cut, and makes no sense. */
static void take_orders(struct play *p)
{
	char bytes[4096];
	ssize_t n = read(p->cast->orders, bytes, sizeof(bytes));

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		p->orders_open = false;
	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] == '\n') {
			p->line[p->line_length] = '\0';
			obey_request(p, p->line);
			p->line_length = 0;
		} else if (p->line_length < sizeof(p->line) - 1) {
			p->line[p->line_length++] = bytes[i];
		}
	}
}

/* ---- endings ---- */

static void enter_act(struct play *p, enum act act, int64_t wait_us)
{
	p->act = act;
	p->deadline_us = clock_monotonic_us() + wait_us;
}

static void leave_act(struct play *p)
{
	if (p->act != PLAYING)
		return;
	child_signal(&p->cast->console, SIGTERM);
	child_signal(&p->cast->controller, SIGTERM);
	enter_act(p, LEAVING, LEAVE_US);
}

static void signal_agents(struct play *p, int sig)
{
	for (uint32_t i = 0; i < p->cast->n_agents; i++) {
		child_signal(&p->cast->agents[i], sig);
		/* A stopped process takes SIGTERM only once it goes on. */
		if (sig == SIGTERM)
			child_signal(&p->cast->agents[i], SIGCONT);
	}
}

static void kill_all(struct play *p)
{
	child_signal(&p->cast->console, SIGKILL);
	child_signal(&p->cast->controller, SIGKILL);
	signal_agents(p, SIGKILL);
}

static bool all_gone(const struct cast *c)
{
	if (c->controller.pid > 0 || c->console.pid > 0)
		return false;
	for (uint32_t i = 0; i < c->n_agents; i++)
		if (c->agents[i].pid > 0)
			return false;
	return true;
}

/* The end has acts: the console and the controller first, so that the store is closed in order;
 * then the agents by themselves; then by SIGTERM; then by SIGKILL. */
static void advance_act(struct play *p)
{
	bool late = p->act != PLAYING && clock_monotonic_us() >= p->deadline_us;

	if ((p->act == PLAYING || p->act == LEAVING) && p->cast->controller.pid == 0) {
		child_signal(&p->cast->console, SIGTERM);
		enter_act(p, PARTING, PART_US);
	} else if (p->act == LEAVING && late) {
		log_line(p->log, LOG_WARN, "the controller does not end: killed");
		kill_all(p);
		enter_act(p, TERMINATING, TERM_US);
	} else if (p->act == PARTING && late) {
		child_signal(&p->cast->console, SIGTERM);
		signal_agents(p, SIGTERM);
		enter_act(p, TERMINATING, TERM_US);
	} else if (p->act == TERMINATING && late) {
		kill_all(p);
		enter_act(p, TERMINATING, TERM_US);
	}
}

/* All agents ended by themselves and with an error: something is wrong with all of them alike
 * (a library, the device), and nobody is left who could train. */
static void check_gave_up(struct play *p)
{
	struct cast *c = p->cast;
	char how[64], words[256];

	if (p->act != PLAYING)
		return;
	for (uint32_t i = 0; i < c->n_agents; i++) {
		const struct child *a = &c->agents[i];

		if (a->pid > 0 || WIFSIGNALED(a->status) || WEXITSTATUS(a->status) == 0)
			return;
	}
	child_how_it_ended(&c->agents[0], how, sizeof(how));
	child_last_words(&c->agents[0], words, sizeof(words));
	error_set(&p->gave_up, -ECHILD, "every agent has ended; agent 0 with %s: %s", how,
		  *words ? words : "it said nothing");
	leave_act(p);
}

static void note_child_ended(struct play *p, pid_t pid, int status)
{
	struct cast *c = p->cast;
	char how[64];

	if (child_ended(&c->controller, pid, status)) {
		take_orders(p); /* its last */
		child_how_it_ended(&c->controller, how, sizeof(how));
		log_line(p->log, LOG_INFO, "controller ended: %s", how);
		resume_controller(p);
		return;
	}
	if (child_ended(&c->console, pid, status)) {
		child_how_it_ended(&c->console, how, sizeof(how));
		log_line(p->log, LOG_INFO, "console ended: %s", how);
		leave_act(p);
		return;
	}
	for (uint32_t i = 0; i < c->n_agents; i++) {
		if (!child_ended(&c->agents[i], pid, status))
			continue;
		child_how_it_ended(&c->agents[i], how, sizeof(how));
		log_line(p->log, LOG_INFO, "agent %u ended: %s", i, how);
		check_gave_up(p);
		return;
	}
}

static void take_signals(struct play *p)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	if (read(p->signals, &info, sizeof(info)) == sizeof(info) &&
	    info.ssi_signo != SIGCHLD) {
		log_line(p->log, LOG_INFO, "%s", strsignal((int)info.ssi_signo));
		/* A person who asks twice is in a hurry. */
		if (p->act == PLAYING)
			leave_act(p);
		else
			kill_all(p);
	}
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		note_child_ended(p, pid, status);
}

/* ---- the whole ---- */

static void echo_console(struct play *p)
{
	char bytes[4096];
	struct stat st;
	ssize_t n;

	if (p->echo >= 0 && fstat(p->echo, &st) == 0 && lseek(p->echo, 0, SEEK_CUR) > st.st_size)
		(void)lseek(p->echo, 0, SEEK_SET); /* the console began anew */
	while (p->echo >= 0 && (n = read(p->echo, bytes, sizeof(bytes))) > 0) {
		if (write(STDOUT_FILENO, bytes, (size_t)n) >= 0)
			continue;
		close(p->echo); /* nobody listens any more */
		p->echo = -1;
	}
}

static void ending_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

void supervise_hold_signals(void)
{
	sigset_t set;

	ending_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static int begin_play(struct play *p, struct error *err)
{
	sigset_t set;

	p->has_terminal = tcgetattr(STDIN_FILENO, &p->terminal) == 0;
	ending_signals(&set);
	sigaddset(&set, SIGCHLD);
	/* Putting the terminal back must not stop us. */
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, &p->was);
	sigdelset(&set, SIGTTOU);
	p->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p->signals < 0) {
		sigprocmask(SIG_SETMASK, &p->was, NULL);
		return error_set(err, -errno, "signalfd: %s", strerror(errno));
	}
	p->orders_open = true;
	return 0;
}

/* A console that was killed could not put the screen back. The sequences leave the other
 * screen, show the cursor, and end colours, mouse reports and bracketed paste. */
static void finish_play(struct play *p)
{
	static const char reset[] =
		"\033[?1049l\033[?25h\033[0m\033[?1000l\033[?1006l\033[?2004l\r\n";
	const struct child *console = &p->cast->console;

	if (p->has_terminal && console->started) {
		if (WIFSIGNALED(console->status) && isatty(STDOUT_FILENO) &&
		    write(STDOUT_FILENO, reset, sizeof(reset) - 1) < 0)
			log_line(p->log, LOG_WARN, "the terminal: %s", strerror(errno));
		tcsetattr(STDIN_FILENO, TCSANOW, &p->terminal);
	}
	if (p->echo >= 0)
		close(p->echo);
	close(p->signals);
	sigprocmask(SIG_SETMASK, &p->was, NULL);
}

static void bound_logs(const struct cast *c)
{
	const off_t most = c->log_most ? c->log_most : LOG_MOST;

	child_bound_log(&c->controller, most);
	child_bound_log(&c->console, most);
	for (uint32_t i = 0; i < c->n_agents; i++)
		child_bound_log(&c->agents[i], most);
}

static void supervise_turn(struct play *p)
{
	struct pollfd fds[] = { { .fd = p->signals, .events = POLLIN },
				{ .fd = p->orders_open ? p->cast->orders : -1,
				  .events = POLLIN } };
	int wait_ms = p->echo >= 0 ? ECHO_MS : LOGS_MS;

	if (p->act != PLAYING) {
		int64_t left = p->deadline_us - clock_monotonic_us();

		wait_ms = left > 0 ? (int)(left / 1000 + 1) : 0;
	}
	bound_logs(p->cast);
	if (poll(fds, 2, wait_ms) > 0) {
		if (fds[0].revents)
			take_signals(p);
		if (fds[1].revents)
			take_orders(p);
	}
	echo_console(p);
	advance_act(p);
}

int supervise(struct cast *cast, const struct log *log, int *status, struct error *err)
{
	struct play p = { .cast = cast, .log = log, .act = PLAYING, .echo = -1 };
	int rc = begin_play(&p, err);

	if (rc != 0)
		return rc;
	rc = start_all(&p, err);
	if (rc != 0)
		leave_act(&p);
	while (!all_gone(cast) || p.act == PLAYING)
		supervise_turn(&p);
	finish_play(&p);
	if (rc == 0 && p.gave_up.text[0])
		rc = error_set(err, -ECHILD, "%s", p.gave_up.text);
	*status = child_exit_status(&cast->controller);
	return rc;
}
