/* Makes reports as described by xterm's ctlseqs, kitty's keyboard protocol and the VT510 manual.
 * Their texts use letters that are keys for actions on the run: P, X, F, R, I, and the full
 * stop. */
#include "tui/tests/reports.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int number(struct rng *r, uint32_t most)
{
	return (int)rng_below(r, most);
}

static size_t put(uint8_t out[REPORT_MOST], const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static size_t put(uint8_t out[REPORT_MOST], const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf((char *)out, REPORT_MOST, format, args);
	va_end(args);
	return (size_t)n;
}

/* Writes a click as six bytes. For a column beyond 223, xterm sends 0, and its UTF-8 protocol sends
 * two bytes. */
static size_t put_click(struct rng *r, uint8_t out[REPORT_MOST])
{
	size_t n = put(out, "\033[M");

	out[n++] = (uint8_t)(32 + rng_below(r, 68));
	for (int i = 0; i < 2; i++) {
		uint32_t at = 33 + rng_below(r, 500);

		if (at < 256 && rng_below(r, 2)) {
			out[n++] = (uint8_t)at;
		} else if (rng_below(r, 2)) {
			out[n++] = 0;
		} else if (at < 128) {
			out[n++] = (uint8_t)at;
		} else {
			out[n++] = (uint8_t)(0xc0 | at >> 6);
			out[n++] = (uint8_t)(0x80 | (at & 63));
		}
	}
	return n;
}

static size_t put_mouse(struct rng *r, uint8_t out[REPORT_MOST])
{
	int b = number(r, 68), x = number(r, 400), y = number(r, 200);

	switch (rng_below(r, 6)) {
	case 0:
		return put(out, "\033[<%d;%d;%dM", b, x, y);
	case 1:
		return put(out, "\033[<%d;%d;%dm", b, x, y);
	case 2:
		return put(out, "\033[%d;%d;%dM", 32 + b, x, y);
	case 3:
		return put(out, "\033[%d;%d;%d;%d;%d&w", b, b, x, y, 1);
	case 4:
		return put(out, rng_below(r, 2) ? "\033[tPX" : "\033[TPXPXRI");
	default:
		return put_click(r, out);
	}
}

static size_t put_string(struct rng *r, uint8_t out[REPORT_MOST])
{
	static const char *const texts[] = {
		"\033P>|XTerm(390) P.X", "\033P1+r544e=787465726D;P.X", "\033P0$r0;1;31mPX",
		"\033P1$rP.X q",	 "\033P!|00000000",	     "\033]11;rgb:ffff/PPPP/XXXX",
		"\033]4;1;rgb:80/P/X",   "\033]52;c;UFguUElS",	     "\033]lPX.title FRI",
		"\033]LPX.icon",	 "\033]10;?P.X",	     "\033_Gi=31;OK P.X",
		"\033_Gi=1;ENOENT:P",
	};
	const char *text = texts[rng_below(r, sizeof(texts) / sizeof(texts[0]))];

	return put(out, "%s%s", text, text[1] == ']' && rng_below(r, 2) ? "\a" : "\033\\");
}

static size_t put_key(struct rng *r, uint8_t out[REPORT_MOST])
{
	switch (rng_below(r, 7)) {
	case 0:
		return put(out, "\033[%d;%du", 'A' + number(r, 58), 1 + number(r, 4));
	case 1:
		return put(out, "\033[%d;%d:3u", number(r, 128), 1 + number(r, 256));
	case 2:
		return put(out, "\033[%d::%d;%d:1;%du", 'P', 'X', 2, 'P');
	case 3:
		return put(out, "\033[27;%d;%d~", 2 + number(r, 3), 'A' + number(r, 58));
	case 4:
		return put(out, "\033[1;%d%c", 2 + number(r, 30), "ABCDFHPQRS"[rng_below(r, 10)]);
	case 5:
		return put(out, "\033O%c", "PQRSpqrstXjkI"[rng_below(r, 13)]);
	default:
		return put(out, "\033[%d~", 11 + number(r, 14));
	}
}

static size_t put_control(struct rng *r, uint8_t out[REPORT_MOST])
{
	int a = number(r, 300), b = number(r, 300);

	switch (rng_below(r, 11)) {
	case 0:
		return put(out, "\033[%c", rng_below(r, 2) ? 'I' : 'O');
	case 1:
		return put(out, "\033[%d;%dR", a, b);
	case 2:
		return put(out, "\033[?%d;%d;1R", a, b);
	case 3:
		return put(out, "\033[?64;1;2;6;9;15;18;21;22c");
	case 4:
		return put(out, "\033[>41;390;0c");
	case 5:
		return put(out, "\033[?%d;%d$y", a, number(r, 5));
	case 6:
		return put(out, "\033[0n");
	case 7:
		return put(out, "\033[?997;%dn", 1 + number(r, 2));
	case 8:
		return put(out, "\033[8;%d;%dt", a, b);
	case 9:
		return put(out, "\033[48;%d;%d;%d;%dt", a, b, a * 16, b * 8);
	default:
		return put(out, "\033[?%du", number(r, 32));
	}
}

size_t report_make(struct rng *r, uint8_t out[REPORT_MOST])
{
	size_t n;

	switch (rng_below(r, 5)) {
	case 0:
		n = put_mouse(r, out);
		break;
	case 1:
		n = put_string(r, out);
		break;
	case 2:
		n = put_key(r, out);
		break;
	case 3:
		n = put(out, "\033[200~P.X:stop\r\nFRI\033[201~");
		break;
	default:
		n = put_control(r, out);
	}
	return rng_below(r, 3) == 0 && n > 2 ? 1 + rng_below(r, (uint32_t)n - 1) : n;
}
