/* The screen on a real terminal, by ncurses. Only changed cells are written. ncurses reads nothing:
 * decoder.c splits the terminal's bytes into keys.
 *
 * A crash must not leave the terminal unusable. The handler of crashes uses neither locks nor the
 * heap, only bytes that terminal_open has prepared (`rescue`).
 */
#define NCURSES_WIDECHAR 1
#include "tui/screen/terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include <ncurses.h>
#include <term.h>

#include "base/alloc.h"

struct terminal {
	SCREEN *curses;
	const char *type; /* the terminal's type that ncurses uses: TERM, or `substitute` */
	struct theme theme;
	bool colour;
	int pairs[STYLES];
	int w, h;
	struct cell *shown; /* array of (h, w): the cells that the terminal shows now */
	/* True: the contents of the terminal are unknown, so all cells must be written. */
	bool fresh;
	struct decoder decoder;
	/* Bytes that were read; the first input_at of them are handled already. */
	unsigned char input[512];
	size_t input_at, input_n;
};

static const char substitute[] = "xterm-256color";

/* The data that the handler of crashes needs. */
static struct {
	volatile sig_atomic_t armed;
	struct termios before;
	char reset[256];
	size_t n_reset;
} rescue;

/* Data for Ctrl-Z. While the program is stopped, mouse reports and bracketed paste are off, so that
 * the shell does not receive clicks as text. */
static struct {
	/* ncurses' handler of SIGTSTP: restores the screen, stops the program, and redraws the
	 * screen when the program continues. */
	struct sigaction curses;
	volatile sig_atomic_t knows_modes, mouse;
} stop;

static const char paste_on[] = "\033[?2004h", paste_off[] = "\033[?2004l",
		  mouse_on[] = "\033[?1000h\033[?1006h", mouse_off[] = "\033[?1000l\033[?1006l";

static const int crashes[] = { SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGILL, SIGQUIT };

/* Returns true if the terminal understands xterm's sequences for mouse, bracketed paste and
 * clipboard. */
static bool is_xterm(const char *type)
{
	static const char *const begins[] = { "xterm",	   "tmux",    "screen",	 "rxvt",
					      "foot",	   "kitty",   "alacritty", "ghostty",
					      "wezterm",   "konsole", "gnome",	 "vte",
					      "contour",   "st-",     "iterm",	 "mlterm" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(type, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

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
	/* SA_RESETHAND has removed this handler, so the signal now ends the process. */
	raise(number);
}

static void write_at_once(const char *sequence)
{
	ssize_t ignored = write(STDOUT_FILENO, sequence, strlen(sequence));

	(void)ignored;
}

static void on_stop(int number)
{
	if (stop.knows_modes) {
		write_at_once(paste_off);
		write_at_once(mouse_off);
	}
	stop.curses.sa_handler(number); /* stops the program; returns when the program continues */
	if (stop.knows_modes)
		write_at_once(paste_on);
	if (stop.mouse)
		write_at_once(mouse_on);
}

/* Installs on_stop in front of ncurses' handler of SIGTSTP. */
static void arm_stop(const char *type)
{
	struct sigaction act;

	stop.knows_modes = is_xterm(type);
	stop.mouse = 0;
	sigaction(SIGTSTP, NULL, &stop.curses);
	if (stop.curses.sa_handler == SIG_DFL || stop.curses.sa_handler == SIG_IGN)
		return;
	act = stop.curses;
	act.sa_handler = on_stop;
	sigaction(SIGTSTP, &act, NULL);
}

static void add_reset(const char *sequence)
{
	size_t n = sequence && sequence != (char *)-1 ? strlen(sequence) : 0;

	if (n == 0 || rescue.n_reset + n > sizeof(rescue.reset))
		return;
	memcpy(rescue.reset + rescue.n_reset, sequence, n);
	rescue.n_reset += n;
}

static void arm_rescue(const char *type)
{
	struct sigaction act;

	rescue.n_reset = 0;
	if (is_xterm(type))
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

/* Sets only LC_CTYPE. The other categories of the locale stay "C": numbers keep their points, and
 * an unknown LC_TIME has no effect. */
void terminal_set_locale(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *locale = NULL;

	for (int i = 0; i < 3 && !(locale && *locale); i++)
		locale = getenv(names[i]);
	if (!setlocale(LC_CTYPE, "") && locale &&
	    (strcasestr(locale, "utf-8") || strcasestr(locale, "utf8")))
		setlocale(LC_CTYPE, "C.UTF-8");
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

static bool has_capability(const char *name)
{
	const char *text = tigetstr(name);

	return text && text != (char *)-1;
}

/* Returns true if colours are sent to the terminal as red, green and blue, not as numbers of a
 * palette. Such a terminal has terminfo's extension RGB, which may be a flag, a number or a
 * text. */
static bool has_direct_colours(void)
{
	return tigetflag("RGB") > 0 || tigetnum("RGB") > 0 || has_capability("RGB");
}

/* Converts one of xterm's 256 colours to the number that this terminal needs. A smaller palette
 * (52, 64 or 88 colours) has other colours than xterm's. A terminal with such a palette gets the
 * nearest of the first 16 or 8 colours. */
static int fit_colour(int colour)
{
	int n = COLORS == 16 || COLORS == 88 ? 16 : 8;
	bool is_direct = has_direct_colours();

	if (colour < 8 || (!is_direct && COLORS >= 256))
		return colour;
	if (is_direct && COLORS == 1 << 24) {
		int rgb = (int)theme_rgb(colour);

		/* Some terminals (xterm-direct256) take numbers below 256 for a palette. One more
		 * step of green avoids such numbers; the eye does not see it. */
		return rgb < 256 ? rgb | 256 : rgb;
	}
	if (colour < 16)
		return colour < n ? colour : colour - 8;
	return theme_nearest(theme_rgb(colour), 0, n);
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

/* Finds the terminal's type: TERM, or `substitute` if TERM is unknown on this machine. */
static int choose_type(const char **out, struct error *err)
{
	const char *term = getenv("TERM");
	int found, rc = 0;

	if (!term || !*term)
		return error_set(err, -ENOTSUP, "TERM is not set");
	*out = term;
	/* setupterm sets `found` to 1 for a type that it knows. 0 means unknown, or too generic. */
	setupterm(term, STDOUT_FILENO, &found);
	if (found == 0 || found == -1) {
		*out = substitute;
		if (setupterm(substitute, STDOUT_FILENO, &found) != OK)
			return error_set(err, -EINVAL,
					 "TERM=%s is unknown on this machine, and %s too: install "
					 "ncurses-base, or set TERM",
					 term, substitute);
	}
	if (!has_capability("cup"))
		rc = error_set(err, -ENOTSUP, "TERM=%s cannot place the cursor", term);
	if (cur_term)
		del_curterm(cur_term);
	return rc;
}

int terminal_check(struct error *err)
{
	const char *type;

	return choose_type(&type, err);
}

/* Disables flow control: a screen stopped by Ctrl-S would look live. Ctrl-S and Ctrl-Q become
 * keys. */
static void end_flow_control(void)
{
	struct termios now;

	if (tcgetattr(STDIN_FILENO, &now) != 0)
		return;
	now.c_iflag &= ~(tcflag_t)IXON;
	tcsetattr(STDIN_FILENO, TCSANOW, &now);
	def_prog_mode();
}

static void begin_curses(struct terminal *t)
{
	cbreak();
	noecho();
	nonl();
	end_flow_control();
	intrflush(stdscr, FALSE);
	typeahead(-1); /* keeps ncurses from pausing its drawing while input waits */
	curs_set(0);
	if (t->colour && has_colors() && tigetnum("colors") >= 8) {
		start_color();
		use_default_colors();
	} else {
		t->colour = false;
	}
	if (is_xterm(t->type))
		putp(paste_on);
	fflush(stdout);
}

static void begin_input(struct terminal *t)
{
	const char *connection = getenv("SSH_CONNECTION"), *tty = getenv("SSH_TTY");

	decoder_init(&t->decoder,
		     decoder_wait_us(getenv("ESCDELAY"),
				     (connection && *connection) || (tty && *tty)),
		     terminal_speaks_utf8());
	/* Discards keys and reports that an earlier program did not read. */
	tcflush(STDIN_FILENO, TCIFLUSH);
}

/* Saves the terminal's settings before ncurses changes them, and arms `rescue` before the first
 * bytes are written. Thus the shell gets its terminal back in any case. */
int terminal_open(struct terminal **out, const struct theme *theme, bool colour,
		  struct error *err)
{
	struct terminal *t;
	const char *type;
	int rc;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return error_set(err, -ENOTTY, "standard input or output is not a terminal");
	rc = choose_type(&type, err);
	if (rc != 0)
		return rc;
	t = alloc_new(sizeof(*t));
	t->type = type;
	tcgetattr(STDIN_FILENO, &rescue.before);
	t->curses = newterm(type, stdout, stdin);
	if (!t->curses) {
		free(t);
		return error_set(err, -EINVAL, "TERM=%s cannot be used", type);
	}
	set_term(t->curses);
	t->colour = colour;
	arm_rescue(type);
	arm_stop(type);
	begin_curses(t);
	begin_input(t);
	terminal_theme(t, theme);
	*out = t;
	return 0;
}

const char *terminal_substitute(const struct terminal *t)
{
	return t->type == substitute ? substitute : NULL;
}

void terminal_close(struct terminal *t)
{
	if (!t)
		return;
	terminal_mouse(t, false);
	if (is_xterm(t->type))
		putp(paste_off);
	curs_set(1);
	endwin();
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &rescue.before);
	rescue.armed = 0;
	signal(SIGTSTP, SIG_DFL);
	alloc_before_exit(NULL);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		signal(crashes[i], SIG_DFL);
	delscreen(t->curses);
	free(t->shown);
	free(t);
}

bool terminal_mouse(struct terminal *t, bool on)
{
	if (!is_xterm(t->type))
		return false;
	if (on != t->decoder.mouse) {
		putp(on ? mouse_on : mouse_off);
		fflush(stdout);
	}
	if (!on && t->decoder.mouse)
		/* Discards clicks, which the shell would show as text. */
		tcflush(STDIN_FILENO, TCIFLUSH);
	t->decoder.mouse = on;
	stop.mouse = on;
	return true;
}

/* Most bytes that can be copied: xterm accepts 74994 characters of base64. */
enum { COPY_MOST = 74994 / 4 * 3 };

bool terminal_copy(struct terminal *t, const char *text)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *at = (const unsigned char *)text;
	size_t n = strlen(text);

	if (!is_xterm(t->type) || n > COPY_MOST)
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

void terminal_size(struct terminal *t, int *w, int *h)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0 &&
	    is_term_resized(size.ws_row, size.ws_col)) {
		resizeterm(size.ws_row, size.ws_col);
		t->fresh = true;
	}
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

/* A blank without a background looks the same in every style, so it gets the style of the cell
 * before it. This saves two changes of style on the line to the terminal. */
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

/* ---- input ---- */

/* Reads the bytes that have arrived, without blocking. Standard input itself stays in blocking
 * mode, because other programs share it. */
static bool read_input(struct terminal *t)
{
	struct pollfd fd = { STDIN_FILENO, POLLIN, 0 };
	ssize_t n = 0;

	if (poll(&fd, 1, 0) > 0 && fd.revents & POLLIN)
		n = read(STDIN_FILENO, t->input, sizeof(t->input));
	t->input_at = 0;
	t->input_n = n > 0 ? (size_t)n : 0;
	return n > 0;
}

void terminal_next(struct terminal *t, int64_t now_us, struct terminal_event *out)
{
	memset(out, 0, sizeof(*out));
	for (int turn = 0; turn < 8192 && out->input == INPUT_NONE; turn++) {
		if (t->input_at == t->input_n && !read_input(t)) {
			decoder_silence(&t->decoder, now_us, out);
			return;
		}
		decoder_byte(&t->decoder, t->input[t->input_at++], now_us, out);
	}
}

int64_t terminal_deadline_us(const struct terminal *t)
{
	return t->input_at < t->input_n ? 0 : decoder_deadline_us(&t->decoder);
}
