/* skippipe-console: the operator's console. It has one thread and one poll loop. It exchanges only
 * messages with the controller. Therefore a console can start, stop and crash without any effect on
 * the run. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/output.h"
#include "base/process/signals.h"
#include "tui/console.h"
#include "tui/invited.h"
#include "tui/manual.h"
#include "tui/screen/terminal.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, LINGER_US = 1000000, END_S = 2 };

static volatile sig_atomic_t ended; /* a signal has arrived that ends the program */

static void end_soon(int number)
{
	(void)number;
	ended = 1;
	alarm(END_S);
}

/* Handles SIGALRM, which arrives if the program does not end soon after a signal that ends it.
 * The program waits in a write, because the terminal takes no output, for example over a stalled
 * ssh. The handler discards this output, so that the program can restore the terminal and end. An
 * output that is not a terminal needs no restoring. */
static void discard_output(int number)
{
	(void)number;
	tcflow(STDOUT_FILENO, TCOON);
	if (tcflush(STDOUT_FILENO, TCOFLUSH) != 0)
		_exit(EXIT_FAILED);
	alarm(1);
}

static void handle(int number, void (*handler)(int))
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_RESTART };

	sigaction(number, &act, NULL);
}

/* Blocks the signals that end the loop, so that the loop handles them in order. The loop unblocks
 * them while it draws and prints, because a write may block for ever. ncurses handles WINCH;
 * terminal.c handles the signals of crashes. */
static int hold_signals(sigset_t *set)
{
	signals_ending(set);
	sigprocmask(SIG_BLOCK, set, NULL);
	for (int number = 1; number < NSIG; number++)
		if (sigismember(set, number) == 1)
			handle(number, end_soon);
	handle(SIGALRM, discard_output);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Waits for the terminal, the controller, a signal or the next deadline. */
static void wait_for_input(struct console *c, int signals)
{
	struct pollfd fds[3] = { { signals, POLLIN, 0 }, { -1, POLLIN, 0 }, { -1, POLLIN, 0 } };
	int64_t left = console_deadline_us(c) - clock_monotonic_us();
	struct signalfd_siginfo info;

	if (c->terminal)
		fds[1].fd = STDIN_FILENO;
	if (c->connection)
		fds[2].fd = connection_fd(c->connection);
	left = left < 0 ? 0 : left > 1000000 ? 1000000 : left;
	poll(fds, 3, (int)((left + 999) / 1000));
	c->now_us = clock_monotonic_us();
	if (c->terminal && (fds[1].revents & (POLLHUP | POLLERR | POLLNVAL)))
		c->hung_up = true;
	if (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		end_soon((int)info.ssi_signo);
}

/* Sends the last commands, such as the end of the run or the return of the lease, and waits until
 * the controller has them, at most LINGER_US. */
static void flush_commands(struct console *c)
{
	int64_t until = clock_monotonic_us() + LINGER_US;

	if (!c->connection || c->hung_up)
		return;
	console_send_commands(c);
	while (!connection_idle(c->connection) && clock_monotonic_us() < until) {
		struct pollfd fd = { connection_fd(c->connection), POLLIN, 0 };

		poll(&fd, 1, 10);
		c->now_us = clock_monotonic_us();
		console_read_messages(c);
	}
}

static void run_loop(struct console *c, int signals, const sigset_t *ending)
{
	while (!c->ui.requests.quit && !c->hung_up && !ended) {
		wait_for_input(c, signals);
		sigprocmask(SIG_UNBLOCK, ending, NULL);
		ui_tick(&c->ui, c->state, c->now_us, clock_wall_us());
		console_read_keys(c);
		console_read_messages(c);
		console_send_commands(c);
		console_do_side_effects(c);
		console_draw(c);
		sigprocmask(SIG_BLOCK, ending, NULL);
	}
	flush_commands(c);
}

static void print_text(enum options_print what)
{
	switch (what) {
	case PRINT_MANUAL:
		manual_page(stdout);
		break;
	case PRINT_KEYS:
		manual_tables(stdout);
		break;
	case PRINT_VERSION:
		puts("skippipe console " SKIPPIPE_VERSION);
		break;
	default:
		options_help(&options_of_console, stdout);
	}
}

/* Parses the options. Prints a text, or opens the console, runs its loop and closes it. */
int main(int argc, char **argv)
{
	struct options options;
	struct console console;
	struct invited invited;
	struct error err = { "" };
	sigset_t ending;
	int signals, rc;

	output_check_at_exit("skippipe console");
	terminal_set_locale();
	if (options_parse(&options, argc, argv, &err) != 0) {
		fprintf(stderr, "skippipe console: %s\n", err.text);
		return EXIT_USAGE;
	}
	if (options.print == PRINT_CHECK) {
		rc = console_check(&options, &err);
		if (rc != 0)
			fprintf(stderr, "%s\n", err.text);
		return rc == 0 ? EXIT_DONE : EXIT_FAILED;
	}
	if (options.print != PRINT_NOTHING) {
		print_text(options.print);
		return EXIT_DONE;
	}
	signals = hold_signals(&ending);
	rc = options.token ? invited_join(&invited, &options, signals, &err) : 0;
	if (rc == 0)
		rc = console_open(&console, &options, &err);
	if (rc != 0) {
		fprintf(stderr, "skippipe console: %s\n",
			err.text[0] ? err.text : strerror(-rc));
		return rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	}
	run_loop(&console, signals, &ending);
	console_close(&console);
	return EXIT_DONE;
}
