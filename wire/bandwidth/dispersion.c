/* dispersion.c - computes the bandwidth of a link from the arrival times of a train of packets.
 * This module uses no sockets (packet_train.c owns them), so tests can pass any arrival times. */
#include "wire/bandwidth/dispersion.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define WINDOWS 4
/* Minimum number of gaps between packets in a window. A single gap is too inaccurate, because
 * gaps vary. */
#define WINDOW_LEAST 2
/* Smallest gap between two packets that counts, in nanoseconds. No clock resolves a smaller gap,
 * and a gap of 0 would mean an infinite rate. */
#define LEAST_GAP_NS 100
#define PACKET_TRAIN_MOST 1024
#define SETTLE_MOST 64

/* Two rates agree if the larger rate is less than `alike` times the smaller rate. */
static const double alike = 1.15;

static int compare_times(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int compare_rates(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Ignores the first tenth of the packets, for two reasons. First, these packets arrive while
 * later packets are still being sent. Second, if the link's delay varies, the delay has not
 * reached its maximum yet when these packets arrive. */
double dispersion_rate(const int64_t *at_ns, uint32_t n, uint32_t packet_bytes)
{
	int64_t took[PACKET_TRAIN_MOST];
	const uint32_t first = n / 10, quarter = (n - first) / WINDOWS;
	const uint32_t window = quarter > WINDOW_LEAST ? quarter : WINDOW_LEAST;

	assert(n <= PACKET_TRAIN_MOST);
	if (n < DISPERSION_LEAST ||
	    (n < DISPERSION_FEW && at_ns[n - 1] - at_ns[0] < DISPERSION_LONG_NS))
		return 0;
	const uint32_t windows = n - first - window;
	for (uint32_t i = 0; i < windows; i++)
		took[i] = at_ns[first + i + window] - at_ns[first + i];
	qsort(took, windows, sizeof(took[0]), compare_times);
	int64_t median = took[windows / 2];
	if (median < (int64_t)window * LEAST_GAP_NS)
		median = (int64_t)window * LEAST_GAP_NS;
	return 1e9 * window * packet_bytes / (double)median;
}

double dispersion_settle(const double *rates, uint32_t n, bool *settled)
{
	double sorted[SETTLE_MOST];

	assert(n <= SETTLE_MOST);
	*settled = false;
	if (n == 0)
		return 0;
	if (n >= 2) {
		const double x = rates[n - 2], y = rates[n - 1];
		*settled = x < y * alike && y < x * alike;
		if (*settled)
			return (x + y) / 2;
	}
	memcpy(sorted, rates, n * sizeof(sorted[0]));
	qsort(sorted, n, sizeof(sorted[0]), compare_rates);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}
