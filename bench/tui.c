/* Measures the cost of the console.
 *
 *     STREAM_KEEP=run.rec STREAM_NODES=1000 build/tui/tests/view_test
 *         records a stream of messages
 *     build/bench/tui run.rec [COLUMNS ROWS]
 *         measures the time to apply an event, to draw a picture, and to step back, in memory
 *     build/bench/tui COLUMNSxROWS SECONDS PROGRAM ARGUMENTS...
 *         runs a program on a terminal of its own, with this terminal's TERM. Measures the time to
 *         its first picture, from a key to the screen, the bytes per second to the terminal and the
 *         CPU time. The program is `build/bin/skippipe-console --play run.rec`, or a connected
 *         console.
 */
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tui/record.h"
#include "tui/run/history.h"
#include "tui/views/view.h"

enum { MAX_FRAMES = 100000, FRAME_US = 100000, KEYS = 20, QUIET_US = 60000, TAIL = 31 };

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The CPU time of this thread. Unlike wall time, it does not grow on a busy machine. */
static int64_t cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

/* ---- in memory ---- */

static double draw(struct screen *screen, const struct state *s, struct ui *u, int64_t at_us,
		   int view)
{
	int64_t start = cpu_us();

	u->display.view = (enum view)view;
	ui_tick(u, s, at_us, at_us);
	u->connection.last_message_us = at_us;
	view_draw(screen, s, u);
	return (double)(cpu_us() - start) / 1e3;
}

/* Steps back through the history in fifty equal steps, from its end to its beginning, and prints
 * how long a step takes. */
static void step_back(struct history *h, struct state **s, size_t applied)
{
	int64_t last = history_last_us(h), first = history_first_us(h), status_at;
	double ms[50];

	for (int i = 0; i < 50; i++) {
		int64_t start = cpu_us();

		history_seek(h, last - (last - first) / 50 * (i + 1), s, &applied, &status_at);
		ms[i] = (double)(cpu_us() - start) / 1e3;
	}
	qsort(ms, 50, sizeof(*ms), compare);
	printf("%zu messages in the history: a step back p50 %.1f ms, longest %.1f ms\n",
	       history_count(h), ms[25], ms[49]);
}

static int pictures(const char *path, int columns, int rows)
{
	static double frames[MAX_FRAMES];
	struct record_reader *r;
	struct error err = { "" };
	struct screen *screen;
	struct state *s;
	struct ui u;
	struct msg m;
	const void *data;
	struct history *h = history_new(64 << 20);
	size_t size, messages = 0, events = 0;
	int64_t at, first = 0, last = 0, next = 0, apply_us = 0, start;
	int n = 0;

	if (record_open(&r, path, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	s = state_new();
	screen = screen_new(columns, rows, false);
	ui_init(&u, GRAPH_BRAILLE);
	ui_set_connection(&u, UI_LIVE, "");
	while (record_next(r, &at, &data, &size) == 0) {
		start = cpu_us();
		if (msg_decode(&m, data, size) != 0)
			continue;
		state_apply(s, &m);
		apply_us += cpu_us() - start;
		if (history_append(h, at, data, size) == 0)
			history_keep(h, history_count(h), s);
		messages++;
		events += m.type == MSG_SEE_TASKS ? m.u.see_tasks.n_events : 0;
		msg_clear(&m);
		first = first ? first : at;
		last = at;
		if (s->stream.has_snapshot && at >= next && n < MAX_FRAMES) {
			frames[n] =
				draw(screen, s, &u, at,
				     n % 4 ? VIEW_OVERVIEW : 1 + n / 4 % (VIEWS - 1));
			n++;
			next = at + FRAME_US;
		}
	}
	if (n == 0)
		return 1;
	qsort(frames, (size_t)n, sizeof(*frames), compare);
	printf("%zu messages, %zu events, %.0f a second: %.2f us an event\n", messages, events,
	       last > first ? (double)events * 1e6 / (double)(last - first) : 0,
	       events ? (double)apply_us / (double)events : 0);
	printf("%d pictures of %dx%d, %u nodes: p50 %.2f ms, p99 %.2f ms, longest %.2f ms\n", n,
	       columns, rows, s->n_nodes, frames[n / 2], frames[n * 99 / 100], frames[n - 1]);
	step_back(h, &s, messages);
	screen_free(screen);
	history_free(h);
	state_free(s);
	record_close(r);
	return 0;
}

/* ---- on a terminal ---- */

struct reader {
	int fd;
	uint64_t bytes;
	/* The last bytes of the output, so that a word is found even if two reads divide it. */
	char tail[TAIL + 1];
	bool ended;
};

/* Reads until the word `want` comes (NULL: anything). Returns false at `until_us` and at the end of
 * the output. */
static bool read_until(struct reader *r, int64_t until_us, const char *want)
{
	char data[65536 + sizeof(r->tail)];

	while (!r->ended) {
		int64_t left = until_us - clock_monotonic_us();
		struct pollfd p = { r->fd, POLLIN, 0 };
		size_t kept = strlen(r->tail), all;
		ssize_t n;

		if (left <= 0)
			return false;
		if (poll(&p, 1, (int)((left + 999) / 1000)) <= 0)
			continue;
		memcpy(data, r->tail, kept);
		n = read(r->fd, data + kept, 65535);
		if (n <= 0) {
			r->ended = true;
			return false;
		}
		r->bytes += (uint64_t)n;
		data[kept + (size_t)n] = '\0';
		all = kept + (size_t)n;
		kept = all < TAIL ? all : TAIL;
		memcpy(r->tail, data + all - kept, kept);
		r->tail[kept] = '\0';
		if (!want || strstr(data, want))
			return true;
	}
	return false;
}

/* Returns the CPU time of a process's first thread, in nanoseconds. */
static double cpu_ns(pid_t pid)
{
	char path[64];
	double ns = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	f = fopen(path, "r");
	if (f && fscanf(f, "%lf", &ns) != 1)
		ns = 0;
	if (f)
		fclose(f);
	return ns;
}

static bool becomes_quiet(struct reader *r)
{
	int64_t until = clock_monotonic_us() + 3000000;

	while (clock_monotonic_us() < until && !r->ended)
		if (!read_until(r, clock_monotonic_us() + QUIET_US, NULL))
			return !r->ended;
	return false;
}

/* Measures the time from a key to the screen. The help is opened and closed while the program draws
 * nothing else, so that the next output is the answer to the key. */
static void measure_keys(struct reader *r)
{
	double took[KEYS];
	int n = 0;

	for (; n < KEYS; n++) {
		int64_t start;

		if (!becomes_quiet(r) || write(r->fd, n % 2 ? "q" : "?", 1) != 1)
			break;
		start = clock_monotonic_us();
		if (!read_until(r, start + 1000000, NULL))
			break;
		took[n] = (double)(clock_monotonic_us() - start) / 1e3;
	}
	if (n == 0) {
		puts("from a key to the screen: not measured, as the program draws all the time");
		return;
	}
	qsort(took, (size_t)n, sizeof(*took), compare);
	printf("from a key to the screen: median %.1f ms, longest %.1f ms of %d\n", took[n / 2],
	       took[n - 1], n);
}

static int on_terminal(int w, int h, int seconds, char **program)
{
	struct winsize size = { .ws_row = (unsigned short)h, .ws_col = (unsigned short)w };
	struct reader r = { .tail = "" };
	int64_t start = clock_monotonic_us();
	pid_t pid = forkpty(&r.fd, NULL, NULL, &size);
	double cpu;

	if (pid < 0)
		return 1;
	if (pid == 0) {
		execvp(program[0], program);
		_exit(127);
	}
	if (!read_until(&r, start + 10000000, "quit")) {
		puts("no picture came");
		kill(pid, SIGKILL);
		return 1;
	}
	printf("%dx%d: first picture after %.1f ms, %llu bytes\n", w, h,
	       (double)(clock_monotonic_us() - start) / 1e3, (unsigned long long)r.bytes);
	read_until(&r, clock_monotonic_us() + 2000000, "\1");
	r.bytes = 0;
	cpu = cpu_ns(pid);
	read_until(&r, clock_monotonic_us() + seconds * INT64_C(1000000), "\1");
	printf("%.1f KB a second to the terminal, CPU %.2f%% of a core, over %d s\n",
	       (double)r.bytes / 1e3 / seconds, (cpu_ns(pid) - cpu) / 1e7 / seconds, seconds);
	measure_keys(&r);
	kill(pid, SIGTERM);
	while (!r.ended)
		read_until(&r, clock_monotonic_us() + 1000000, "\1");
	waitpid(pid, NULL, 0);
	return 0;
}

int main(int argc, char **argv)
{
	int w = 160, h = 48;

	if (argc > 3 && sscanf(argv[1], "%dx%d", &w, &h) == 2 && w > 0 && h > 0)
		return on_terminal(w, h, atoi(argv[2]), argv + 3);
	if (argc == 2 || argc == 4)
		return pictures(argv[1], argc > 3 ? atoi(argv[2]) : w,
				argc > 3 ? atoi(argv[3]) : h);
	fputs("usage: tui FILE [COLUMNS ROWS] | COLUMNSxROWS SECONDS PROGRAM ARGUMENTS...\n",
	      stderr);
	return 2;
}
