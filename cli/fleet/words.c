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

/* The beginning of a line for a login shell. sh undoes the escapes and runs the encoded line. */
static const char decoder[] = "exec sh -c 'eval \"$(printf %b \"$0\")\"' '";

/* Appends a byte. Login shells differ in what they do with some bytes even inside single quotes:
 * csh ends the command at a line's end and replaces '!', and fish reads a backslash as an escape.
 * Therefore these bytes and those outside ASCII become escapes of printf, which all shells pass
 * on. */
static size_t encode_byte(char *out, char byte)
{
	if (byte >= ' ' && byte < 0x7f && !strchr("\\'!", byte)) {
		*out = byte;
		return 1;
	}
	return (size_t)snprintf(out, 6, "\\0%03o", (unsigned)(unsigned char)byte);
}

/* Appends a word in single quotes, encoded. A single quote in the word becomes '\'' . */
static size_t encode_word(char *out, const char *word)
{
	size_t n = encode_byte(out, '\'');

	for (; *word; word++) {
		const char *text = *word == '\'' ? "'\\''" : (char[]){ *word, '\0' };

		for (; *text; text++)
			n += encode_byte(out + n, *text);
	}
	return n + encode_byte(out + n, '\'');
}

char *words_login_line(char *const *words)
{
	size_t room = sizeof(decoder) + 2, n = sizeof(decoder) - 1;
	char *out;

	for (size_t i = 0; words[i]; i++)
		room += 20 * strlen(words[i]) + 11; /* a quote becomes 4 escapes of 5 bytes */
	out = alloc_new(room);
	memcpy(out, decoder, n);
	for (size_t i = 0; words[i]; i++) {
		if (i > 0)
			out[n++] = ' ';
		n += encode_word(out + n, words[i]);
	}
	memcpy(out + n, "'", 2);
	return out;
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
