/* goodput.c - computes goodput from committed iterations, with the same result for consoles and for
 * metrics.
 *
 * The time of a task counts if the task's iteration was committed. If a task was voided and ran
 * again, only its last run counts. */
#include "wire/goodput.h"

#include <math.h>

enum { NEWEST = 32 };

double goodput_of(const struct msg_see_iteration *iterations, size_t n, uint32_t microbatches,
		  double unit_s)
{
	double work_s = 0, all_s = 0;

	for (size_t i = n > NEWEST ? n - NEWEST : 0; i < n; i++) {
		const struct msg_see_iteration *it = &iterations[i];
		double once = (double)microbatches / ((double)microbatches + (double)it->rerun);
		double s_of =
			(1 - (double)it->idle_fraction) * (double)it->iteration_s * unit_s * once;

		if (!(it->real_s > 0) || !(s_of >= 0))
			continue;
		all_s += (double)it->real_s;
		work_s += fmin(s_of, (double)it->real_s);
	}
	return all_s > 0 ? work_s / all_s : 0;
}
