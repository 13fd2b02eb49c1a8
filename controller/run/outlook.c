/* outlook.c - predicts the training loss at the end of a run.
 *
 * An operator who ends a run on command wants to know the final loss. While the learning rate is
 * high, the loss falls almost along a straight line over the logarithm of the iteration. This line
 * predicts the loss at a constant rate. A falling rate lowers the loss further, but a curve with a
 * high rate does not show by how much. The range of this gain therefore comes from the runs that
 * docs/rates.md describes. */
#include "controller/run/outlook.h"

#include <math.h>

enum { POINTS_LEAST = 8 };

/* A decay of the learning rate reduces the predicted loss by a share between these two numbers.
 * In two runs the share was 0.063 and 0.070. */
static const double gain_least = 0.04, gain_most = 0.09;

bool outlook_make(struct outlook *out, const double *at, const double *loss, size_t n, double end)
{
	size_t from = n / 2, m = n - from;
	double x = 0, y = 0, xx = 0, xy = 0, rest = 0, slope, trend, error;

	if (m < POINTS_LEAST)
		return false;
	for (size_t i = from; i < n; i++) {
		x += log(at[i]) / (double)m;
		y += loss[i] / (double)m;
	}
	for (size_t i = from; i < n; i++) {
		xx += (log(at[i]) - x) * (log(at[i]) - x);
		xy += (log(at[i]) - x) * (loss[i] - y);
	}
	slope = xx > 0 ? xy / xx : 0;
	for (size_t i = from; i < n; i++)
		rest += pow(loss[i] - y - slope * (log(at[i]) - x), 2);
	trend = y + slope * (log(end) - x);
	error = sqrt(rest / (double)(m - 2) *
		     (1 / (double)m + (xx > 0 ? pow(log(end) - x, 2) / xx : 0)));
	if (!isfinite(trend) || !isfinite(error) || trend - 2 * error <= 0)
		return false;
	*out = (struct outlook){ (float)trend, (float)((trend - 2 * error) * (1 - gain_most)),
				 (float)((trend + 2 * error) * (1 - gain_least)) };
	return true;
}
