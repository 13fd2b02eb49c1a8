/* flip.c - flips a bit in a tensor message, as faulty memory of the sender would. The receiver then
 * computes wrong weights, which the comparison of replicas must find. */
#include <string.h>

#include "agent/weights/fetch.h"
#include "tests/sim/sim.h"
#include "wire/msg.h"

enum { MANTISSA_BITS = 23, HEAD_BYTES = 256 };

bool flip_tensor(void *data, size_t size)
{
	struct msg m;
	uint32_t word, words;
	uint8_t *at, head[HEAD_BYTES];
	long n;

	if (msg_decode(&m, data, size) != 0)
		return false;
	if (m.type != MSG_TENSOR ||
	    (m.u.tensor.kind != TENSOR_SUM && m.u.tensor.kind != TENSOR_STATE) ||
	    m.body_size < 3 * sizeof(word)) {
		msg_clear(&m);
		return false;
	}
	at = (uint8_t *)data + (size - m.body_size);
	words = (uint32_t)(m.body_size / sizeof(word));
	if (m.u.tensor.kind == TENSOR_STATE)
		words /= 3; /* flips only weights, because no hash covers the optimizer's moments */
	at += sizeof(word) * rng_below(&sim.rng, words);
	memcpy(&word, at, sizeof(word));
	word ^= UINT32_C(1) << rng_below(&sim.rng, MANTISSA_BITS);
	memcpy(at, &word, sizeof(word));
	if (m.u.tensor.kind == TENSOR_STATE)
		m.u.tensor.hash = fetch_hash(m.body, m.body_size / sizeof(word));
	n = msg_encode(&m, head, sizeof(head));
	if (n > 0)
		memcpy(data, head, (size_t)n);
	msg_clear(&m);
	return true;
}
