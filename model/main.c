/* skippipe-model VERB ...: trains and uses a model in one process. */
#include <stdio.h>
#include <string.h>

#include "base/process/output.h"
#include "model/program/commands.h"

static const struct {
	const char *verb;
	int (*run)(int argc, char **argv);
	const char *does;
} verbs[] = {
	{ "train", command_train, "train a model, with or without leaving stages out" },
	{ "eval", command_eval, "loss and perplexity, whole or with stages left out" },
	{ "generate", command_generate, "continue a text" },
	{ "export", command_export, "write a checkpoint for other tools" },
	{ "import", command_import, "make a checkpoint of other tools' weights" },
	{ "tokenize", command_tokenize, "turn texts into a token shard" },
};

enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };

int main(int argc, char **argv)
{
	output_check_at_exit("skippipe-model");
	for (int i = 0; argc > 1 && i < VERBS; i++)
		if (strcmp(argv[1], verbs[i].verb) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "--help") != 0)
		fprintf(stderr, "skippipe-model: no such verb: %s\n", argv[1]);
	fprintf(argc > 1 ? stdout : stderr,
		"usage: skippipe-model VERB ... (VERB --help says more)\n");
	for (int i = 0; i < VERBS; i++)
		fprintf(argc > 1 ? stdout : stderr, "  %-9s %s\n", verbs[i].verb,
			verbs[i].does);
	return argc > 1 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
}
