/* decoder.h - splits the terminal's bytes into keys, clicks and pasted text.
 *
 * A terminal also sends reports: focus, the cursor's position, the mouse, its name and colours. No
 * report may act as a key, because P pauses a training. The decoder therefore follows the state
 * machine of a VT500 (Paul Williams, https://vt100.net/emu/dec_ansi_parser), with two changes for
 * input:
 *
 * - An ESC that is alone for `wait_us` is the key Escape. A slow network can also separate the ESC
 *   of a report from its rest. A byte that can continue an ESC is therefore not a key for
 *   DECODER_SILENCE_US after it: it may begin the rest of a report.
 * - A sequence ends without effect when nothing has followed for DECODER_SILENCE_US.
 *
 * The functions are pure: bytes and times are arguments.
 */
#ifndef TUI_DECODER_H
#define TUI_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of keys. A character's number is its code point and a control key's is its code
 * (1..26). Other keys have numbers above Unicode. */
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

/* The pieces of one sequence may arrive this far apart. */
enum { DECODER_SILENCE_US = 10000000, DECODER_PASTE_MOST = 4096, DECODER_PARAMETERS = 64 };

enum terminal_input { INPUT_NONE, INPUT_KEY, INPUT_CLICK, INPUT_PASTE, INPUT_UNFINISHED };

struct terminal_event {
	enum terminal_input input;
	/* INPUT_KEY: a character or enum press. INPUT_UNFINISHED: the rest of a report or of pasted
	 * text has been missing for 0.3 s, and a key that is pressed now may be taken for a part of
	 * it; `key` is the character after Escape that can be a key or begin a report, or 0. */
	uint32_t key;
	int x, y;          /* INPUT_CLICK: the cell, counted from the top left corner */
	const char *paste; /* INPUT_PASTE: UTF-8, borrowed until the decoder's next call */
};

struct decoder {
	int64_t wait_us;
	bool utf8;  /* true: the terminal sends UTF-8; false: one byte is one character */
	bool mouse; /* mouse reports are evaluated; otherwise they have no effect */
	/* the decoder's private state */
	uint8_t state, introducer; /* present state (enum state), and the byte after ESC */
	bool is_resumed;           /* the ESC of this sequence was taken for the key Escape */
	bool is_announced;         /* INPUT_UNFINISHED was reported since the last byte */
	bool is_pasting;
	int64_t last_us; /* when the last byte arrived */
	char parameters[DECODER_PARAMETERS];
	size_t n_parameters;
	/* Characters after the CSI M of a mouse report; number of them received; number still
	 * missing. */
	uint8_t raw[6], n_raw, raw_missing;
	uint32_t glyph;                     /* UTF-8: the bits received so far */
	uint8_t glyph_missing;              /* UTF-8: number of bytes still missing */
	char paste[DECODER_PASTE_MOST];
	size_t n_paste;
};

/* Initialises a decoder. wait_us: how long an ESC must be alone to be the key Escape. */
void decoder_init(struct decoder *d, int64_t wait_us, bool utf8);
/* Returns the time to wait for Escape: the variable ESCDELAY in milliseconds, or 25 ms if its text
 * is NULL or not a number; over ssh at least 100 ms. */
int64_t decoder_wait_us(const char *escdelay, bool ssh);
/* Handles a byte that arrived at now_us. A byte causes at most one event. */
void decoder_byte(struct decoder *d, uint8_t byte, int64_t now_us, struct terminal_event *out);
/* Gives the event that is caused by silence until now_us. Call it when no byte is waiting. */
void decoder_silence(struct decoder *d, int64_t now_us, struct terminal_event *out);
/* Returns when decoder_silence will have an effect; INT64_MAX: never. */
int64_t decoder_deadline_us(const struct decoder *d);

#endif
