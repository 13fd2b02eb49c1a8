/* Skip ratios and schedules as text and as phases. The trainer and the controller share this file,
 * so that both change the ratio at the same iteration. */
#include "base/skip_schedule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a number without a sign, of at most `most`. */
static bool read_number(const char **at, unsigned long most, uint32_t *out)
{
	char *end;
	unsigned long v;

	if (**at < '0' || **at > '9')
		return false;
	v = strtoul(*at, &end, 10);
	if (v > most)
		return false;
	*out = (uint32_t)v;
	*at = end;
	return true;
}

int skip_share_read(const char **at, uint32_t most, uint32_t *share, uint32_t *skip,
		    struct error *err)
{
	const char *next = *at, *text = *at;
	uint32_t percent = 0, stages;

	if (!read_number(&next, 100, &stages))
		stages = most + 1;
	if (*next == '%') {
		percent = stages;
		next++;
		if (percent < 1 || percent > 99 || *next != ':')
			return error_set(err, -EINVAL,
					 "expected a share of 1%% to 99%% and its stages, as "
					 "30%%:2, found \"%.20s\"",
					 text);
		text = ++next;
		if (!read_number(&next, most, &stages))
			stages = most + 1;
	}
	if (stages > most)
		return error_set(err, -EINVAL, "expected 0 to %" PRIu32 " stages, found \"%.20s\"",
				 most, text);
	*share = stages > 0 ? percent : 0;
	*skip = stages;
	*at = next;
	return 0;
}

int skip_share_parse(const char *option, const char *text, uint32_t most, uint32_t *share,
		     uint32_t *skip, struct error *err)
{
	const char *at = text;
	uint32_t percent, stages;
	struct error why = { "" };

	if (skip_share_read(&at, most, &percent, &stages, &why) != 0)
		return error_set(err, -EINVAL, "%s: %s", option, why.text);
	if (*at != '\0' || percent == 0)
		return error_set(err, -EINVAL,
				 "%s %.20s: expected a share of the microbatches and the stages "
				 "that they skip, as 30%%:2",
				 option, text);
	*share = percent;
	*skip = stages;
	return 0;
}

void skip_share_format(uint32_t share, uint32_t skip, uint32_t n_stages, char out[SKIP_SHARE_TEXT])
{
	int n = snprintf(out, SKIP_SHARE_TEXT, "%" PRIu32 "/%" PRIu32, skip % 1000,
			 n_stages % 1000);

	if (share > 0)
		snprintf(out + n, (size_t)(SKIP_SHARE_TEXT - n), " in %" PRIu32 "%%", share % 1000);
}

/* Reads a number of skipped stages at *at, such as "2". A share of the microbatches may precede the
 * number, as in "30%:2". */
static int read_skip(const char **at, uint32_t most, uint32_t n, struct skip_phase *p,
		     struct error *err)
{
	struct error why = { "" };

	if (skip_share_read(at, most, &p->share, &p->skip, &why) == 0)
		return 0;
	return error_set(err, -EINVAL, "phase %" PRIu32 " of the skip schedule: %s", n + 1,
			 why.text);
}

/* Reads where a phase begins, at *at: after a share of the run, such as "25%", or after an
 * iteration, such as "800". */
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
		if (read_skip(&at, most, s.n, p, err) != 0)
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

/* Writes the schedule of a recipe. Both recipes first train only the stages that are always
 * visited, at the two ends of the model. `speed` then visits every stage. `robust` visits every
 * stage earlier, but 30% of the microbatches then skip half of the stages that may be skipped. Its
 * finished model therefore tolerates the loss of some stages. docs/convergence.md has the measured
 * costs and gains. */
int skip_schedule_of_recipe(char out[SKIP_SCHEDULE_RECIPE], const char *name, uint32_t droppable,
			    struct error *err)
{
	if (droppable == 0)
		return error_set(err, -EINVAL,
				 "--recipe %s: it needs a stage between the first and the last "
				 "that may be skipped",
				 name);
	if (strcmp(name, "speed") == 0)
		snprintf(out, SKIP_SCHEDULE_RECIPE, "%" PRIu32 "@0,0@30%%", droppable);
	else if (strcmp(name, "robust") == 0)
		snprintf(out, SKIP_SCHEDULE_RECIPE, "%" PRIu32 "@0,30%%:%" PRIu32 "@20%%",
			 droppable, (droppable + 1) / 2);
	else
		return error_set(err, -EINVAL, "--recipe %s: expected speed or robust", name);
	return 0;
}

uint32_t skip_schedule_at(const struct skip_schedule *s, uint64_t iteration)
{
	uint32_t at = 0;

	while (at + 1 < s->n && s->phases[at + 1].from <= iteration)
		at++;
	return at;
}
