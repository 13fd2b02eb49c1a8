/* Tests that the decoder finds every key in the terminal's bytes, and that no report acts as a key,
 * in whatever pieces the bytes arrive. */

#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "tui/screen/decoder.h"
#include "tui/input/keymap.h"
#include "tui/tests/golden.h"
#include "tui/tests/reports.h"

enum { WAIT_US = 25000, MS = 1000 };

/* A decoder, and the keys that it has found. */
struct line {
	struct decoder decoder;
	int64_t now_us;
	uint32_t keys[64];
	size_t n_keys;
	struct terminal_event last; /* the newest event that is not a key */
	char pasted[256];
};

static void open_line(struct line *l)
{
	memset(l, 0, sizeof(*l));
	decoder_init(&l->decoder, WAIT_US, true);
	l->now_us = 1000000;
}

static void take(struct line *l, const struct terminal_event *e)
{
	if (e->input == INPUT_KEY && l->n_keys < 64)
		l->keys[l->n_keys++] = e->key;
	else if (e->input != INPUT_NONE)
		l->last = *e;
	if (e->input == INPUT_PASTE) {
		assert_true(strlen(e->paste) < sizeof(l->pasted));
		strcpy(l->pasted, e->paste);
	}
}

static void silence(struct line *l, int64_t us)
{
	struct terminal_event e;
	int64_t end_us = l->now_us + us;

	while (decoder_deadline_us(&l->decoder) <= end_us) {
		l->now_us = decoder_deadline_us(&l->decoder);
		decoder_silence(&l->decoder, l->now_us, &e);
		assert_int_not_equal(decoder_deadline_us(&l->decoder), l->now_us);
		take(l, &e);
	}
	l->now_us = end_us;
}

static void type(struct line *l, const char *bytes, size_t n, int64_t apart_us)
{
	struct terminal_event e;

	for (size_t i = 0; i < n; i++) {
		if (i > 0 && apart_us > 0)
			silence(l, apart_us);
		decoder_byte(&l->decoder, (uint8_t)bytes[i], l->now_us, &e);
		take(l, &e);
	}
}

static void type_text(struct line *l, const char *text)
{
	type(l, text, strlen(text), 0);
}

static void check_keys(struct line *l, const uint32_t *keys, size_t n)
{
	assert_int_equal(l->n_keys, n);
	assert_memory_equal(l->keys, keys, n * sizeof(*keys));
	l->n_keys = 0;
}

#define KEYS(l, ...)                                                              \
	check_keys(l, (const uint32_t[]){ __VA_ARGS__ },                          \
		   sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static const struct {
	const char *bytes;
	uint32_t key;
} known[] = {
	{ "\033[A", PRESS_ARROW_UP },	   { "\033[B", PRESS_ARROW_DOWN },
	{ "\033[C", PRESS_ARROW_RIGHT },   { "\033[D", PRESS_ARROW_LEFT },
	{ "\033OA", PRESS_ARROW_UP },	   { "\033OD", PRESS_ARROW_LEFT },
	{ "\033[1;1A", PRESS_ARROW_UP },   { "\033[1;129:1B", PRESS_ARROW_DOWN },
	{ "\033[H", PRESS_TO_START },	   { "\033[1~", PRESS_TO_START },
	{ "\033[7~", PRESS_TO_START },	   { "\033OF", PRESS_TO_END },
	{ "\033[4~", PRESS_TO_END },	   { "\033[8~", PRESS_TO_END },
	{ "\033[5~", PRESS_PAGE_UP },	   { "\033[6~", PRESS_PAGE_DOWN },
	{ "\033[Z", PRESS_BACK_TAB },	   { "\033[1;2Z", PRESS_BACK_TAB },
	{ "\033[9;2u", PRESS_BACK_TAB },   { "\033[3~", PRESS_DELETE_BACK },
	{ "\033OM", PRESS_ENTER },	   { "\033[13u", PRESS_ENTER },
	{ "\033[27u", PRESS_ESCAPE },	   { "\033[99;5u", 'C' - '@' },
	{ "\033[27;5;99~", 'C' - '@' },	   { "\x9b" "A", PRESS_ARROW_UP },
	{ "\xc2\x9b" "A", PRESS_ARROW_UP }, { "\r", PRESS_ENTER },
	{ "\n", PRESS_ENTER },		   { "\b", PRESS_DELETE_BACK },
	{ "\x7f", PRESS_DELETE_BACK },	   { "\t", PRESS_TAB },
	{ "P", 'P' },			   { "\xc3\xa9", 0xe9 },
	{ "\x18", 'X' - '@' },		   { "\xe2\x82\xac", 0x20ac },
};

TEST(keys_are_found)
{
	struct line l;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const char *bytes = known[i].bytes;

		open_line(&l);
		type(&l, bytes, strlen(bytes), 0);
		KEYS(&l, known[i].key);
		/* The bytes arrive slowly, but no pause is long enough for the key Escape. */
		type(&l, bytes, strlen(bytes), WAIT_US - 1);
		KEYS(&l, known[i].key);
		assert_int_equal(decoder_deadline_us(&l.decoder), INT64_MAX);
		if (bytes[0] != '\033')
			continue;
		/* The first pause makes ESC the key Escape; the second copy of the bytes arrives
		 * complete. */
		type(&l, bytes, strlen(bytes), 200 * MS);
		KEYS(&l, PRESS_ESCAPE, known[i].key);
	}
}

TEST(escape_is_a_key)
{
	struct line l;

	open_line(&l);
	type_text(&l, "\033");
	silence(&l, WAIT_US - 1);
	assert_int_equal(l.n_keys, 0);
	silence(&l, 1);
	KEYS(&l, PRESS_ESCAPE);
	type_text(&l, "F\033\033");
	silence(&l, WAIT_US);
	KEYS(&l, 'F', PRESS_ESCAPE, PRESS_ESCAPE);
	/* Alt with x is ignored; some terminals send Alt with Up as ESC ESC [ A. */
	type_text(&l, "\033x\033\033[A");
	KEYS(&l, PRESS_ESCAPE, PRESS_ARROW_UP);
}

/* After the key Escape, a character that can begin a report is not taken as a key. Typed again, it
 * is a key. After a long silence it is a key at once. */
TEST(keys_after_escape)
{
	struct line l;

	for (const char *k = "P]_["; *k; k++) {
		open_line(&l);
		type_text(&l, "\033");
		silence(&l, 2000 * MS);
		type(&l, k, 1, 0);
		KEYS(&l, PRESS_ESCAPE);
		assert_int_equal(l.last.input, INPUT_NONE);
		silence(&l, 400 * MS);
		assert_int_equal(l.last.input, INPUT_UNFINISHED);
		assert_int_equal(l.last.key, *k);
		type(&l, k, 1, 0);
		KEYS(&l, (uint32_t)*k);
		type_text(&l, "\033");
		silence(&l, DECODER_SILENCE_US + WAIT_US);
		type(&l, k, 1, 0);
		KEYS(&l, PRESS_ESCAPE, (uint32_t)*k);
	}
}

/* The decoder announces an unfinished sequence (INPUT_UNFINISHED). Escape or silence ends the
 * sequence. */
TEST(unfinished_sequences_end)
{
	static const char *const cut[] = { "\033[",	"\033[24;8", "\033[M",	  "\033[M !",
					   "\033[200~a", "\033P>|X",  "\033]11;r", "\033_G",
					   "\033O",	"\xc3",	     "\033[<0;1", "\033(" };
	struct line l;

	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
		for (int ended_by_key = 0; ended_by_key < 2; ended_by_key++) {
			open_line(&l);
			type_text(&l, cut[i]);
			silence(&l, 400 * MS);
			assert_int_equal(l.last.input, INPUT_UNFINISHED);
			assert_int_equal(l.last.key, 0);
			if (ended_by_key)
				type_text(&l, "\033");
			silence(&l, ended_by_key ? 400 * MS : DECODER_SILENCE_US);
			l.n_keys = 0;
			type_text(&l, "F");
			KEYS(&l, 'F');
		}
	}
}

TEST(text_is_pasted)
{
	struct line l;

	open_line(&l);
	type_text(&l, "\033[200~skip 2\r\033[A\xc3\xa9\033[201~P");
	assert_string_equal(l.pasted, "skip 2\xc3\xa9");
	KEYS(&l, 'P');
	type_text(&l, "\033[200~");
	for (int i = 0; i < 3 * DECODER_PASTE_MOST; i++)
		type_text(&l, "P");
	l.decoder.paste[200] = '\0'; /* `pasted` has room for 256 bytes only */
	assert_int_equal(l.n_keys, 0);
	assert_true(l.decoder.n_paste < DECODER_PASTE_MOST);
}

TEST(mouse_is_reported)
{
	static const struct {
		const char *bytes;
		int x, y;
	} clicks[] = { { "\033[<0;300;20M", 299, 19 },
		       { "\033[32;12;3M", 11, 2 },
		       { "\033[M !\"", 0, 1 } };
	struct line l;

	for (size_t i = 0; i < 3; i++) {
		open_line(&l);
		type_text(&l, clicks[i].bytes);
		/* Mouse reports are off, so the click causes no event. */
		assert_int_equal(l.last.input, INPUT_NONE);
		l.decoder.mouse = true;
		type_text(&l, clicks[i].bytes);
		assert_int_equal(l.last.input, INPUT_CLICK);
		assert_int_equal(l.last.x, clicks[i].x);
		assert_int_equal(l.last.y, clicks[i].y);
		memset(&l.last, 0, sizeof(l.last));
		type_text(&l, "\033[<0;3;2m\033[<32;3;2M\033[<0;0;0M\033[<0;9999;1M");
		assert_int_equal(l.last.input, INPUT_NONE);
		type_text(&l, "\033[<64;1;1M\033[<65;1;1M");
		KEYS(&l, PRESS_ARROW_UP, PRESS_ARROW_DOWN);
	}
}

/* Real reports that consoles took for keys: focus, the cursor, F1 in pieces, clicks that are cut
 * off or far to the right, the terminal's name. The last case is F2 of the Linux console, whose
 * bytes are never far apart. */
TEST(reported_cases)
{
	static const struct {
		const char *bytes;
		size_t n;
	} cases[] = { { "\033[I", 3 },	      { "\033[24;80R", 8 }, { "\033OP", 3 },
		      { "\033[M !\0", 6 },    { "\033[M \xff\xff", 6 }, { "\033[M", 3 },
		      { "\033P>|XTerm(390)\033\\", 17 }, { "\033[?1u", 5 },
		      { "\xc2\x9b" "24;80R", 8 },	{ "\x9b" "I", 2 },
		      { "\033[1;5A", 6 },	{ "\033[99;6u", 7 },
		      { "\033[[B", 4 } };
	static const int64_t apart_us[] = { 0, 200 * MS, 1500 * MS, 9000 * MS };
	struct line l;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t k = 0; k < (i == 12 ? 2 : 4); k++) {
			open_line(&l);
			type(&l, cases[i].bytes, cases[i].n, apart_us[k]);
			for (size_t n = 0; n < l.n_keys; n++)
				assert_int_equal(l.keys[n], PRESS_ESCAPE);
		}
	}
}

/* A console with the operator's lease receives random reports in random pieces. It must not send a
 * command, open a dialog or request anything. */
TEST(terminal_reports_have_no_effect)
{
	struct state *s;
	struct rng r;
	struct ui u;
	struct line l;

	s = golden_default(&u);
	strcpy(u.authority.name, "operator");
	strcpy(s->status.lease, "operator");
	s->status.lease_us = 600000000;
	rng_init(&r, 1);
	open_line(&l);
	for (int i = 0; i < 200000; i++) {
		uint8_t report[REPORT_MOST];
		size_t n = report_make(&r, report);
		/* Pauses are shorter than `most`, at most 8.4 s. */
		uint32_t most = (uint32_t)1 << rng_below(&r, 24);

		l.n_keys = 0;
		l.decoder.mouse = rng_below(&r, 2);
		for (size_t at = 0; at < n; at++) {
			if (rng_below(&r, 4) == 0)
				silence(&l, rng_below(&r, most));
			type(&l, (const char *)report + at, 1, 0);
		}
		for (size_t k = 0; k < l.n_keys; k++)
			ui_key(&u, s, l.keys[k]);
		if (l.last.input == INPUT_PASTE)
			ui_paste(&u, l.pasted);
		assert_int_equal(u.outbox.n, 0);
		assert_int_equal(u.dialog.kind, DIALOG_NONE);
		assert_int_equal(u.prompt.kind, PROMPT_NONE);
		assert_int_equal(u.display.view, VIEW_OVERVIEW);
		assert_false(u.requests.quit || u.requests.scrub || u.clock.frozen);
	}
	ui_key(&u, s, 'P'); /* proof that the lease allows a command */
	assert_int_equal(u.outbox.n, 1);
	ui_fini(&u);
	state_free(s);
}

TEST(wait_for_escape)
{
	assert_int_equal(decoder_wait_us(NULL, false), 25 * MS);
	assert_int_equal(decoder_wait_us(NULL, true), 100 * MS);
	assert_int_equal(decoder_wait_us("300", false), 300 * MS);
	assert_int_equal(decoder_wait_us("300", true), 300 * MS);
	assert_int_equal(decoder_wait_us("0", false), 0);
	assert_int_equal(decoder_wait_us("10", true), 100 * MS);
	assert_int_equal(decoder_wait_us("soon", false), 25 * MS);
	assert_int_equal(decoder_wait_us("", false), 25 * MS);
	assert_int_equal(decoder_wait_us("-1", true), 100 * MS);
	assert_int_equal(decoder_wait_us("99999999999999999999", false), 5000 * MS);
}
