/* decoder.h - splits the terminal's bytes into keys, clicks and pasted text.
 *
 * A terminal also sends reports: focus, the cursor's position, the mouse, its name and colours. No
 * report may act as a key, because the key P pauses the training. The decoder therefore follows the
 * state machine of a VT500 (Paul Williams, https://vt100.net/emu/dec_ansi_parser), with two changes
 * for input:
 *
 * - An ESC that is alone for `wait_us` is the key Escape. But a slow network can also separate the
 *   ESC of a report from its rest. Therefore, for DECODER_SILENCE_US after such an ESC, a character
 *   that can begin the rest of a report is not taken as a key.
 * - A sequence ends without effect when nothing has followed for DECODER_SILENCE_US.
 *
 * The functions have no side effects: bytes and times are arguments.
 */
#ifndef TUI_DECODER_H
#define TUI_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of keys. A character's number is its code point; the number of Ctrl with a letter is 1
 * to 26. The other keys have numbers above Unicode. */
enum press {
	PRESS_TAB = 9,
	PRESS_ENTER = 13,
	PRESS_ESCAPE = 27,
	PRESS_DELETE_BACK = 127,
	PRESS_ARROW_UP = 0x110000,
	PRESS_ARROW_DOWN,
	PRESS_ARROW_LEFT,
	PRESS_ARROW_RIGHT,
	PRESS_PAGE_UP,
	PRESS_PAGE_DOWN,
	PRESS_TO_START,
	PRESS_TO_END,
	PRESS_BACK_TAB,
	PRESS_LAST
};

/* DECODER_SILENCE_US: longest time between two bytes of a sequence. */
enum { DECODER_SILENCE_US = 10000000, DECODER_PASTE_MOST = 4096, DECODER_PARAMETERS = 64 };

enum terminal_input { INPUT_NONE, INPUT_KEY, INPUT_CLICK, INPUT_PASTE, INPUT_UNFINISHED };

struct terminal_event {
	enum terminal_input input;
	/* INPUT_KEY: a character or one of enum press.
	 *
	 * INPUT_UNFINISHED: the rest of a report or of pasted text has been missing for 0.3 s. A
	 * key that is pressed now may be taken for a part of this rest. If a single character has
	 * followed the key Escape, this character is a key or begins a report, and `key` is the
	 * character. Otherwise `key` is 0.
	 */
	uint32_t key;
	int x, y;          /* INPUT_CLICK: the cell that was clicked; (0, 0) is the top left */
	const char *paste; /* INPUT_PASTE: UTF-8, borrowed until the decoder's next call */
};

struct decoder {
	int64_t wait_us;
	bool utf8;  /* true: the terminal sends UTF-8; false: each byte is a character */
	bool mouse; /* mouse reports become events; false: they have no effect */
	/* The fields below are private to the decoder. */
	uint8_t state, introducer; /* present state (enum state); the character after ESC */
	/* True: the ESC of this sequence was reported as the key Escape. */
	bool is_resumed;
	bool is_announced; /* true: INPUT_UNFINISHED was reported after the last byte */
	bool is_pasting;
	int64_t last_us; /* time at which the newest byte was handled */
	char parameters[DECODER_PARAMETERS];
	size_t n_parameters;
	/* The characters of a raw mouse report; how many have arrived; how many are missing. */
	uint8_t raw[6], n_raw, raw_missing;
	uint32_t glyph; /* bits of an incomplete UTF-8 character */
	/* Number of bytes that the UTF-8 character still lacks. */
	uint8_t glyph_missing;
	char paste[DECODER_PASTE_MOST];
	size_t n_paste;
};

/* Initialises a decoder. wait_us: an ESC after which nothing follows for this time is the key
 * Escape. */
void decoder_init(struct decoder *d, int64_t wait_us, bool utf8);
/* Returns wait_us for decoder_init. escdelay: value of the variable ESCDELAY, a number of
 * milliseconds. If the value is NULL or not a number, returns 25 ms. Over ssh, returns at least
 * 100 ms. */
int64_t decoder_wait_us(const char *escdelay, bool ssh);
/* Handles a byte that arrived at now_us, and sets *out to the event that it causes, if any. */
void decoder_byte(struct decoder *d, uint8_t byte, int64_t now_us, struct terminal_event *out);
/* Sets *out to the event that follows from silence up to now_us, if any. Call it when no byte has
 * arrived. */
void decoder_silence(struct decoder *d, int64_t now_us, struct terminal_event *out);
/* Returns the time at which decoder_silence will have an effect if no byte arrives; INT64_MAX:
 * never. */
int64_t decoder_deadline_us(const struct decoder *d);

#endif
