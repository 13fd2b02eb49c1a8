/* The table of verbs. The programs of other verbs are in the same folder as this program. Thus a
 * build tree works without installation and never runs programs of another version. */
#include "cli/verbs.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/process/installed.h"

static const struct verb table[] = {
	{ "demo", NULL, false, "train on an emulated cluster on this machine, and watch" },
	{ "rehearse", NULL, false, "run a cluster that computes nothing, before renting it" },
	{ "controller", "skippipe-controller", false,
	  "plan a run, command its agents, and record it" },
	{ "agent", "skippipe-agent", false, "run one stage replica for a controller" },
	{ "console", "skippipe-console", false, "watch and steer a run from a terminal" },
	{ "status", "skippipe-controller", true,
	  "print the state of a run, with an exit status for scripts" },
	{ "doctor", "skippipe-doctor", false,
	  "find what would stop or slow a run, each with its remedy" },
	{ "fleet", NULL, false, "start, watch and end a training on machines that ssh reaches" },
	{ "drill", NULL, false,
	  "repeat the recorded commands and faults of a run, and check its limits" },
	{ "plan", "skippipe-plan", true, "plan microbatches for a cluster, or stages for a fleet" },
	{ "simulate", "skippipe-plan", true, "check and time a plan" },
	{ "train", "skippipe-model", true, "train a model in one process" },
	{ "eval", "skippipe-model", true, "compute the validation loss of a checkpoint" },
	{ "generate", "skippipe-model", true, "generate text from a checkpoint" },
	{ "export", "skippipe-model", true, "convert a checkpoint for other tools" },
	{ "import", "skippipe-model", true, "convert a model of another tool to a checkpoint" },
	{ "tokenize", "skippipe-model", true, "convert text to tokens" },
	{ "verify", "skippipe-verify", false, "replay a recorded run and compare the weights" },
	{ "invite", "skippipe-key", true, "print a token with which a machine joins" },
	{ "keygen", "skippipe-key", true, "create a key pair" },
	{ "public", "skippipe-key", true, "print the public key of a key pair" },
	{ "admit", "skippipe-key", true, "admit a key to a cluster" },
	{ "expel", "skippipe-key", true, "remove a key from a cluster" },
};
enum { N_VERBS = sizeof(table) / sizeof(table[0]), WORD_MOST = 32 };

const struct verb *verbs_find(const char *name)
{
	for (size_t i = 0; i < N_VERBS; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

/* Returns the Levenshtein distance of two words that are shorter than WORD_MOST. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t row[WORD_MOST + 1], n = strlen(b);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < n; j++) {
			size_t best = diagonal + (a[i] != b[j]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j + 1] + 1 < best)
				best = row[j + 1] + 1;
			diagonal = row[j + 1];
			row[j + 1] = best;
		}
	}
	return row[n];
}

const struct verb *verbs_nearest(const char *name)
{
	const struct verb *nearest = NULL;
	size_t least = 3, length = strlen(name);

	if (length == 0 || length >= WORD_MOST)
		return NULL;
	for (size_t i = 0; i < N_VERBS; i++) {
		size_t d = edit_distance(name, table[i].name);

		if (strncmp(name, table[i].name, length) == 0)
			d = 0;
		if (d < least && d < strlen(table[i].name)) {
			least = d;
			nearest = &table[i];
		}
	}
	return nearest;
}

void verbs_print(FILE *to)
{
	fputs("usage: skippipe VERB [options]      skippipe help VERB lists a verb's options\n\n"
	      "Trains LLaMA-style models on nodes that fail, differ in speed and are far apart.\n"
	      "Every microbatch skips some pipeline stages. An operator watches and steers.\n"
	      "Start here:\n\n"
	      "  skippipe demo\n\n",
	      to);
	for (size_t i = 0; i < N_VERBS; i++)
		fprintf(to, "  %-11s %s\n", table[i].name, table[i].summary);
	fputs("\nExit status: 0 success, 1 failure or a difference, 2 wrong usage,\n"
	      "3 infeasible, or a broken rule.\n",
	      to);
}

int verbs_program(const char *program, char *path, size_t room, struct error *err)
{
	char folder[PATH_MAX];
	int rc = installed_folder(folder, sizeof(folder), err);

	if (rc != 0)
		return rc;
	if ((size_t)snprintf(path, room, "%s/%s", folder, program) >= room)
		return error_set(err, -ENAMETOOLONG, "%s/%s: the name is too long", folder,
				 program);
	if (access(path, X_OK) != 0)
		return error_set(err, -errno,
				 "%s: %s; all of skippipe's programs must be in one folder "
				 "(make, or make install)",
				 path, strerror(errno));
	return 0;
}
