/* Names of the algorithms, and the defaults of a request. */
#include "schedule/format/request.h"

#include <string.h>

static const char *const algorithms[] = { "best", "cbs", "no-tc2", "dtfm", "dtfm-skip" };

const char *plan_algorithm_name(enum plan_algorithm a)
{
	return (unsigned)a < sizeof(algorithms) / sizeof(algorithms[0]) ? algorithms[a] : NULL;
}

bool plan_algorithm_named(const char *name, enum plan_algorithm *out)
{
	for (int a = 0; plan_algorithm_name((enum plan_algorithm)a); a++) {
		if (strcmp(name, plan_algorithm_name((enum plan_algorithm)a)) == 0) {
			*out = (enum plan_algorithm)a;
			return true;
		}
	}
	return false;
}

void plan_request_init(struct plan_request *q)
{
	*q = (struct plan_request){ .algorithm = PLAN_BEST, .seed = 1, .threads = 1 };
}

int plan_default_path_length(const struct cluster *c)
{
	int length = c->n_stages - c->n_stages / 3, least = stage_set_count(c->always);

	return length > least ? length : least;
}
