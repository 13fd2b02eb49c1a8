/* The supervisor of a demo's processes. One loop waits for signals (SIGCHLD too) and for the
 * controller's orders on a pipe, and handles them in turn.
 *
 * The end of a run has phases, each with a deadline (advance_phase):
 *
 *     phase       left when                                 then
 *     RUNNING     a signal arrives or the console ends      SIGTERM to console and controller
 *                 the controller ends for good              SIGTERM to the console
 *     STOPPING    the controller has ended                  agents may end by themselves
 *                 LEAVE_US have passed                      SIGKILL to all
 *     PARTING     PART_US have passed                       SIGTERM to console and agents
 *     KILLING     TERM_US have passed                       SIGKILL to all, again and again
 *
 * The controller ends first, so that it can write a checkpoint and close its store while the
 * agents still run.
 *
 * Ctrl-Z stops only the console and this process. The shell prints its prompt as soon as this
 * process stops. Therefore this process stops after the console, which first leaves the alternate
 * screen. This process also stops when the system stops a console that uses the terminal in the
 * background (bg). If this process went on running, the shell would believe that the job runs,
 * and fg would not continue the console.
 */
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
#include "base/process/signals.h"

enum {
	/* Time limit for the controller to write a checkpoint and close its store. */
	LEAVE_US = 20000000,
	/* Time limit for the agents to end by themselves after the controller's message STOP. */
	PART_US = 2000000,
	TERM_US = 1000000, /* time between SIGTERM and SIGKILL */
	LOGS_MS = 1000,    /* interval at which the sizes of the logs are checked */
	LOG_MOST = 16 << 20,
	ECHO_MS = 200, /* interval at which the controller's log is copied to stdout */
	/* Largest number of successive restarts of a controller. Two restarts count as successive
	 * if less than RESUME_US lies between them. */
	RESUME_MOST = 5,
	RESUME_US = 5000000
};

enum phase { RUNNING, STOPPING, PARTING, KILLING };

/* The pipe from which the controller's orders are read, line by line. */
struct orders {
	char line[64]; /* an order whose line has not arrived completely */
	size_t length;
	bool open;
	bool run_is_over; /* the order "end" has arrived */
};

struct supervisor {
	struct processes *processes;
	const struct log *log;
	enum phase phase;
	/* time at which the present phase ends; unused in the phase RUNNING */
	int64_t deadline_us;
	int signals;         /* descriptor from which signals are read (signalfd) */
	sigset_t old_mask;
	struct termios terminal; /* the terminal's settings before the run */
	bool has_terminal;
	struct orders orders;
	int echo;            /* descriptor from which the controller's log is read; -1: none */
	unsigned n_restarts; /* number of successive restarts */
	int64_t restarted_us;
	/* Error of an agent, if every agent has ended by itself with an error; its text is ""
	 * otherwise. */
	struct error agents_error;
};

static const struct child_start agent_start = { .pass_fd = -1, .parent_death_signal = SIGKILL };

static void start_agent(struct supervisor *p, uint32_t i)
{
	struct error err;

	if (p->processes->agents[i].pid > 0 || p->phase != RUNNING)
		return;
	if (child_start(&p->processes->agents[i], &agent_start, &err) != 0)
		log_line(p->log, LOG_ERROR, "agent %u: %s", i, err.text);
	else
		log_line(p->log, LOG_INFO, "agent %u started, process %ld", i,
			 (long)p->processes->agents[i].pid);
}

static int start_controller(struct supervisor *p, struct error *err)
{
	struct processes *c = p->processes;
	struct child_start how = { .keep_stdout = c->headless,
				   .pass_fd = c->orders_to,
				   .parent_death_signal = SIGTERM };
	int rc = child_start(&c->controller, &how, err);

	if (rc == 0)
		log_line(p->log, LOG_INFO, "controller started, process %ld",
			 (long)c->controller.pid);
	return rc;
}

/* Returns true if the controller should be restarted. A controller that was killed by a signal is
 * always restarted. A controller that failed is restarted only if the run has a record: a start
 * that failed would fail again. */
static bool can_resume(const struct supervisor *p)
{
	const struct processes *c = p->processes;

	if (p->phase != RUNNING || p->orders.run_is_over || c->resume.n == 0)
		return false;
	if (WIFSIGNALED(c->controller.status))
		return true;
	return WEXITSTATUS(c->controller.status) != 0 &&
	       (!c->record || access(c->record, F_OK) == 0);
}

/* Restarts a controller that was killed, crashed, or ran out of memory, file descriptors or disk.
 * The store has every commit, so no commit is lost. The agents wait for the new controller. A
 * controller that ends again and again is not restarted. */
static void resume_controller(struct supervisor *p)
{
	struct processes *c = p->processes;
	int64_t now = clock_monotonic_us();
	struct error err;

	if (!can_resume(p))
		return;
	p->n_restarts = now - p->restarted_us < RESUME_US ? p->n_restarts + 1 : 1;
	p->restarted_us = now;
	if (p->n_restarts > RESUME_MOST) {
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

/* Returns how many agents start with the run. */
static uint32_t count_started(const struct processes *c)
{
	return c->n_started ? c->n_started : c->n_agents;
}

static int start_all(struct supervisor *p, struct error *err)
{
	struct processes *c = p->processes;
	struct child_start console = { .terminal = true,
				       .pass_fd = -1,
				       .parent_death_signal = SIGTERM };
	int rc = start_controller(p, err);

	if (rc != 0)
		return rc;
	if (c->echo)
		p->echo = open(c->controller.log, O_RDONLY | O_CLOEXEC);
	if (c->console.args.n > 0)
		rc = child_start(&c->console, &console, err);
	for (uint32_t i = 0; rc == 0 && i < count_started(c); i++)
		start_agent(p, i);
	return rc;
}

/* ---- orders ---- */

static void obey_request(struct supervisor *p, const char *line)
{
	unsigned node;
	char verb[8], rest;

	if (strcmp(line, "end") == 0) {
		p->orders.run_is_over = true;
		return;
	}
	if (sscanf(line, "%7s %u%c", verb, &node, &rest) != 2 || node >= p->processes->n_agents) {
		log_line(p->log, LOG_WARN, "the controller's order \"%s\" is unknown",
			 line);
		return;
	}
	log_line(p->log, LOG_INFO, "ordered: %s", line);
	if (strcmp(verb, "start") == 0)
		start_agent(p, node);
	else if (strcmp(verb, "kill") == 0)
		child_signal(&p->processes->agents[node], SIGKILL);
	else if (strcmp(verb, "wake") == 0)
		child_signal(&p->processes->agents[node], SIGCONT);
}

/* Reads orders from the pipe. If a line is too long for an order, its rest is dropped; obey_request
 * then rejects the line as unknown. */
static void take_orders(struct supervisor *p)
{
	char bytes[4096];
	ssize_t n = read(p->processes->orders, bytes, sizeof(bytes));

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		p->orders.open = false;
	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] == '\n') {
			p->orders.line[p->orders.length] = '\0';
			obey_request(p, p->orders.line);
			p->orders.length = 0;
		} else if (p->orders.length < sizeof(p->orders.line) - 1) {
			p->orders.line[p->orders.length++] = bytes[i];
		}
	}
}

/* ---- endings ---- */

static void enter_phase(struct supervisor *p, enum phase phase, int64_t wait_us)
{
	p->phase = phase;
	p->deadline_us = clock_monotonic_us() + wait_us;
}

static void begin_stopping(struct supervisor *p)
{
	if (p->phase != RUNNING)
		return;
	child_signal(&p->processes->console, SIGTERM);
	child_signal(&p->processes->controller, SIGTERM);
	enter_phase(p, STOPPING, LEAVE_US);
}

static void signal_agents(struct supervisor *p, int sig)
{
	for (uint32_t i = 0; i < p->processes->n_agents; i++) {
		child_signal(&p->processes->agents[i], sig);
		/* SIGCONT, because a stopped process would not handle SIGTERM. */
		if (sig == SIGTERM)
			child_signal(&p->processes->agents[i], SIGCONT);
	}
}

static void kill_all(struct supervisor *p)
{
	child_signal(&p->processes->console, SIGKILL);
	child_signal(&p->processes->controller, SIGKILL);
	signal_agents(p, SIGKILL);
}

static bool all_ended(const struct processes *c)
{
	if (c->controller.pid > 0 || c->console.pid > 0)
		return false;
	for (uint32_t i = 0; i < c->n_agents; i++)
		if (c->agents[i].pid > 0)
			return false;
	return true;
}

/* Changes the phase as the table at the top of this file says. */
static void advance_phase(struct supervisor *p)
{
	bool late = p->phase != RUNNING && clock_monotonic_us() >= p->deadline_us;

	if ((p->phase == RUNNING || p->phase == STOPPING) && p->processes->controller.pid == 0) {
		child_signal(&p->processes->console, SIGTERM);
		enter_phase(p, PARTING, PART_US);
	} else if (p->phase == STOPPING && late) {
		log_line(p->log, LOG_WARN, "the controller does not end: it is killed");
		kill_all(p);
		enter_phase(p, KILLING, TERM_US);
	} else if (p->phase == PARTING && late) {
		child_signal(&p->processes->console, SIGTERM);
		signal_agents(p, SIGTERM);
		enter_phase(p, KILLING, TERM_US);
	} else if (p->phase == KILLING && late) {
		kill_all(p);
		enter_phase(p, KILLING, TERM_US);
	}
}

/* Ends the run if every agent has ended by itself with an error. No agent is left to train,
 * and the cause is probably common to all agents, such as a library or the device. */
static void check_gave_up(struct supervisor *p)
{
	struct processes *c = p->processes;
	char how[64], words[256];

	if (p->phase != RUNNING)
		return;
	for (uint32_t i = 0; i < count_started(c); i++) {
		const struct child *a = &c->agents[i];

		if (a->pid > 0 || WIFSIGNALED(a->status) || WEXITSTATUS(a->status) == 0)
			return;
	}
	child_ending_text(&c->agents[0], how, sizeof(how));
	child_last_line(&c->agents[0], words, sizeof(words));
	error_set(&p->agents_error, -ECHILD, "every agent has ended; agent 0 with %s: %s", how,
		  *words ? words : "its log is empty");
	begin_stopping(p);
}

static void take_child_end(struct supervisor *p, pid_t pid, int status)
{
	struct processes *c = p->processes;
	char how[64];

	if (child_ended(&c->controller, pid, status)) {
		take_orders(p); /* the controller may have written orders just before its end */
		child_ending_text(&c->controller, how, sizeof(how));
		log_line(p->log, LOG_INFO, "controller ended: %s", how);
		resume_controller(p);
		return;
	}
	if (child_ended(&c->console, pid, status)) {
		child_ending_text(&c->console, how, sizeof(how));
		log_line(p->log, LOG_INFO, "console ended: %s", how);
		begin_stopping(p);
		return;
	}
	for (uint32_t i = 0; i < c->n_agents; i++) {
		if (!child_ended(&c->agents[i], pid, status))
			continue;
		child_ending_text(&c->agents[i], how, sizeof(how));
		log_line(p->log, LOG_INFO, "agent %u ended: %s", i, how);
		check_gave_up(p);
		return;
	}
}

/* Stops this process as Ctrl-Z would, until a signal lets this process continue. Then lets the
 * console continue, too. */
static void stop(struct supervisor *p)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP); /* SIGTSTP is blocked, and takes effect when it is unblocked */
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	child_signal(&p->processes->console, SIGCONT);
}

/* Handles SIGTSTP. Without a console, stops this process. A console must stop first; this process
 * then follows (stop_after_console). If the signal came from the terminal, the console has received
 * it too, and this function sends no second signal. During the console's handler, a second signal
 * would stop the console again after fg. */
static void request_stop(struct supervisor *p, bool is_from_terminal)
{
	if (p->processes->console.pid == 0)
		stop(p);
	else if (!is_from_terminal)
		child_signal(&p->processes->console, SIGTSTP);
}

/* Stops this process if the terminal has stopped the console. A SIGSTOP, which only a program can
 * send to the console, does not count. */
static void stop_after_console(struct supervisor *p)
{
	const struct child *console = &p->processes->console;
	siginfo_t info = { .si_pid = 0 };

	if (console->pid == 0 || signals_ignored(SIGTSTP))
		return;
	if (waitid(P_PID, (id_t)console->pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid > 0 &&
	    info.si_status != SIGSTOP)
		stop(p);
}

static void take_signals(struct supervisor *p)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	if (read(p->signals, &info, sizeof(info)) != sizeof(info)) {
		/* An earlier call has already read this signal. */
	} else if (info.ssi_signo == SIGTSTP) {
		request_stop(p, info.ssi_code == SI_KERNEL);
	} else if (info.ssi_signo != SIGCHLD) {
		log_line(p->log, LOG_INFO, "%s", strsignal((int)info.ssi_signo));
		/* A second signal ends all processes at once. */
		if (p->phase == RUNNING)
			begin_stopping(p);
		else
			kill_all(p);
	}
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		take_child_end(p, pid, status);
}

/* ---- the whole ---- */

static void echo_controller_log(struct supervisor *p)
{
	char bytes[4096];
	struct stat st;
	ssize_t n;

	if (p->echo >= 0 && fstat(p->echo, &st) == 0 && lseek(p->echo, 0, SEEK_CUR) > st.st_size)
		/* The log was rotated; read it from its new beginning. */
		(void)lseek(p->echo, 0, SEEK_SET);
	while (p->echo >= 0 && (n = read(p->echo, bytes, sizeof(bytes))) > 0) {
		if (write(STDOUT_FILENO, bytes, (size_t)n) >= 0)
			continue;
		close(p->echo); /* stdout was closed; stop copying the log */
		p->echo = -1;
	}
}

void supervise_hold_signals(void)
{
	sigset_t set;

	signals_ending(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static int block_signals(struct supervisor *p, struct error *err)
{
	sigset_t set;

	p->has_terminal = tcgetattr(STDIN_FILENO, &p->terminal) == 0;
	signals_ending(&set);
	sigaddset(&set, SIGCHLD);
	if (!signals_ignored(SIGTSTP))
		sigaddset(&set, SIGTSTP);
	/* While SIGTTOU is blocked, a process in the background can restore the terminal's
	 * settings. If SIGTTOU were not blocked, it would stop the process. */
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, &p->old_mask);
	sigdelset(&set, SIGTTOU);
	p->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p->signals < 0) {
		sigprocmask(SIG_SETMASK, &p->old_mask, NULL);
		return error_set(err, -errno, "signalfd: %s", strerror(errno));
	}
	p->orders.open = true;
	return 0;
}

/* Restores the terminal. If the console was killed, this function writes the sequences that the
 * console could not write: they leave the alternate screen, show the cursor, and end colours, mouse
 * reports and bracketed paste. */
static void restore_terminal(struct supervisor *p)
{
	static const char reset[] =
		"\033[?1049l\033[?25h\033[0m\033[?1000l\033[?1006l\033[?2004l\r\n";
	const struct child *console = &p->processes->console;

	if (p->has_terminal && console->started) {
		if (WIFSIGNALED(console->status) && isatty(STDOUT_FILENO) &&
		    write(STDOUT_FILENO, reset, sizeof(reset) - 1) < 0)
			log_line(p->log, LOG_WARN, "cannot write to the terminal: %s",
				 strerror(errno));
		tcsetattr(STDIN_FILENO, TCSANOW, &p->terminal);
	}
	if (p->echo >= 0)
		close(p->echo);
	close(p->signals);
	sigprocmask(SIG_SETMASK, &p->old_mask, NULL);
}

static void rotate_logs(const struct processes *c)
{
	const off_t most = c->log_most ? c->log_most : LOG_MOST;

	child_rotate_log(&c->controller, most);
	child_rotate_log(&c->console, most);
	for (uint32_t i = 0; i < c->n_agents; i++)
		child_rotate_log(&c->agents[i], most);
}

static void supervise_turn(struct supervisor *p)
{
	struct pollfd fds[] = { { .fd = p->signals, .events = POLLIN },
				{ .fd = p->orders.open ? p->processes->orders : -1,
				  .events = POLLIN } };
	int wait_ms = p->echo >= 0 ? ECHO_MS : LOGS_MS;

	if (p->phase != RUNNING) {
		int64_t left = p->deadline_us - clock_monotonic_us();

		wait_ms = left > 0 ? (int)(left / 1000 + 1) : 0;
	}
	rotate_logs(p->processes);
	if (poll(fds, 2, wait_ms) > 0) {
		if (fds[0].revents)
			take_signals(p);
		if (fds[1].revents)
			take_orders(p);
	}
	echo_controller_log(p);
	advance_phase(p);
	stop_after_console(p);
}

int supervise(struct processes *processes, const struct log *log, int *status, struct error *err)
{
	struct supervisor p = { .processes = processes, .log = log, .phase = RUNNING, .echo = -1 };
	int rc = block_signals(&p, err);

	if (rc != 0)
		return rc;
	rc = start_all(&p, err);
	if (rc != 0)
		begin_stopping(&p);
	while (!all_ended(processes) || p.phase == RUNNING)
		supervise_turn(&p);
	restore_terminal(&p);
	if (rc == 0 && p.agents_error.text[0])
		rc = error_set(err, -ECHILD, "%s", p.agents_error.text);
	*status = child_exit_status(&processes->controller);
	return rc;
}
