/* Splits the terminal's bytes into keys, clicks, pasted text and reports. The table `rules` is a
 * state machine, and the table `keys` lists the sequences that are keys. All other sequences that
 * begin with ESC have no effect. */
#include "tui/screen/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "tui/screen/screen.h"

enum { ESC = 0x1b, ANNOUNCE_US = 300000, WAIT_US = 25000, WAIT_SSH_US = 100000 };

/* state       what has arrived                     how it is left
 * GROUND      no part of a sequence                ESC
 * ESCAPED     ESC                                  the next byte; silence: the key Escape
 * TAKEN       ESC, taken for the key Escape        an introducer: the rest of a report
 * INTERMEDIATE ESC and 0x20 to 0x2f                a final byte
 * CONTROL     ESC [, parameters                    a final byte
 * RAW         ESC [ M and characters of the mouse  the last such character
 * SHIFTED     ESC O, digits                        a final byte
 * DEVICE, SYSTEM, PROGRAM                          a byte that begins the report's text
 *             ESC P, ESC ], ESC _
 * STRING      the text of such a report            BEL, ESC or another control character
 *
 * Every state is left by ESC, which begins another sequence, and by silence. */
enum state {
	GROUND,
	ESCAPED,
	TAKEN,
	INTERMEDIATE,
	CONTROL,
	RAW,
	SHIFTED,
	DEVICE,
	SYSTEM,
	PROGRAM,
	STRING
};

enum step {
	IGNORE,    /* the byte has no effect */
	CHARACTER, /* a key, or part of a character */
	INTRODUCE, /* a sequence begins; `next` names its kind */
	COLLECT,   /* the byte is part of a parameter */
	COUNT,     /* the byte is a character of a mouse report */
	END_CONTROL,
	END_SHIFTED,
	AGAIN /* the sequence has ended; the byte is handled again in the state `next` */
};

/* The first rule that matches the state and the byte applies. decoder_byte handles ESC, so no rule
 * does. */
static const struct {
	uint8_t state, first, last, step, next;
} rules[] = {
	{ GROUND, 0x00, 0x00, IGNORE, GROUND },
	{ GROUND, 0x01, 0xff, CHARACTER, GROUND },

	{ ESCAPED, 0x20, 0x2f, IGNORE, INTERMEDIATE },
	{ ESCAPED, '[', '[', INTRODUCE, CONTROL },
	{ ESCAPED, 'O', 'O', INTRODUCE, SHIFTED },
	{ ESCAPED, 'P', 'P', INTRODUCE, DEVICE },
	{ ESCAPED, ']', ']', INTRODUCE, SYSTEM },
	{ ESCAPED, '_', '_', INTRODUCE, PROGRAM },
	{ ESCAPED, 0x00, 0xff, IGNORE, GROUND }, /* Alt and a key, which has no effect */

	{ TAKEN, '[', '[', INTRODUCE, CONTROL },
	{ TAKEN, 'O', 'O', INTRODUCE, SHIFTED },
	{ TAKEN, 'P', 'P', INTRODUCE, DEVICE },
	{ TAKEN, ']', ']', INTRODUCE, SYSTEM },
	{ TAKEN, '_', '_', INTRODUCE, PROGRAM },
	{ TAKEN, '\\', '\\', IGNORE, GROUND }, /* the second byte of ESC \, which ends a STRING */
	{ TAKEN, 0x00, 0xff, AGAIN, GROUND },

	{ INTERMEDIATE, 0x20, 0x2f, IGNORE, INTERMEDIATE },
	{ INTERMEDIATE, 0x00, 0xff, IGNORE, GROUND },

	{ CONTROL, 0x20, 0x3f, COLLECT, CONTROL },
	{ CONTROL, 0x40, 0x7e, END_CONTROL, GROUND },
	{ CONTROL, 0x00, 0xff, IGNORE, GROUND },

	{ RAW, 0x00, 0xff, COUNT, RAW },

	{ SHIFTED, '0', '9', COLLECT, SHIFTED },
	{ SHIFTED, 0x40, 0x7e, END_SHIFTED, GROUND },
	{ SHIFTED, 0x00, 0xff, IGNORE, GROUND },

	{ DEVICE, 0x20, 0x3f, IGNORE, STRING },
	{ DEVICE, '|', '|', IGNORE, STRING },
	{ DEVICE, 0x00, 0xff, AGAIN, GROUND },
	{ SYSTEM, '0', '9', IGNORE, STRING },
	{ SYSTEM, 'L', 'L', IGNORE, STRING },
	{ SYSTEM, 'l', 'l', IGNORE, STRING },
	{ SYSTEM, 0x00, 0xff, AGAIN, GROUND },
	{ PROGRAM, 'G', 'G', IGNORE, STRING },
	{ PROGRAM, 0x00, 0xff, AGAIN, GROUND },

	{ STRING, 0x00, 0x1f, IGNORE, GROUND },
	{ STRING, 0x20, 0xff, IGNORE, STRING },
};

/* The sequences of keys: ESC [ or ESC O (`introducer`), the first parameter (`number`), and the
 * last character (`final`). A row with the number 1 also matches a sequence without parameters. */
static const struct {
	char introducer, final;
	uint8_t number;
	uint32_t press;
} keys[] = {
	{ '[', 'A', 1, PRESS_ARROW_UP },    { '[', 'B', 1, PRESS_ARROW_DOWN },
	{ '[', 'C', 1, PRESS_ARROW_RIGHT }, { '[', 'D', 1, PRESS_ARROW_LEFT },
	{ '[', 'H', 1, PRESS_TO_START },    { '[', 'F', 1, PRESS_TO_END },
	{ '[', 'Z', 1, PRESS_BACK_TAB },    { '[', '~', 1, PRESS_TO_START },
	{ '[', '~', 3, PRESS_DELETE_BACK }, { '[', '~', 4, PRESS_TO_END },
	{ '[', '~', 5, PRESS_PAGE_UP },     { '[', '~', 6, PRESS_PAGE_DOWN },
	{ '[', '~', 7, PRESS_TO_START },    { '[', '~', 8, PRESS_TO_END },
	{ '[', 'u', 9, PRESS_TAB },         { '[', 'u', 13, PRESS_ENTER },
	{ '[', 'u', 27, PRESS_ESCAPE },     { '[', 'u', 127, PRESS_DELETE_BACK },
	{ 'O', 'A', 1, PRESS_ARROW_UP },    { 'O', 'B', 1, PRESS_ARROW_DOWN },
	{ 'O', 'C', 1, PRESS_ARROW_RIGHT }, { 'O', 'D', 1, PRESS_ARROW_LEFT },
	{ 'O', 'H', 1, PRESS_TO_START },    { 'O', 'F', 1, PRESS_TO_END },
	{ 'O', 'M', 1, PRESS_ENTER },
};

/* Mouse reports in which raw characters follow the sequence ESC [ `final`: a click, and two reports
 * of a mouse that marks text. */
static const struct {
	char final;
	uint8_t characters;
} raw_reports[] = { { 'M', 3 }, { 't', 2 }, { 'T', 6 } };

void decoder_init(struct decoder *d, int64_t wait_us, bool utf8)
{
	memset(d, 0, sizeof(*d));
	d->wait_us = wait_us;
	d->utf8 = utf8;
}

int64_t decoder_wait_us(const char *escdelay, bool ssh)
{
	int64_t wait_us = WAIT_US;
	char *end;
	long ms = escdelay ? strtol(escdelay, &end, 10) : -1;

	if (ms >= 0 && end != escdelay && !*end)
		wait_us = ms > 5000 ? 5000000 : (int64_t)ms * 1000;
	return ssh && wait_us < WAIT_SSH_US ? WAIT_SSH_US : wait_us;
}

/* ---- characters ---- */

static void give_key(struct terminal_event *out, uint32_t key)
{
	out->input = INPUT_KEY;
	out->key = key;
}

static void begin_sequence(struct decoder *d, uint8_t introducer, uint8_t state)
{
	d->state = state;
	d->introducer = introducer;
	d->n_parameters = 0;
	d->n_raw = d->raw_missing = 0;
}

static void take_glyph(struct decoder *d, uint32_t g, struct terminal_event *out)
{
	static const struct {
		uint8_t control, introducer, state;
	} eight_bits[] = { { 0x8f, 'O', SHIFTED }, { 0x90, 'P', DEVICE }, { 0x9b, '[', CONTROL },
			   { 0x9d, ']', SYSTEM },  { 0x9f, '_', PROGRAM } };

	if (g >= 0x80 && g < 0xa0) {
		for (size_t i = 0; i < sizeof(eight_bits) / sizeof(eight_bits[0]); i++)
			if (eight_bits[i].control == g)
				begin_sequence(d, eight_bits[i].introducer,
					       eight_bits[i].state);
	} else if (d->is_pasting) {
		if (g >= ' ' && g != PRESS_DELETE_BACK && d->n_paste + 5 < DECODER_PASTE_MOST)
			d->n_paste += (size_t)utf8_put(d->paste + d->n_paste, g);
	} else {
		give_key(out, g == '\n' ? PRESS_ENTER : g == '\b' ? PRESS_DELETE_BACK : g);
	}
}

/* Handles a byte outside a sequence. Bytes that are not UTF-8 are ignored, except 0x80 to 0x9f,
 * which begin a sequence on 8-bit terminals. */
static void take_character(struct decoder *d, uint8_t byte, struct terminal_event *out)
{
	if (byte < 0x80 || !d->utf8) {
		d->glyph_missing = 0;
		take_glyph(d, byte, out);
	} else if (byte >= 0xc2 && byte < 0xf5) {
		d->glyph_missing = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
		d->glyph = byte & (0x3fu >> d->glyph_missing);
	} else if (d->glyph_missing > 0 && byte < 0xc0) {
		d->glyph = d->glyph << 6 | (byte & 0x3f);
		if (--d->glyph_missing == 0 && d->glyph < 0x110000)
			take_glyph(d, d->glyph, out);
	} else {
		d->glyph_missing = 0;
		if (byte < 0xa0)
			take_glyph(d, byte, out);
	}
}

static void end_paste(struct decoder *d, struct terminal_event *out)
{
	d->is_pasting = false;
	d->paste[d->n_paste] = '\0';
	out->input = INPUT_PASTE;
	out->paste = d->paste;
}

/* ---- sequences ---- */

/* Handles a mouse report. button: xterm's code, without its offset of 32. x and y count from 1. */
static void take_mouse(const struct decoder *d, long button, long x, long y,
		       struct terminal_event *out)
{
	if (!d->mouse || x < 1 || y < 1 || x > SCREEN_MOST || y > SCREEN_MOST)
		return;
	if (button == 64 || button == 65) {
		give_key(out, button == 64 ? PRESS_ARROW_UP : PRESS_ARROW_DOWN);
	} else if (button == 0) {
		out->input = INPUT_CLICK;
		out->x = (int)x - 1;
		out->y = (int)y - 1;
	}
}

/* Counts the characters of a raw mouse report. A column beyond 223 may arrive as the byte 0, or as
 * a UTF-8 character of two bytes, which counts as one. */
static void take_raw(struct decoder *d, uint8_t byte, struct terminal_event *out)
{
	bool continues = d->n_raw > 0 && byte >= 0x80 && byte < 0xc0 &&
			 d->raw[d->n_raw - 1] >= 0xc2 && d->raw[d->n_raw - 1] < 0xe0;

	if (continues) {
		d->raw[d->n_raw - 1] = 0;
		return;
	}
	d->raw[d->n_raw++] = byte;
	if (--d->raw_missing > 0)
		return;
	d->state = GROUND;
	if (d->n_raw == 3)
		take_mouse(d, d->raw[0] - 32, d->raw[1] - 32, d->raw[2] - 32, out);
}

/* Parses up to three parameters separated by ';'. In "1;5:3", the second parameter is 5, and *event
 * is 3. *event says whether the key was pressed or released. Returns false if the text has another
 * form. */
static bool read_parameters(const struct decoder *d, const char *text, long values[3], long *event)
{
	int n = 0;

	values[0] = values[1] = values[2] = 0;
	*event = 0;
	if (d->n_parameters >= DECODER_PARAMETERS)
		return false;
	for (; *text && n < 3; n++) {
		char *end;

		if (*text != ';' && *text != ':' && (*text < '0' || *text > '9'))
			return false;
		values[n] = strtol(text, &end, 10);
		if (n == 1 && *end == ':')
			*event = strtol(end + 1, &end, 10);
		end += strspn(end, ":0123456789");
		if (*end && *end != ';')
			return false;
		text = end + (*end == ';');
	}
	return !*text;
}

/* Finds the key of a sequence. A key with a modifier (Alt, Ctrl) is ignored, except Ctrl with a
 * letter and Shift with Tab. Caps Lock and Num Lock do not count as modifiers. */
static void find_key(char introducer, char final, const long values[3], struct terminal_event *out)
{
	long number = values[0] || final == '~' || final == 'u' ? values[0] : 1,
	     modifiers = values[1] ? values[1] - 1 : 0;

	modifiers &= ~(64L | 128L);
	/* The form in which xterm sends a key if its option modifyOtherKeys is set. */
	if (final == '~' && number == 27 && values[2]) {
		final = 'u';
		number = values[2];
	}
	if (final == 'u' && modifiers == 4 && number >= 'a' && number <= 'z') {
		give_key(out, (uint32_t)(number - 'a' + 1));
		return;
	}
	if ((final == 'Z' || (final == 'u' && number == PRESS_TAB)) && modifiers == 1) {
		give_key(out, PRESS_BACK_TAB);
		return;
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].introducer == introducer && keys[i].final == final &&
		    keys[i].number == number && modifiers == 0)
			give_key(out, keys[i].press);
}

static void end_shifted(struct decoder *d, char final, struct terminal_event *out)
{
	static const long none[3] = { 0 };

	if (d->n_parameters == 0 && !d->is_pasting)
		find_key('O', final, none, out);
}

/* Handles the last character of a sequence that began with ESC [. The sequence is a key, a click,
 * the start or end of pasted text, or a report. */
static void end_control(struct decoder *d, char final, struct terminal_event *out)
{
	const char *text = d->parameters;
	bool sgr = d->n_parameters > 0 && *text == '<';
	long values[3], event;

	for (size_t i = 0; d->n_parameters == 0 && i < sizeof(raw_reports) / sizeof(raw_reports[0]);
	     i++) {
		if (raw_reports[i].final == final) {
			d->raw_missing = raw_reports[i].characters;
			d->state = RAW;
			return;
		}
	}
	/* The Linux console sends F1 to F5 as ESC [ [ and a letter. */
	if (final == '[' && d->n_parameters == 0) {
		d->raw_missing = 1;
		d->state = RAW;
		return;
	}
	if (d->n_parameters < DECODER_PARAMETERS)
		d->parameters[d->n_parameters] = '\0';
	if (!read_parameters(d, sgr ? text + 1 : text, values, &event) || event == 3)
		return; /* a report, or a key that was released */
	if (final == '~' && values[0] == 200) {
		d->is_pasting = true;
		d->n_paste = 0;
	} else if (final == '~' && values[0] == 201 && d->is_pasting) {
		end_paste(d, out);
	} else if (final == 'M' && !d->is_pasting) {
		take_mouse(d, sgr ? values[0] : values[0] - 32, values[1], values[2], out);
	} else if (!sgr && !d->is_pasting) {
		find_key('[', final, values, out);
	}
}

/* ---- bytes and silence ---- */

static void collect(struct decoder *d, uint8_t byte)
{
	if (d->n_parameters < DECODER_PARAMETERS)
		d->parameters[d->n_parameters++] = (char)byte;
}

/* Applies the first rule that matches the state and the byte. */
static void apply_rule(struct decoder *d, uint8_t byte, struct terminal_event *out)
{
	size_t i = 0;

	while (rules[i].state != d->state || byte < rules[i].first || byte > rules[i].last)
		i++;
	d->state = rules[i].next;
	switch ((enum step)rules[i].step) {
	case CHARACTER:
		take_character(d, byte, out);
		break;
	case INTRODUCE:
		begin_sequence(d, byte, d->state);
		break;
	case COLLECT:
		collect(d, byte);
		break;
	case COUNT:
		take_raw(d, byte, out);
		break;
	case END_CONTROL:
		end_control(d, (char)byte, out);
		break;
	case END_SHIFTED:
		end_shifted(d, (char)byte, out);
		break;
	case AGAIN:
		apply_rule(d, byte, out);
		break;
	case IGNORE:
		break;
	}
}

void decoder_byte(struct decoder *d, uint8_t byte, int64_t now_us, struct terminal_event *out)
{
	bool was_announced = d->is_announced;

	memset(out, 0, sizeof(*out));
	d->last_us = now_us;
	d->is_announced = false;
	d->is_resumed = d->state == TAKEN || (d->is_resumed && d->state != GROUND);
	if (byte == ESC) {
		if (d->state == ESCAPED && !d->is_pasting)
			give_key(out, PRESS_ESCAPE);
		d->state = ESCAPED;
		d->is_resumed = false;
		d->glyph_missing = 0;
		return;
	}
	/* The console has asked the operator to press [ again (INPUT_UNFINISHED), so the second [
	 * is a key. */
	if (was_announced && d->is_resumed && d->state == CONTROL && byte == '[' &&
	    d->n_parameters == 0)
		d->state = GROUND;
	apply_rule(d, byte, out);
}

/* Returns true if a sequence, a character or pasted text is incomplete. A lone ESC does not
 * count. */
static bool is_unfinished(const struct decoder *d)
{
	return (d->state != GROUND && d->state != TAKEN) || d->is_pasting || d->glyph_missing;
}

int64_t decoder_deadline_us(const struct decoder *d)
{
	if (d->state == ESCAPED)
		return d->last_us + d->wait_us;
	if (is_unfinished(d) && !d->is_announced)
		return d->last_us + ANNOUNCE_US;
	return is_unfinished(d) || d->state == TAKEN ? d->last_us + DECODER_SILENCE_US
						     : INT64_MAX;
}

/* Reports that the rest of a sequence is missing. If only one character has arrived since the key
 * Escape, this character can be a key, and the event contains it. */
static void announce(struct decoder *d, struct terminal_event *out)
{
	bool one = d->n_parameters == 0 &&
		   (d->state == CONTROL || (d->state >= SHIFTED && d->state <= PROGRAM));

	d->is_announced = true;
	out->input = INPUT_UNFINISHED;
	out->key = d->is_resumed && one ? d->introducer : 0;
}

void decoder_silence(struct decoder *d, int64_t now_us, struct terminal_event *out)
{
	memset(out, 0, sizeof(*out));
	if (now_us < decoder_deadline_us(d))
		return;
	if (d->state == ESCAPED) {
		d->state = TAKEN;
		if (d->is_pasting)
			end_paste(d, out);
		else
			give_key(out, PRESS_ESCAPE);
	} else if (is_unfinished(d) && !d->is_announced) {
		announce(d, out);
	} else {
		d->state = GROUND;
		d->glyph_missing = 0;
		if (d->is_pasting)
			end_paste(d, out);
	}
}
