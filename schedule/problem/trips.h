/* trips.h - the short round trips of each data node, if nothing else were under way. Internal to
 * schedule/.
 */
#ifndef SCHEDULE_TRIPS_H
#define SCHEDULE_TRIPS_H

#include <stdint.h>

#include "schedule/problem/problem.h"

struct trip {
	double seconds;   /* F .. L .. B, without waiting */
	uint64_t stages;  /* one bit each */
	const int *path;  /* (length), the data node first */
};

/* The shortest legal trips of each data node, ascending. */
struct trips {
	const struct problem *p;
	int most;           /* of each data node */
	int *count;         /* (sizes[0]) by place in stage 0 */
	struct trip *trips; /* (sizes[0], most) */
	int *paths;         /* backing */
};

/* Looks at all trips of small clusters; of large ones only at those between near nodes. -ENOMEM. */
int trips_init(struct trips *t, const struct problem *p, const struct solution *s, int most);
void trips_fini(struct trips *t);

#endif
