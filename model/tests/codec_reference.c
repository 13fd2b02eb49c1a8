/* Encodes and decodes as model/codec/codec.h defines. Quotients and sums of floats are computed in
 * double and then rounded to float, which changes nothing (53 bits are more than twice 24 plus 2;
 * Figueroa, 1995). */
#include "model/tests/codec_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint16_t no_number = 0x7fc0;

static double value_of(uint16_t half)
{
	int exponent = half >> 7 & 0xff, fraction = half & 0x7f;
	double size = exponent == 0 ? ldexp(fraction, -133) : ldexp(128 + fraction, exponent - 134);

	if (exponent == 0xff)
		size = fraction ? (double)NAN : (double)INFINITY;
	return half >> 15 ? -size : size;
}

/* Returns the bf16 that is nearest to a finite number, by a search. If two are equally near,
 * returns the even number. */
static uint16_t nearest_half(double x)
{
	double size = fabs(x);
	uint16_t low = 0, high = 0x7f80;

	while (high - low > 1) { /* the loop keeps value_of(low) <= size < value_of(high) */
		uint16_t middle = (uint16_t)((low + high) / 2);

		if (value_of(middle) <= size)
			low = middle;
		else
			high = middle;
	}
	if (size - value_of(low) > value_of(high) - size ||
	    (size - value_of(low) == value_of(high) - size && low % 2))
		low = high;
	return (uint16_t)(low | (x < 0 ? 0x8000 : 0));
}

static void put_bits(unsigned char *to, size_t at, unsigned bits, unsigned value)
{
	for (unsigned b = 0; b < bits; b++)
		if (value >> b & 1)
			to[(at + b) / 8] = (unsigned char)(to[(at + b) / 8] | 1 << (at + b) % 8);
}

static int take_bits(const unsigned char *from, size_t at, unsigned bits)
{
	int value = 0;

	for (unsigned b = 0; b < bits; b++)
		value |= (from[(at + b) / 8] >> (at + b) % 8 & 1) << b;
	return value >= 1 << (bits - 1) ? value - (1 << bits) : value;
}

static void put_half(unsigned char *to, uint16_t half)
{
	to[0] = (unsigned char)(half & 0xff);
	to[1] = (unsigned char)(half >> 8);
}

static uint16_t take_half(const unsigned char *from)
{
	return (uint16_t)(from[0] | from[1] << 8);
}

static uint16_t mean_of(const float *x, size_t rows, size_t channels, size_t channel)
{
	float sum = 0, mean;

	for (size_t r = 0; r < rows; r++)
		sum = (float)((double)sum + (double)x[r * channels + channel]);
	mean = (float)((double)sum / (double)rows);
	if (!(fabs((double)mean) < 0x1p126))
		return no_number;
	return fabs(value_of(nearest_half((double)mean))) < 0x1p-100 ? 0
								     : nearest_half((double)mean);
}

static size_t encode_group(unsigned char *to, const float *x, size_t n, unsigned bits)
{
	int most = (1 << (bits - 1)) - 1;
	size_t bytes = (n * bits + 7) / 8;
	double largest = 0, scale;
	int usable = 1;

	for (size_t i = 0; i < n; i++) {
		usable = usable && fabs((double)x[i]) < 0x1p126;
		largest = fabs((double)x[i]) > largest ? fabs((double)x[i]) : largest;
	}
	memset(to, 0, 2 + bytes);
	if (!usable) {
		put_half(to, no_number);
		return 2 + bytes;
	}
	scale = value_of(nearest_half((double)(float)(largest / most)));
	if (scale < 0x1p-100)
		return 2 + bytes;
	put_half(to, nearest_half(scale));
	for (size_t i = 0; i < n; i++) {
		double q = rint((double)(float)((double)x[i] / scale));

		q = q > most ? most : q < -most ? -most : q;
		put_bits(to + 2, i * bits, bits, (unsigned)(int)q & ((1u << bits) - 1));
	}
	return 2 + bytes;
}

size_t reference_encode(unsigned char *to, const float *x, size_t n, unsigned bits, size_t group,
			size_t channels)
{
	float *centred = malloc((n + 1) * sizeof(*centred));
	size_t bytes = 2 * channels;

	memcpy(centred, x, n * sizeof(*x));
	for (size_t c = 0; c < channels; c++) {
		uint16_t mean = mean_of(x, n / channels, channels, c);

		put_half(to + 2 * c, mean);
		for (size_t i = c; i < n; i += channels)
			centred[i] = (float)((double)x[i] - value_of(mean));
	}
	for (size_t i = 0; i < n; i += group)
		bytes += encode_group(to + bytes, centred + i, n - i < group ? n - i : group, bits);
	free(centred);
	return bytes;
}

size_t reference_decode(float *to, const unsigned char *from, size_t n, unsigned bits, size_t group,
			size_t channels)
{
	size_t at = 2 * channels;

	for (size_t i = 0; i < n; i += group) {
		size_t some = n - i < group ? n - i : group;
		double scale = value_of(take_half(from + at));

		for (size_t k = 0; k < some; k++) {
			float y = (float)(take_bits(from + at + 2, k * bits, bits) * scale);

			if (!isfinite(scale))
				y = NAN;
			if (channels)
				y = (float)((double)y +
					    value_of(take_half(from + 2 * ((i + k) % channels))));
			to[i + k] = isnan(y) ? NAN : y;
		}
		at += 2 + (some * bits + 7) / 8;
	}
	return at;
}
