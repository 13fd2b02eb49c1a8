/* Rehearses a cluster, or chooses one from a fleet first. For the choice, this program runs
 * `skippipe plan --fleet`. It then rehearses the best candidate with the options that `plan`
 * prints, so that the operator does not have to copy a command. The files of the choice are
 * temporary. */
#include "cli/rehearse.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/demo.h"
#include "cli/demo_options.h"
#include "cli/supervise.h"
#include "cli/verbs.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, ANSWER_MOST = 64 << 20 };

/* Temporary files that are made while a cluster is chosen. They are removed when the rehearsal
 * ends. */
struct chosen {
	char folder[FILE_TEMPORARY];
	char cluster[FILE_TEMPORARY + 32], plan[FILE_TEMPORARY + 32], answer[FILE_TEMPORARY + 32];
};

static int chosen_init(struct chosen *c, struct error *err)
{
	const char *const parents[] = { "/tmp", getenv("TMPDIR") };
	int rc = file_make_temporary(c->folder, "skippipe-rehearse", parents, 2, err);

	if (rc != 0)
		return rc;
	snprintf(c->cluster, sizeof(c->cluster), "%s/cluster.json", c->folder);
	snprintf(c->plan, sizeof(c->plan), "%s/cluster.plan.json", c->folder);
	snprintf(c->answer, sizeof(c->answer), "%s/choice.json", c->folder);
	return 0;
}

static void chosen_remove(const struct chosen *c)
{
	unlink(c->cluster);
	unlink(c->plan);
	unlink(c->answer);
	rmdir(c->folder);
}

/* Returns the last value of --model among the options for the controller; "" if there is none. */
static const char *model_of(const struct demo_options *o)
{
	static const char name[] = "--model";
	const char *model = "";

	for (size_t i = 0; i < o->controller.n; i++) {
		const char *word = o->controller.list[i];

		if (strcmp(word, name) == 0 && i + 1 < o->controller.n)
			model = o->controller.list[i + 1];
		else if (strncmp(word, name, strlen(name)) == 0 && word[strlen(name)] == '=')
			model = word + strlen(name) + 1;
	}
	return model;
}

/* Runs the planner. Its answer goes to the file `answer`, its messages and its progress to stderr.
 * A signal such as Ctrl-C ends the planner only; this process then removes its files. */
static int run_planner(const struct args *a, const char *answer, struct error *err)
{
	int status = 0, fd = open(answer, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	pid_t pid;

	if (fd < 0)
		return error_set(err, -errno, "%s: %s", answer, strerror(errno));
	supervise_hold_signals();
	pid = fork();
	if (pid == 0) {
		sigset_t none;

		dup2(fd, STDOUT_FILENO);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execv(a->list[0], a->list);
		_exit(EXIT_FAILED);
	}
	close(fd);
	if (pid < 0)
		return error_set(err, -errno, "%s: %s", a->list[0], strerror(errno));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return error_set(err, -EIO, "the planner has not chosen a cluster");
}

static int choose_cluster(const struct demo_options *o, const struct chosen *c, struct error *err)
{
	struct args a = { 0 };
	char path[PATH_MAX];
	int rc = verbs_program("skippipe-plan", path, sizeof(path), err);

	if (rc != 0)
		return rc;
	args_add(&a, path);
	args_add(&a, "plan");
	args_addf(&a, "--fleet=%s", o->fleet);
	args_addf(&a, "--model=%s", model_of(o));
	args_add(&a, "--format=json");
	args_addf(&a, "--output=%s", c->cluster);
	rc = run_planner(&a, c->answer, err);
	args_free(&a);
	return rc;
}

static int add_cut(const json_t *best, struct args *words, struct error *err)
{
	char cut[4 * DEMO_STAGES_MOST + 1] = "", *to = cut;
	const json_t *layers, *item;
	size_t i;
	int rc = json_list(best, "candidates[0]", "layers", -1, &layers, err);

	if (rc != 0)
		return rc;
	json_array_foreach (layers, i, item) {
		if (i == DEMO_STAGES_MOST || json_integer_value(item) < 0 ||
		    json_integer_value(item) > 999)
			return json_expected(item, "candidates[0]", "layers", "small numbers", err);
		to += sprintf(to, i ? ",%d" : "%d", (int)json_integer_value(item));
	}
	args_addf(words, "--cut=%s", cut);
	return 0;
}

static int add_format(const json_t *best, const char *key, const char *option, struct args *words,
		      struct error *err)
{
	char *text;
	int rc = json_text(best, "candidates[0]", key, true, &text, err);

	if (rc != 0)
		return rc;
	args_addf(words, "--%s=%s", option, text);
	free(text);
	return 0;
}

/* Adds the options that rehearse the best candidate. */
static int add_choice(const struct chosen *c, struct args *words, struct error *err)
{
	json_t *root, *best;
	int rc = json_read_object(c->answer, ANSWER_MOST, &root, err), sequences, skip;

	if (rc != 0)
		return rc;
	best = json_array_get(json_object_get(root, "candidates"), 0);
	args_addf(words, "--cluster=%s", c->cluster);
	args_add(words, "--assignment=given");
	rc = add_cut(best, words, err);
	if (rc == 0)
		rc = json_int(best, "candidates[0]", "sequences", 1, INT_MAX, NULL, &sequences,
			      err);
	if (rc == 0)
		rc = json_int(best, "candidates[0]", "skip", 0, DEMO_STAGES_MOST, NULL, &skip,
			      err);
	if (rc == 0)
		rc = add_format(best, "wire", "wire", words, err);
	if (rc == 0)
		rc = add_format(best, "sum_wire", "sum-wire", words, err);
	if (rc == 0) {
		args_addf(words, "--batch=%d", sequences);
		args_addf(words, "--skip=%d", skip);
	}
	json_decref(root);
	return rc;
}

/* Chooses a cluster and rehearses it. The user's words come after the options of the choice and
 * therefore override them. */
static int rehearse_fleet(const struct demo_options *o, char **argv)
{
	struct error err = { "" };
	struct args words = { 0 };
	struct chosen c;
	int rc = chosen_init(&c, &err), status = EXIT_FAILED;

	if (rc == 0) {
		args_add(&words, argv[0]);
		rc = choose_cluster(o, &c, &err);
		if (rc == 0)
			rc = add_choice(&c, &words, &err);
		for (size_t i = 1; argv[i]; i++)
			args_add(&words, argv[i]);
		if (rc == 0)
			status = demo_main(true, words.list);
		args_free(&words);
		chosen_remove(&c);
	}
	if (rc != 0)
		fprintf(stderr, "skippipe rehearse: %s\n", err.text);
	return status;
}

int rehearse_main(char **argv)
{
	struct demo_options o;
	struct error err = { "" };
	int status;

	/* demo_main parses the words again, and reports wrong usage or prints the help. */
	if (demo_options_parse(&o, true, argv, &err) != 0)
		return demo_main(true, argv);
	if (o.help || !o.fleet) {
		status = demo_main(true, argv);
	} else if (o.cluster) {
		fputs("skippipe rehearse: --fleet: not with --cluster, which is chosen\n", stderr);
		status = EXIT_USAGE;
	} else {
		status = rehearse_fleet(&o, argv);
	}
	demo_options_free(&o);
	return status;
}
