/* Writes the command lines of a fleet's programs. The operator's own options come last and override
 * the others. */
#include "cli/fleet/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { STAGES_MOST = 6 };

/* Returns true if the word gives the option `name`: --NAME or --NAME=VALUE. */
static bool is_option(const char *word, const char *name)
{
	size_t n = strlen(name);

	return strncmp(word, "--", 2) == 0 && strncmp(word + 2, name, n) == 0 &&
	       (word[2 + n] == '\0' || word[2 + n] == '=');
}

/* Returns the last value that the words give to an option; "" if it has no value, NULL if the
 * option is absent. */
static const char *value_of(char *const *words, const char *name)
{
	const char *found = NULL;

	for (; *words; words++)
		if (is_option(*words, name))
			found = (*words)[2 + strlen(name)] ? *words + 3 + strlen(name)
				: words[1]                 ? words[1]
							   : "";
	return found;
}

int launch_check(const struct fleet_options *o, struct error *err)
{
	static const char *const own[] = { "run-dir", "resume", "replay", "key", "admitted" };

	for (char *const *w = o->controller_words; *w; w++)
		if (strchr(*w, '\n'))
			return error_set(err, -EINVAL, "an option of the controller has two lines");
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (value_of(o->controller_words, own[i]))
			return error_set(err, -EINVAL,
					 "--%s: skippipe fleet chooses this option of the "
					 "controller itself%s",
					 own[i], i < 2 ? " (fleet's --run-dir)" : "");
	if (value_of(o->controller_words, "listen") && o->n_addresses == 0)
		return error_set(err, -EINVAL,
				 "--listen %s: give --address, too: where the hosts reach it",
				 value_of(o->controller_words, "listen"));
	return 0;
}

static void add_value(struct args *a, const char *name, const char *value)
{
	if (value[0])
		args_addf(a, "--%s=%s", name, value);
}

/* Returns the last part of the path. */
static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void launch_add_key(struct args *a, const char *option, const struct host *host,
		    const char *run_dir)
{
	args_addf(a, "%s%s/agent-%s.key", option, name_of(run_dir), host->name);
}

void launch_agent(struct args *a, const struct host *host, const char *run_dir)
{
	args_add(a, "agent");
	args_addf(a, "--run-dir=%s", name_of(run_dir));
	launch_add_key(a, "--key=", host, run_dir);
	add_value(a, "name", host->name);
	add_value(a, "place", host->place);
	add_value(a, "device", host->device);
	add_value(a, "listen", host->listen);
	add_value(a, "advertise", host->advertise);
}

size_t launch_count(const struct host *host, size_t gpus)
{
	size_t n = 0;

	for (const char *at = host->device;; at++) {
		n += strncmp(at, "cuda:all", 8) == 0 ? gpus : 1;
		at += strcspn(at, ",");
		if (!*at)
			return n > 0 ? n : 1;
	}
}

/* ---- the controller ---- */

/* Returns true if the operator gives the number of agents in another way than with --stages. */
static bool gives_agents(char *const *words)
{
	return value_of(words, "agents") || value_of(words, "cluster") ||
	       value_of(words, "emulate");
}

bool launch_has_size(const struct fleet_options *o)
{
	return gives_agents(o->controller_words) || value_of(o->controller_words, "stages");
}

/* Adds --agents and --stages, unless the operator gives the size of the cluster. The stages get two
 * replicas or more each. */
static void add_size(struct args *a, char *const *words, size_t agents)
{
	const char *stages = value_of(words, "stages");
	size_t n = agents / 2 < STAGES_MOST ? agents / 2 : STAGES_MOST, total = 0;

	if (gives_agents(words))
		return;
	for (const char *at = stages; at && *at; at += *at == ',') {
		total += strtoul(at, NULL, 10);
		at += strcspn(at, ",");
	}
	args_addf(a, "--agents=%zu", stages ? total : agents);
	if (stages)
		return;
	if (n < 2)
		n = agents > 1 ? 2 : 1;
	args_addf(a, "--stages=%zu", agents / n + agents % n);
	for (size_t i = 1; i < n; i++) {
		char **last = &a->list[a->n - 1];
		struct args longer = { 0 };

		args_addf(&longer, "%s,%zu", *last, agents / n);
		free(*last);
		*last = longer.list[0];
		free(longer.list);
	}
}

/* Returns true if a resumed run accepts this option: the option either changes the run or is not
 * part of the record. */
static bool may_resume_with(const char *word)
{
	static const char *const names[] = {
		"listen",         "checkpoint-to", "metrics",      "on-alert",
		"alert-url",      "format",        "at",           "log",
		"iterations",     "eval-every",    "eval-batches", "checkpoint-every",
		"skip-bad-steps", "keep-tasks",    "silence-ms",   "overdue-s",
		"gather-s",       "budget",        "ahead"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_option(word, names[i]))
			return true;
	return false;
}

void launch_controller(struct args *a, const struct fleet_options *o, const char *run_dir,
		       size_t agents, bool has_record)
{
	bool is_taken = true;

	args_add(a, "controller");
	args_addf(a, has_record ? "--resume=%s" : "--run-dir=%s", run_dir);
	if (!value_of(o->controller_words, "listen"))
		args_add(a, "--listen=tcp://[::]:7700");
	if (!has_record)
		add_size(a, o->controller_words, agents);
	for (char *const *w = o->controller_words; *w; w++) {
		if (strncmp(*w, "--", 2) == 0)
			is_taken = !has_record || may_resume_with(*w);
		if (is_taken)
			args_add(a, *w);
	}
}
