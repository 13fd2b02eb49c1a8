/* Keeps the losses of other runs in limited memory. */
#include "tui/run/other_runs.h"

#include <stdlib.h>
#include <string.h>

static void halve(struct other_curve *c)
{
	for (size_t i = 0; 2 * i < c->points.n; i++)
		c->points.list[i] = c->points.list[2 * i];
	c->points.n = (c->points.n + 1) / 2;
	c->step *= 2;
}

static void append(struct other_curve *c, struct other_point p)
{
	const struct other_point *newest = c->points.n ? &c->points.list[c->points.n - 1] : NULL;

	if (newest && p.iteration <= newest->iteration)
		return;
	if (newest && p.elapsed_us < newest->elapsed_us)
		p.elapsed_us = newest->elapsed_us;
	if (p.elapsed_us < 0)
		p.elapsed_us = 0;
	*LIST_ADD(&c->points) = p;
}

void other_curve_add(struct other_curve *c, struct other_point p)
{
	if (c->step == 0)
		c->step = 1;
	if (c->n_added++ % c->step != 0)
		return;
	if (c->points.n == OTHER_POINTS)
		halve(c);
	if ((c->n_added - 1) % c->step == 0)
		append(c, p);
}

void other_curve_end(struct other_curve *c, struct other_point p)
{
	if (c->points.n == OTHER_POINTS)
		halve(c);
	append(c, p);
}

void other_runs_clear(struct other_runs *o)
{
	for (uint32_t i = 0; i < o->n; i++) {
		free(o->list[i].train.points.list);
		free(o->list[i].validation.points.list);
	}
	memset(o, 0, sizeof(*o));
}
