/* Reads the options about skipped stages, and draws stages at random. Evaluations of losses and of
 * choices share this code, so that the same options skip the same stages. */
#include "model/program/omission.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Parses a list of stages from 1 on, such as "1,3". */
static int parse_list(struct omission *m, const char *list, uint32_t n_stages, struct error *err)
{
	const char *at = list;

	while (at && *at) {
		char *end;
		unsigned long stage = strtoul(at, &end, 10);

		if (end == at || (*end && *end != ',') || stage == 0 || stage >= n_stages)
			return error_set(err, -EINVAL,
					 "--omit %s: expected stages from 1 to %" PRIu32
					 ", as 1,3 (stage 0 holds embedding and head)",
					 list, n_stages - 1);
		m->out[stage] = true;
		at = *end ? end + 1 : end;
	}
	return 0;
}

int omission_check_exit(const struct options *o, struct error *err)
{
	uint32_t last = o->config.n_stages - 1;

	if (!options_given(o, "exit-after") || (o->exit_after >= 1 && o->exit_after <= last))
		return 0;
	return error_set(err, -EINVAL,
			 "--exit-after %" PRIu32 ": expected a stage from 1 to the last, %" PRIu32,
			 o->exit_after, last);
}

int omission_parse(struct omission *m, const struct options *o, struct error *err)
{
	uint32_t n = o->config.n_stages;
	int rc = parse_list(m, o->eval.omit, n, err);

	if (rc)
		return rc;
	rc = omission_check_exit(o, err);
	if (rc)
		return rc;
	for (uint32_t i = o->exit_after + 1; o->exit_after && i < n; i++)
		m->out[i] = true;
	rc = visit_rules_check(&o->visits, n, err);
	m->always = o->visits.always;
	m->more = (uint32_t)lrintf(o->eval.omit_fraction * (float)(n - 1));
	return rc;
}

uint32_t omission_draw(const struct omission *m, uint32_t n_stages, struct rng *r, uint32_t *path)
{
	bool out[OMISSION_STAGES] = { true };
	uint32_t left = 0, n = 0;

	for (uint32_t s = 1; s < n_stages; s++) {
		out[s] = m->out[s];
		left += !visit_rules_always(m->always, s) && !out[s];
	}
	for (uint32_t k = 0; k < m->more && left > 0; k++, left--) {
		uint32_t which = rng_below(r, left), s = 1;

		while (out[s] || visit_rules_always(m->always, s) || which-- > 0)
			s++;
		out[s] = true;
	}
	for (uint32_t s = 1; s < n_stages; s++)
		if (!out[s])
			path[n++] = s;
	return n;
}
