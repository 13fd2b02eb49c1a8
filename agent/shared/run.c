/* run.c - computes the emulated times of transfers in any format. WELCOME gives the times for
 * activations in fp32. */
#include "agent/shared/run.h"

double run_delay_s(const struct run *r, enum tensor_format wire, uint16_t to)
{
	double spared = 1 - tensor_format_activation_share(wire);

	return r->times.delay_s[to] > 0
		       ? (double)r->times.delay_s[to] - spared * (double)r->times.bytes_s[to]
		       : 0;
}
