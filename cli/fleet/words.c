/* Quotes words for a remote shell: ssh passes one line, and the user's login shell splits it.
 *
 * Also cleans the output of hosts. A host may be hostile, and the operator's terminal shows its
 * output.
 */
#include "cli/fleet/words.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
	/* A part of the encoded line ends once it has this many bytes. The last escape may make it
	 * a few bytes longer. The csh of BSD refuses a word of more than 8,188 bytes. */
	PART = 900,
	ESCAPE = 5 /* size of an escape */
};

/* The beginning of a line for a login shell. The rest of the line is a list of quoted parts. sh
 * joins the parts, undoes their escapes and runs the result. */
static const char decoder[] = "exec sh -c 'eval \"$(printf %b \"$@\")\"' fleet '";

struct line {
	char *text;
	size_t n;    /* number of bytes so far */
	size_t part; /* index of the first byte of the last part */
};

/* Appends a byte, in a new part if the last part is full. Login shells differ in what they do with
 * some bytes even inside single quotes: csh ends the command at a line's end and replaces '!', and
 * fish reads a backslash as an escape. Therefore these bytes and those outside ASCII become escapes
 * of printf, which all shells pass on. */
static void encode_byte(struct line *out, char byte)
{
	if (out->n - out->part >= PART) {
		memcpy(out->text + out->n, "' '", 3);
		out->n += 3;
		out->part = out->n;
	}
	if (byte >= ' ' && byte < 0x7f && !strchr("\\'!", byte))
		out->text[out->n++] = byte;
	else
		out->n += (size_t)snprintf(out->text + out->n, ESCAPE + 1, "\\0%03o",
					   (unsigned)(unsigned char)byte);
}

/* Encodes a word in single quotes. A single quote inside the word becomes '\'': the end of the
 * quoted text, an escaped quote, and the start of the next quoted text. */
static void encode_word(struct line *out, const char *word)
{
	encode_byte(out, '\'');
	for (; *word; word++) {
		const char *text = *word == '\'' ? "'\\''" : (char[]){ *word, '\0' };

		for (; *text; text++)
			encode_byte(out, *text);
	}
	encode_byte(out, '\'');
}

char *words_login_line(char *const *words)
{
	struct line out = { .n = sizeof(decoder) - 1, .part = sizeof(decoder) - 1 };
	size_t room = 0;

	for (size_t i = 0; words[i]; i++)
		room += ESCAPE * (4 * strlen(words[i]) + 3); /* a quote becomes 4 escapes */
	out.text = alloc_new(sizeof(decoder) + room + 3 * (room / PART) + 1);
	memcpy(out.text, decoder, out.n);
	for (size_t i = 0; words[i]; i++) {
		if (i > 0)
			encode_byte(&out, ' ');
		encode_word(&out, words[i]);
	}
	memcpy(out.text + out.n, "'", 2);
	return out.text;
}

/* Returns the length in bytes of the UTF-8 character at s. Returns 0 if the bytes are not UTF-8 or
 * the terminal must not get the character. */
static size_t shown_length(const unsigned char *s, size_t left)
{
	size_t n = s[0] < 0x80                   ? 1
		   : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
		   : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
		   : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
						 : 0;

	if (n == 0 || n > left || (n == 1 && (s[0] < 0x20 || s[0] == 0x7f)))
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if (n == 2 && s[0] == 0xc2 && s[1] < 0xa0)
		return 0; /* C1 control characters */
	if (n == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0)))
		return 0;
	if (n == 3 && s[0] == 0xe2 && s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9)
		return 0; /* U+2066 to U+2069 change the direction of text */
	if (n == 3 && s[0] == 0xe2 && s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae)
		return 0; /* U+2028 to U+202E break lines and change the direction of text */
	if (n == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90)))
		return 0;
	return n;
}

void words_clean(const char *text, size_t size, char *out, size_t room)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = 0;

	while (size > 0 && text[size - 1] == '\r')
		size--;
	for (size_t i = 0; i < size;) {
		size_t length = shown_length(s + i, size - i);

		if (n + (length ? length : 1) >= room)
			break;
		if (length == 0)
			out[n++] = s[i] == '\t' ? ' ' : '?';
		else
			memcpy(out + n, s + i, length);
		n += length;
		i += length ? length : 1;
	}
	while (n > 0 && out[n - 1] == ' ')
		n--;
	out[n] = '\0';
}
