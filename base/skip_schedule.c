/* Skip schedules as text and as phases. The trainer and the controller share this file, so that
 * both change the ratio at the same iteration. */
#include "base/skip_schedule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Reads the number of stages at *at and moves *at behind it. */
static int read_skip(const char **at, uint32_t most, uint32_t n, uint32_t *skip, struct error *err)
{
	char *end;
	unsigned long v = strtoul(*at, &end, 10);

	if (end == *at || **at == '-' || **at == '+' || v > most)
		return error_set(err, -EINVAL,
				 "phase %" PRIu32 " of the skip schedule: expected 0 to %" PRIu32
				 " stages, found \"%.20s\"",
				 n + 1, most, *at);
	*skip = (uint32_t)v;
	*at = end;
	return 0;
}

/* Reads "25%" or "800" at *at. */
static int read_start(const char **at, uint64_t iterations, uint32_t n, uint64_t *from,
		      struct error *err)
{
	char *end;
	double v = strtod(*at, &end);
	bool is_share = *end == '%';

	if (end == *at || !(v >= 0) || v > (is_share ? 100 : 1e15))
		return error_set(err, -EINVAL,
				 "phase %" PRIu32 " of the skip schedule: expected the iteration "
				 "or the share of the run after which it begins, found \"%.20s\"",
				 n + 1, *at);
	if (is_share && iterations == 0)
		return error_set(err, -EINVAL,
				 "phase %" PRIu32 " of the skip schedule: %g%% of a run without an "
				 "end; set --iterations",
				 n + 1, v);
	*from = 1 + (uint64_t)(is_share ? v / 100 * (double)iterations + 0.5 : v);
	*at = end + is_share;
	return 0;
}

static int check_starts(const struct skip_schedule *s, struct error *err)
{
	if (s->phases[0].from != 1)
		return error_set(err, -EINVAL,
				 "the first phase of the skip schedule begins after iteration "
				 "%" PRIu64 ", expected 0",
				 s->phases[0].from - 1);
	for (uint32_t i = 1; i < s->n; i++)
		if (s->phases[i].from <= s->phases[i - 1].from)
			return error_set(err, -EINVAL,
					 "phase %" PRIu32 " of the skip schedule begins at "
					 "iteration %" PRIu64 ", not after phase %" PRIu32,
					 i + 1, s->phases[i].from, i);
	return 0;
}

int skip_schedule_parse(struct skip_schedule *out, const char *text, uint64_t iterations,
			uint32_t most, struct error *err)
{
	struct skip_schedule s = { 0 };
	const char *at = text;
	bool has_starts = strchr(text, '@') != NULL;

	for (;;) {
		struct skip_phase *p = &s.phases[s.n];

		if (s.n == SKIP_SCHEDULE_MOST)
			return error_set(err, -EINVAL, "the skip schedule has more than %d phases",
					 SKIP_SCHEDULE_MOST);
		if (read_skip(&at, most, s.n, &p->skip, err) != 0)
			return -EINVAL;
		if (has_starts && *at == '@') {
			at++;
			if (read_start(&at, iterations, s.n, &p->from, err) != 0)
				return -EINVAL;
		} else if (has_starts) {
			return error_set(err, -EINVAL,
					 "phase %" PRIu32 " of the skip schedule: expected @ and "
					 "its beginning, found \"%.20s\"",
					 s.n + 1, at);
		}
		s.n++;
		if (*at == '\0')
			break;
		if (*at != ',')
			return error_set(err, -EINVAL,
					 "phase %" PRIu32 " of the skip schedule: expected a "
					 "comma, found \"%.20s\"",
					 s.n, at);
		at++;
	}
	if (!has_starts && s.n > 1 && iterations == 0)
		return error_set(err, -EINVAL,
				 "a skip schedule of equal parts needs the length of the run: set "
				 "--iterations, or write 4@0,2@500");
	for (uint32_t i = 0; !has_starts && i < s.n; i++)
		s.phases[i].from = 1 + (iterations * i + s.n / 2) / s.n;
	if (check_starts(&s, err) != 0)
		return -EINVAL;
	*out = s;
	return 0;
}

uint32_t skip_schedule_at(const struct skip_schedule *s, uint64_t iteration)
{
	uint32_t at = 0;

	while (at + 1 < s->n && s->phases[at + 1].from <= iteration)
		at++;
	return at;
}
