/* Tests the console on a pseudo-terminal; the test plays the terminal. The console draws with every
 * TERM, no report acts on the run, and Ctrl-C ends the console. INPUT_SECONDS=60 makes the test
 * send reports for a minute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tui/screen/terminal.h"
#include "tui/tests/golden.h"
#include "tui/tests/reports.h"
#include "tui/views/view.h"

enum { LIMIT_US = 20000000, FRAME_MS = 20 };

/* The console's progress. Its process writes this struct to a pipe after each picture. */
struct progress {
	int rc; /* result of terminal_open */
	bool substituted;
	int columns;
	/* frames: number of pictures. acts: number of commands, dialogs, prompts and requests. */
	uint32_t frames, acts;
};

struct pty {
	pid_t pid;
	int terminal; /* the test's end of the pseudo-terminal */
	int report;   /* descriptor from which the test reads struct progress */
	struct progress last;
};

/* ---- in the console's process ---- */

static uint32_t count_acts(struct ui *u)
{
	uint32_t acts = u->outbox.n + (u->dialog.kind != DIALOG_NONE) +
			(u->prompt.kind != PROMPT_NONE) + u->requests.quit + u->clock.frozen +
			(u->requests.scrub != SCRUB_NONE);

	u->outbox.n = 0;
	return acts;
}

static void take_input(struct terminal *t, struct ui *u, const struct state *s)
{
	struct terminal_event e;

	for (int i = 0; i < 256; i++) {
		terminal_next(t, clock_monotonic_us(), &e);
		if (e.input == INPUT_NONE)
			return;
		if (e.input == INPUT_KEY)
			ui_key(u, s, e.key);
		else if (e.input == INPUT_PASTE)
			ui_paste(u, e.paste);
	}
}

static void run_console(int report)
{
	struct progress p = { 0 };
	struct pollfd fd = { STDIN_FILENO, POLLIN, 0 };
	struct terminal *t;
	struct theme theme;
	struct screen *screen = screen_new(80, 24, false);
	struct state *s;
	struct ui u;
	int w, h;

	theme_plain(&theme);
	s = golden_default(&u);
	strcpy(u.authority.name, "operator");
	strcpy(s->status.lease, "operator");
	s->status.lease_us = 600000000;
	p.rc = terminal_open(&t, &theme, true, NULL);
	/* Removes ncurses' handler; the real program receives the signal through a descriptor. */
	signal(SIGINT, SIG_DFL);
	if (p.rc == 0) {
		p.substituted = terminal_substitute(t) != NULL;
		terminal_mouse(t, true);
	}
	while (write(report, &p, sizeof(p)) == sizeof(p) && p.rc == 0) {
		poll(&fd, 1, FRAME_MS);
		take_input(t, &u, s);
		terminal_size(t, &w, &h);
		if (w != screen_width(screen) || h != screen_height(screen))
			screen_resize(screen, w, h);
		view_draw(screen, s, &u);
		terminal_show(t, screen);
		p.columns = w;
		p.frames++;
		p.acts += count_acts(&u);
	}
	_exit(0);
}

/* ---- in the test's process, which plays the terminal ---- */

static void start(struct pty *y, const char *term)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int pipes[2];

	memset(y, 0, sizeof(*y));
	assert_int_equal(pipe(pipes), 0);
	y->pid = forkpty(&y->terminal, NULL, NULL, &size);
	assert_true(y->pid >= 0);
	if (y->pid == 0) {
		if (term)
			setenv("TERM", term, 1);
		else
			unsetenv("TERM");
		close(pipes[0]);
		run_console(pipes[1]);
	}
	close(pipes[1]);
	y->report = pipes[0];
}

/* Reads the console's output and progress for up to `ms` milliseconds. Returns false if the console
 * has ended. */
static bool watch(struct pty *y, int ms)
{
	struct pollfd fds[2] = { { y->terminal, POLLIN, 0 }, { y->report, POLLIN, 0 } };
	char drawn[65536];

	poll(fds, 2, ms);
	if (fds[0].revents & POLLIN && read(y->terminal, drawn, sizeof(drawn)) < 0)
		return false;
	if (fds[1].revents)
		return read(y->report, &y->last, sizeof(y->last)) == sizeof(y->last);
	return true;
}

static void watch_for(struct pty *y, int64_t us)
{
	int64_t end_us = clock_monotonic_us() + us, left_us;

	while ((left_us = end_us - clock_monotonic_us()) > 0)
		if (!watch(y, (int)(left_us / 1000) + 1))
			return;
}

/* Waits until the console has drawn `more` further pictures. */
static void wait_for_frames(struct pty *y, uint32_t more)
{
	int64_t end_us = clock_monotonic_us() + LIMIT_US;
	uint32_t until = y->last.frames + more;

	while (y->last.frames < until) {
		assert_true(clock_monotonic_us() < end_us);
		assert_true(watch(y, 100));
	}
}

static void send(struct pty *y, const void *bytes, size_t n)
{
	assert_int_equal(write(y->terminal, bytes, n), n);
}

static void press_interrupt(struct pty *y)
{
	int64_t end_us = clock_monotonic_us() + LIMIT_US;
	int status;

	send(y, "\003", 1);
	while (watch(y, 100))
		assert_true(clock_monotonic_us() < end_us);
	assert_int_equal(waitpid(y->pid, &status, 0), y->pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGINT);
	close(y->terminal);
	close(y->report);
}

static void unknown_terminals(void **unused)
{
	static const struct {
		const char *term;
		bool substituted;
	} cases[] = { { "xterm-256color", false }, { "linux", false }, { "vt100", false },
		      { "screen", false },	   { "nonsense", true }, { "xterm-9", true } };
	struct pty y;

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start(&y, cases[i].term);
		wait_for_frames(&y, 3);
		assert_int_equal(y.last.substituted, cases[i].substituted);
		press_interrupt(&y);
	}
	/* Not every system has these terminals in its database. */
	for (const char *const *term = (const char *const[]){ "xterm-kitty", "xterm-ghostty",
							       "foot", "alacritty", "tmux-256color",
							       "rxvt", NULL };
	     *term; term++) {
		start(&y, *term);
		wait_for_frames(&y, 3);
		press_interrupt(&y);
	}
}

/* On a terminal that cannot place the cursor, the console prints plain lines. */
static void incapable_terminals(void **unused)
{
	static const char *const terms[] = { "dumb", "", NULL };
	struct pty y;

	(void)unused;
	for (int i = 0; i < 3; i++) {
		start(&y, terms[i]);
		while (watch(&y, 100))
			;
		assert_int_equal(y.last.rc, -ENOTSUP);
		waitpid(y.pid, NULL, 0);
		close(y.terminal);
		close(y.report);
	}
}

/* ---- colours ---- */

/* Descriptions of terminals with different colours.
 *
 * kind-direct:     red, green and blue, with 8 colours by number
 * kind-direct256:  red, green and blue, with a palette of 256 colours
 * kind-direct12:   red, green and blue with 4 bits each
 * kind-indexed, kind-88, kind-52:  palettes of 256, 88 and 52 colours
 */
static const char kinds[] =
	"kind-common|a test,\n\tam,cols#80,lines#24,pairs#256,clear=\\E[H\\E[J,"
	"cup=\\E[%i%p1%d;%p2%dH,sgr0=\\E[m,op=\\E[39;49m,\n"
	"kind-direct|a test,\n\tRGB,colors#0x1000000,use=kind-common,"
	"setaf=\\E[%?%p1%{8}%<%t3%p1%d%e38:2::%p1%{65536}%/%d:%p1%{256}%/%{255}%&%d:"
	"%p1%{255}%&%d%;m,setab=\\E[48;5;%p1%dm,\n"
	"kind-direct256|a test,\n\tRGB#8,colors#0x1000000,use=kind-common,"
	"setaf=\\E[%?%p1%{256}%<%t38;5;%p1%d%e38:2::%p1%{65536}%/%d:%p1%{256}%/%{255}%&%d:"
	"%p1%{255}%&%d%;m,setab=\\E[48;5;%p1%dm,\n"
	"kind-direct12|a test,\n\tRGB=4/4/4,colors#4096,use=kind-indexed,\n"
	"kind-indexed|a test,\n\tcolors#256,use=kind-common,setaf=\\E[38;5;%p1%dm,"
	"setab=\\E[48;5;%p1%dm,\n"
	"kind-88|a test,\n\tcolors#88,use=kind-indexed,\n"
	"kind-52|a test,\n\tcolors#52,use=kind-indexed,\n"
	"kind-2|a test,\n\tcolors#2,use=kind-indexed,\n";

static void make_terminfo(char folder[64])
{
	char path[96], command[256];
	FILE *f;

	strcpy(folder, "/tmp/skippipe-terminfo-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/kinds", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(kinds, f) >= 0 && fclose(f) == 0);
	snprintf(command, sizeof(command), "tic -x -o %s %s", folder, path);
	assert_int_equal(system(command), 0);
}

/* Draws one cell in the colour, and copies all bytes that the terminal receives to `drawn`. */
static void draw_colour(const char *term, int colour, char *drawn, size_t room)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int terminal, pid = forkpty(&terminal, NULL, NULL, &size);
	size_t n = 0;
	ssize_t more;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct screen *screen = screen_new(80, 24, true);
		struct terminal *t;
		struct theme theme;

		setenv("TERM", term, 1);
		theme_plain(&theme);
		theme.styles[STYLE_FORWARD] =
			(struct theme_style){ .fg = (int16_t)colour, .bg = THEME_DEFAULT };
		if (terminal_open(&t, &theme, true, NULL) != 0)
			_exit(1);
		screen_put(screen, 3, 3, 'X', STYLE_FORWARD);
		terminal_show(t, screen);
		terminal_close(t);
		_exit(0);
	}
	while (n < room - 1 && (more = read(terminal, drawn + n, room - 1 - n)) > 0)
		n += (size_t)more;
	drawn[n] = '\0';
	close(terminal);
	waitpid(pid, NULL, 0);
}

/* Colour 166 is (215, 95, 0), 17 is (0, 0, 95), and 12 is bright blue. If the console took a number
 * of a palette for red, green and blue, or the reverse, the terminal would show another colour. */
static void every_kind_of_terminal_shows_the_colours_of_a_theme(void **unused)
{
	static const struct {
		const char *term;
		int colour;
		const char *sent;
	} cases[] = { { "kind-direct", 166, "\033[38:2::215:95:0mX" },
		      { "kind-direct", 17, "\033[38:2::0:1:95mX" },
		      { "kind-direct", 12, "\033[38:2::85:85:255mX" },
		      { "kind-direct", 4, "\033[34mX" },
		      { "kind-direct256", 166, "\033[38:2::215:95:0mX" },
		      { "kind-direct256", 17, "\033[38:2::0:1:95mX" },
		      { "kind-direct12", 166, "\033[38;5;3mX" },
		      { "kind-indexed", 166, "\033[38;5;166mX" },
		      { "kind-indexed", 12, "\033[38;5;12mX" },
		      { "kind-88", 33, "\033[38;5;6mX" },
		      { "kind-88", 12, "\033[38;5;12mX" },
		      { "kind-52", 33, "\033[38;5;6mX" },
		      { "kind-52", 12, "\033[38;5;4mX" },
		      { "kind-2", 166, "X" },
		      { "kind-common", 166, "X" } };
	char folder[64], drawn[65536];

	(void)unused;
	make_terminfo(folder);
	setenv("TERMINFO", folder, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		draw_colour(cases[i].term, cases[i].colour, drawn, sizeof(drawn));
		if (!strstr(drawn, cases[i].sent))
			fail_msg("%s, colour %d: no %s in %s", cases[i].term, cases[i].colour,
				 cases[i].sent + 1, drawn);
		if (cases[i].sent[0] == 'X')
			assert_null(strstr(drawn, "\033[38"));
	}
	unsetenv("TERMINFO");
	snprintf(drawn, sizeof(drawn), "rm -r %s", folder);
	assert_int_equal(system(drawn), 0);
}

static void window_changes(void **unused)
{
	struct pty y;

	(void)unused;
	start(&y, "xterm-256color");
	wait_for_frames(&y, 2);
	for (int w = 1; w <= 301; w += 100) {
		struct winsize size = { .ws_row = 10, .ws_col = (unsigned short)w };

		assert_int_equal(ioctl(y.terminal, TIOCSWINSZ, &size), 0);
		for (int frame = 0; y.last.columns != w && frame < 200; frame++)
			wait_for_frames(&y, 1);
		assert_int_equal(y.last.columns, w);
	}
	press_interrupt(&y);
}

static void terminal_reports_have_no_effect(void **unused)
{
	const char *text = getenv("INPUT_SECONDS");
	int64_t end_us = clock_monotonic_us() + (text ? atoi(text) : 4) * INT64_C(1000000);
	struct pty y;
	struct rng r;

	(void)unused;
	rng_init(&r, 2);
	start(&y, "xterm-256color");
	wait_for_frames(&y, 2);
	while (clock_monotonic_us() < end_us) {
		for (int burst = 0; burst < 50; burst++) {
			uint8_t report[REPORT_MOST];
			size_t n = report_make(&r, report), at = 0;

			while (at < n) {
				size_t piece = 1 + rng_below(&r, (uint32_t)(n - at));

				send(&y, report + at, piece);
				at += piece;
				if (at < n && rng_below(&r, 12) == 0)
					watch_for(&y, rng_below(&r, 150000));
			}
			watch(&y, 0);
		}
		wait_for_frames(&y, 1);
		assert_int_equal(y.last.acts, 0);
	}
	send(&y, "\033", 1); /* ends a sequence that may be unfinished */
	watch_for(&y, 400000);
	send(&y, "s", 1); /* a key must have its effect again */
	for (int frame = 0; y.last.acts == 0 && frame < 200; frame++)
		wait_for_frames(&y, 1);
	assert_true(y.last.acts > 0);
	send(&y, "\033[M", 3); /* an unfinished mouse report: its three characters never arrive */
	wait_for_frames(&y, 3);
	press_interrupt(&y);
}

/* The names of locales come from the operator's own machine, and this machine may lack them. */
static void utf8_needs_no_locale_of_this_machine(void **state)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	(void)state;
	unsetenv("LC_ALL");
	unsetenv("LC_CTYPE");
	for (int i = 0; i < 3; i++) {
		setlocale(LC_ALL, "C");
		setenv(names[i], "xx_XX.utf8", 1);
		terminal_set_locale();
		assert_true(terminal_speaks_utf8());
		unsetenv(names[i]);
	}
	setenv("LANG", "C.UTF-8", 1);
	setenv("LC_TIME", "xx_XX.UTF-8", 1);
	terminal_set_locale();
	assert_true(terminal_speaks_utf8());
	setenv("LANG", "xx_XX.ISO-8859-1", 1);
	setlocale(LC_ALL, "C");
	terminal_set_locale();
	assert_false(terminal_speaks_utf8());
	unsetenv("LANG");
	unsetenv("LC_TIME");
	setlocale(LC_ALL, "C.UTF-8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_needs_no_locale_of_this_machine),
		cmocka_unit_test(unknown_terminals),
		cmocka_unit_test(incapable_terminals),
		cmocka_unit_test(every_kind_of_terminal_shows_the_colours_of_a_theme),
		cmocka_unit_test(window_changes),
		cmocka_unit_test(terminal_reports_have_no_effect),
	};

	setlocale(LC_ALL, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
