/* Runs `skippipe doctor` on each host before an agent starts there, because a machine that cannot
 * train costs the run more than a missing machine. The answer has the format skippipe.doctor/1.
 * This module uses the list "findings", whose objects have the texts "level", "found" and
 * "remedy". */
#include "cli/fleet/examine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/json.h"
#include "cli/fleet/words.h"

enum { EXAMINE_US = 90000000, ANSWER_MOST = 64 << 10, TEXT = 600 };

struct answer {
	/* The answer, from the first line that begins with a brace; NULL: no answer. At most
	 * ANSWER_MOST bytes. */
	char *text;
	size_t size;
};

struct examination {
	struct fleet *fleet;
	struct site *sites;
	struct answer *answers; /* one for each host */
};

static void take_line(void *owner, struct remote_job *job, const char *key, const char *value)
{
	struct examination *e = owner;
	struct answer *a = &e->answers[fleet_place(e->fleet, job)];
	size_t n = strlen(value);

	if (key && strcmp(key, "gpus") == 0)
		prepare_take_gpus(&e->sites[fleet_place(e->fleet, job)], value);
	if (key || (!a->text && value[0] != '{') || a->size + n + 1 >= ANSWER_MOST)
		return;
	if (!a->text)
		a->text = alloc_new(ANSWER_MOST);
	memcpy(a->text + a->size, value, n);
	a->size += n;
	a->text[a->size++] = '\n';
}

static void turn_examine(void *owner, struct remote_job *job, bool done)
{
	struct examination *e = owner;

	if (!done)
		progress_set(e->fleet->progress, fleet_place(e->fleet, job), "examining");
}

/* Copies a text of a finding. A hostile host may send any characters, so the text is cleaned. */
static void copy_text(const json_t *finding, const char *key, char out[TEXT])
{
	const char *text = json_string_value(json_object_get(finding, key));

	words_clean(text ? text : "", text ? strlen(text) : 0, out, TEXT);
}

static void judge_answer(struct examination *e, const struct remote_job *job)
{
	const size_t place = fleet_place(e->fleet, job);
	const struct answer *a = &e->answers[place];
	struct progress *shown = e->fleet->progress;
	const char *name = e->fleet->hosts.list[place].name;
	size_t errors = 0, i;
	json_t *root, *finding;

	if (!a->text) {
		progress_set(shown, place, "not examined%s%s", job->why[0] ? ": " : "", job->why);
		return;
	}
	if (json_parse_object(a->text, a->size, &root, NULL) != 0) {
		progress_set(shown, place, "skippipe doctor's answer was not understood");
		return;
	}
	json_array_foreach(json_object_get(root, "findings"), i, finding)
	{
		char level[TEXT], found[TEXT], remedy[TEXT];

		copy_text(finding, "level", level);
		if (strcmp(level, "error") != 0)
			continue;
		copy_text(finding, "found", found);
		copy_text(finding, "remedy", remedy);
		progress_print(shown, "         %s: %s%s%s", name, found,
			       remedy[0] ? "; remedy: " : "", remedy);
		errors++;
	}
	json_decref(root);
	if (errors > 0) {
		e->sites[place].state = SITE_FAILED;
		progress_set(shown, place, "FAILED: skippipe doctor found %zu error%s", errors,
			     errors == 1 ? "" : "s");
	} else {
		progress_set(shown, place, "ready");
	}
}

int examine_sites(struct fleet *f, struct site *sites, struct error *err)
{
	struct examination e = { f, sites, alloc_array(f->hosts.n, sizeof(*e.answers)) };
	const struct remote_calls calls = { &e, take_line, turn_examine };
	struct remote_job *jobs = alloc_array(f->hosts.n, sizeof(*jobs));
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < f->hosts.n; i++) {
		const char *device = f->hosts.list[i].device;

		if (sites[i].state != SITE_FITS)
			continue;
		fleet_agent_job(f, &jobs[n], &f->hosts.list[i], "doctor");
		if (device[0])
			args_addf(&jobs[n].words, "--device=%s", device);
		n++;
	}
	rc = remote_run(f->remote, jobs, n, EXAMINE_US, &calls, err);
	for (size_t i = 0; rc == 0 && i < n; i++)
		judge_answer(&e, &jobs[i]);
	for (size_t i = 0; i < f->hosts.n; i++)
		free(e.answers[i].text);
	fleet_end_jobs(jobs, n);
	free(jobs);
	free(e.answers);
	return rc;
}
