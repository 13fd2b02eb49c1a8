/* libFuzzer: checks that the message decoder accepts only bytes that the encoder would
 * produce. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct msg m;
	unsigned char *again;
	size_t n;

	if (msg_decode(&m, data, size) != 0)
		return 0;
	n = msg_size(&m);
	if (n != size - m.body_size)
		abort();
	again = malloc(n);
	if (again && (msg_encode(&m, again, n) != (long)n || memcmp(again, data, n) != 0))
		abort();
	free(again);
	msg_clear(&m);
	return 0;
}
