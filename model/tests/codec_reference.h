/* codec_reference.h - the definitions of model/codec/codec.h, number by number and bit by bit, in
 * double: slow, and independent of the code that it checks.
 */
#ifndef MODEL_TESTS_CODEC_REFERENCE_H
#define MODEL_TESTS_CODEC_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

/* channels: number of means, one for each channel; 0: the encoded bytes have no means. Both
 * functions return the number of bytes written or read. */
size_t reference_encode(unsigned char *to, const float *x, size_t n, unsigned bits, size_t group,
			size_t channels);
size_t reference_decode(float *to, const unsigned char *from, size_t n, unsigned bits, size_t group,
			size_t channels);

#endif
