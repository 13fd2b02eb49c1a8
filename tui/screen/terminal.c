/* The screen on a real terminal, by ncurses. Only changed cells are written.
 *
 * A crash must not leave the terminal unusable. The crash handler therefore uses neither locks
 * nor the heap, only bytes that were prepared when the terminal was opened (`rescue`). */
#define NCURSES_WIDECHAR 1
#include "tui/screen/terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include <ncurses.h>
#include <term.h>

#include "base/alloc.h"
#include "tui/input/keymap.h"

enum { PASTE_MOST = 4096, CODE_PASTE = 0x1000, CODE_PASTE_END };

struct terminal {
	SCREEN *curses;
	struct theme theme;
	bool colour, mouse, pasting;
	int pairs[STYLES];
	int w, h;
	struct cell *shown; /* (h, w) */
	bool fresh;         /* the terminal's contents are unknown */
	char paste[PASTE_MOST];
	size_t n_paste;
};

/* All that the crash handler needs, because it must not use locks or the heap. */
static struct {
	volatile sig_atomic_t armed;
	struct termios before;
	char reset[256];
	size_t n_reset;
} rescue;

static const int crashes[] = { SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGILL, SIGQUIT };

static void restore_at_once(void)
{
	ssize_t ignored;

	if (!rescue.armed)
		return;
	ignored = write(STDOUT_FILENO, rescue.reset, rescue.n_reset);
	(void)ignored;
	tcsetattr(STDIN_FILENO, TCSANOW, &rescue.before);
}

static void on_crash(int number)
{
	restore_at_once();
	raise(number); /* SA_RESETHAND: now the signal ends the process */
}

static void add_reset(const char *sequence)
{
	size_t n = sequence && sequence != (char *)-1 ? strlen(sequence) : 0;

	if (n == 0 || rescue.n_reset + n > sizeof(rescue.reset))
		return;
	memcpy(rescue.reset + rescue.n_reset, sequence, n);
	rescue.n_reset += n;
}

static bool is_xterm(void)
{
	const char *term = getenv("TERM");

	return term && (strncmp(term, "xterm", 5) == 0 || strncmp(term, "tmux", 4) == 0 ||
			strncmp(term, "screen", 6) == 0 || strncmp(term, "rxvt", 4) == 0);
}

static void arm_rescue(void)
{
	struct sigaction act;

	rescue.n_reset = 0;
	if (is_xterm())
		add_reset("\033[?1000l\033[?1002l\033[?1006l\033[?2004l");
	add_reset(tigetstr("sgr0"));
	add_reset(tigetstr("cnorm"));
	add_reset(tigetstr("rmkx"));
	add_reset(tigetstr("rmcup"));
	memset(&act, 0, sizeof(act));
	act.sa_handler = on_crash;
	act.sa_flags = (int)(SA_RESETHAND | SA_NODEFER);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		sigaction(crashes[i], &act, NULL);
	rescue.armed = 1;
	alloc_before_exit(restore_at_once);
}

bool terminal_speaks_utf8(void)
{
	const char *codeset = nl_langinfo(CODESET);

	return codeset && (strcmp(codeset, "UTF-8") == 0 || strcmp(codeset, "utf8") == 0);
}

bool terminal_shows_braille(void)
{
	const char *term = getenv("TERM");

	return terminal_speaks_utf8() && (!term || strcmp(term, "linux") != 0);
}

/* ---- colours ---- */

/* Returns the nearest of the first 16 or 8 colours on a terminal with fewer than 256. */
static short fit_colour(int colour)
{
	static const unsigned char rgb[16][3] = {
		{ 0, 0, 0 },     { 170, 0, 0 },    { 0, 170, 0 },    { 170, 130, 0 },
		{ 0, 0, 170 },   { 170, 0, 170 },  { 0, 170, 170 },  { 170, 170, 170 },
		{ 85, 85, 85 },  { 255, 85, 85 },  { 85, 255, 85 },  { 255, 255, 85 },
		{ 85, 85, 255 }, { 255, 85, 255 }, { 85, 255, 255 }, { 255, 255, 255 }
	};
	static const int steps[6] = { 0, 95, 135, 175, 215, 255 };
	int r, g, b, best = 0, least = 1 << 30, n = COLORS >= 16 ? 16 : 8;

	if (colour < COLORS)
		return (short)colour;
	if (colour < 16)
		return (short)(colour - 8);
	if (colour >= 232) {
		r = g = b = 8 + (colour - 232) * 10;
	} else {
		r = steps[(colour - 16) / 36];
		g = steps[(colour - 16) / 6 % 6];
		b = steps[(colour - 16) % 6];
	}
	for (int i = 0; i < n; i++) {
		int d = (rgb[i][0] - r) * (rgb[i][0] - r) + (rgb[i][1] - g) * (rgb[i][1] - g) +
			(rgb[i][2] - b) * (rgb[i][2] - b);

		if (d < least) {
			least = d;
			best = i;
		}
	}
	return (short)best;
}

void terminal_theme(struct terminal *t, const struct theme *theme)
{
	t->theme = *theme;
	t->fresh = true;
	for (int i = 0; i < STYLES; i++) {
		const struct theme_style *s = &theme->styles[i];

		t->pairs[i] = 0;
		if (!t->colour || (s->fg == THEME_DEFAULT && s->bg == THEME_DEFAULT) ||
		    i + 1 >= COLOR_PAIRS)
			continue;
		if (init_extended_pair(i + 1, s->fg == THEME_DEFAULT ? -1 : fit_colour(s->fg),
				       s->bg == THEME_DEFAULT ? -1 : fit_colour(s->bg)) == OK)
			t->pairs[i] = i + 1;
	}
}

static attr_t attributes_of(const struct terminal *t, unsigned style)
{
	uint8_t bits = t->theme.styles[(style & STYLE_MEANING) % STYLES].attributes;
	attr_t a = A_NORMAL;

	if (bits & THEME_BOLD || style & STYLE_BOLD)
		a |= A_BOLD;
	if (bits & THEME_DIM)
		a |= A_DIM;
	if (bits & THEME_UNDERLINE || style & STYLE_UNDERLINE)
		a |= A_UNDERLINE;
	if (bits & THEME_ITALIC)
		a |= A_ITALIC;
	if (!!(bits & THEME_REVERSE) != !!(style & STYLE_REVERSE))
		a |= A_REVERSE;
	return a;
}

/* ---- opening ---- */

static void begin_curses(struct terminal *t)
{
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	if (t->colour && has_colors()) {
		start_color();
		use_default_colors();
	} else {
		t->colour = false;
	}
	if (is_xterm()) {
		define_key("\033[200~", CODE_PASTE);
		define_key("\033[201~", CODE_PASTE_END);
		putp("\033[?2004h");
		fflush(stdout);
	}
}

/* The terminal's settings are saved before curses changes them, and `rescue` is armed before the
 * first bytes are written, so that the shell gets its terminal back in any case. */
int terminal_open(struct terminal **out, const struct theme *theme, bool colour,
		  struct error *err)
{
	const char *term = getenv("TERM");
	struct terminal *t;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return error_set(err, -ENOTTY, "standard input or output is not a terminal");
	t = alloc_new(sizeof(*t));
	tcgetattr(STDIN_FILENO, &rescue.before);
	t->curses = newterm(NULL, stdout, stdin);
	if (!t->curses) {
		free(t);
		return error_set(err, -EINVAL, "TERM=%s is unknown", term ? term : "");
	}
	set_term(t->curses);
	if (!tigetstr("cup") || tigetstr("cup") == (char *)-1) {
		endwin();
		delscreen(t->curses);
		free(t);
		return error_set(err, -ENOTSUP, "TERM=%s cannot place the cursor",
				 term ? term : "");
	}
	t->colour = colour;
	arm_rescue();
	begin_curses(t);
	terminal_theme(t, theme);
	*out = t;
	return 0;
}

void terminal_close(struct terminal *t)
{
	if (!t)
		return;
	if (t->mouse)
		mousemask(0, NULL);
	if (is_xterm())
		putp("\033[?2004l");
	curs_set(1);
	endwin();
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &rescue.before);
	rescue.armed = 0;
	alloc_before_exit(NULL);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		signal(crashes[i], SIG_DFL);
	delscreen(t->curses);
	free(t->shown);
	free(t);
}

void terminal_mouse(struct terminal *t, bool on)
{
	t->mouse = on;
	mouseinterval(0);
	mousemask(on ? BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED
		     : 0,
		  NULL);
}

/* xterm accepts at most this much. */
enum { COPY_MOST = 74994 / 4 * 3 };

bool terminal_copy(struct terminal *t, const char *text)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *at = (const unsigned char *)text;
	size_t n = strlen(text);

	(void)t;
	if (!is_xterm() || n > COPY_MOST)
		return false;
	fputs("\033]52;c;", stdout);
	for (size_t i = 0; i < n; i += 3) {
		unsigned a = at[i], b = i + 1 < n ? at[i + 1] : 0,
			 c = i + 2 < n ? at[i + 2] : 0;

		putchar(digits[a >> 2]);
		putchar(digits[(a & 3) << 4 | b >> 4]);
		putchar(i + 1 < n ? digits[(b & 15) << 2 | c >> 6] : '=');
		putchar(i + 2 < n ? digits[c & 63] : '=');
	}
	fputs("\a", stdout);
	return fflush(stdout) == 0;
}

/* ---- showing ---- */

void terminal_size(const struct terminal *t, int *w, int *h)
{
	(void)t;
	getmaxyx(stdscr, *h, *w);
	if (*w < 1)
		*w = 1;
	if (*h < 1)
		*h = 1;
}

void terminal_redraw(struct terminal *t)
{
	t->fresh = true;
	clearok(stdscr, TRUE);
}

static bool has_background(const struct terminal *t, unsigned style)
{
	const struct theme_style *s = &t->theme.styles[(style & STYLE_MEANING) % STYLES];

	return s->bg != THEME_DEFAULT || s->attributes & (THEME_REVERSE | THEME_UNDERLINE);
}

static void put_cell(const struct terminal *t, int x, int y, const struct cell *c)
{
	wchar_t text[2] = { (wchar_t)c->glyph, 0 };
	int pair = t->pairs[(c->style & STYLE_MEANING) % STYLES];
	cchar_t out;

	if (setcchar(&out, text, attributes_of(t, c->style), (short)pair, NULL) == OK)
		mvadd_wch(y, x, &out);
}

/* A blank without a background looks the same in every style. It therefore takes the style of the
 * previous cell, which saves the terminal two changes of style. */
static struct cell plain_blank(const struct terminal *t, const struct cell *row, int x)
{
	struct cell c = row[x];
	bool seen = c.style & (STYLE_REVERSE | STYLE_UNDERLINE) || has_background(t, c.style);

	if (c.glyph != ' ' || seen)
		return c;
	c.style = STYLE_TEXT;
	if (x > 0 && row[x - 1].glyph != ' ' &&
	    !(row[x - 1].style & (STYLE_REVERSE | STYLE_UNDERLINE)) &&
	    !has_background(t, row[x - 1].style))
		c.style = row[x - 1].style;
	return c;
}

static void make_room(struct terminal *t, int w, int h)
{
	if (t->shown && w == t->w && h == t->h)
		return;
	t->shown = alloc_resize(t->shown, (size_t)w * (size_t)h, sizeof(*t->shown));
	t->w = w;
	t->h = h;
	t->fresh = true;
}

void terminal_show(struct terminal *t, const struct screen *s)
{
	const struct cell *cells = screen_cells(s);
	int w = screen_width(s), h = screen_height(s);
	bool changed = false;

	make_room(t, w, h);
	if (t->fresh)
		erase();
	for (int y = 0; y < h; y++) {
		for (int x = 0; x < w; x++) {
			struct cell c = plain_blank(t, &cells[y * w], x);
			struct cell *was = &t->shown[y * w + x];

			if (!t->fresh && c.glyph == was->glyph && c.style == was->style)
				continue;
			put_cell(t, x, y, &c);
			*was = c;
			changed = true;
		}
	}
	if (changed || t->fresh) {
		wnoutrefresh(stdscr);
		doupdate();
	}
	t->fresh = false;
}

/* ---- keys ---- */

static uint32_t key_of(int code)
{
	switch (code) {
	case KEY_UP:
		return PRESS_ARROW_UP;
	case KEY_DOWN:
		return PRESS_ARROW_DOWN;
	case KEY_LEFT:
		return PRESS_ARROW_LEFT;
	case KEY_RIGHT:
		return PRESS_ARROW_RIGHT;
	case KEY_PPAGE:
		return PRESS_PAGE_UP;
	case KEY_NPAGE:
		return PRESS_PAGE_DOWN;
	case KEY_HOME:
		return PRESS_TO_START;
	case KEY_END:
		return PRESS_TO_END;
	case KEY_BTAB:
		return PRESS_BACK_TAB;
	case KEY_BACKSPACE:
	case KEY_DC:
		return PRESS_DELETE_BACK;
	case KEY_ENTER:
		return PRESS_ENTER;
	default:
		return 0;
	}
}

static void take_click(struct terminal_event *out)
{
	MEVENT m;

	if (getmouse(&m) != OK)
		return;
	out->x = m.x;
	out->y = m.y;
	if (m.bstate & BUTTON4_PRESSED) {
		out->input = INPUT_KEY;
		out->key = PRESS_ARROW_UP;
	} else if (m.bstate & BUTTON5_PRESSED) {
		out->input = INPUT_KEY;
		out->key = PRESS_ARROW_DOWN;
	} else if (m.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED)) {
		out->input = INPUT_CLICK;
	}
}

static void take_code(struct terminal *t, int code, struct terminal_event *out)
{
	if (code == KEY_RESIZE) {
		out->input = INPUT_RESIZE;
		t->fresh = true;
	} else if (code == CODE_PASTE) {
		t->pasting = true;
		t->n_paste = 0;
	} else if (code == CODE_PASTE_END && t->pasting) {
		t->pasting = false;
		t->paste[t->n_paste] = '\0';
		out->input = INPUT_PASTE;
		out->paste = t->paste;
	} else if (code == KEY_MOUSE) {
		take_click(out);
	} else if (!t->pasting && key_of(code)) {
		out->input = INPUT_KEY;
		out->key = key_of(code);
	}
}

static void take_character(struct terminal *t, uint32_t c, struct terminal_event *out)
{
	if (t->pasting) {
		if (t->n_paste + 5 < PASTE_MOST && c >= ' ')
			t->n_paste += (size_t)utf8_put(t->paste + t->n_paste, c);
		return;
	}
	out->input = INPUT_KEY;
	out->key = c == '\n' || c == '\r' ? PRESS_ENTER : c == 8 ? PRESS_DELETE_BACK : c;
}

void terminal_next(struct terminal *t, struct terminal_event *out)
{
	memset(out, 0, sizeof(*out));
	for (int turn = 0; turn < 8192 && out->input == INPUT_NONE; turn++) {
		wint_t c;
		int rc = get_wch(&c);

		if (rc == ERR)
			return;
		if (rc == KEY_CODE_YES)
			take_code(t, (int)c, out);
		else
			take_character(t, (uint32_t)c, out);
	}
}
