/* The demo prepares a run on this machine: folders, keys, the list of admitted keys, command lines.
 * It uses the programs that an operator would use by hand; supervise.h then starts them. The demo
 * therefore shows a real cluster, except that the network's delays are emulated. */
#include "cli/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/demo_options.h"
#include "cli/devices.h"
#include "cli/demo_dirs.h"
#include "cli/supervise.h"
#include "cli/verbs.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, KEY_TEXT = 64 };

struct demo {
	struct demo_options options;
	struct demo_dirs dirs;
	struct processes processes;
	char controller_key[KEY_TEXT + 1];
	char address[96]; /* address of the controller */
	char *admitted;   /* text of the file of admitted keys, as far as it is written */
	struct args made; /* paths of the key files that this process created */
	char record[PATH_MAX + 8];
};

/* ---- keys ---- */

/* Creates a key file in the run folder with the program `tool`, and copies its public key to
 * `public`. */
static int make_key(struct demo *d, const char *tool, const char *name,
		    char public[KEY_TEXT + 1], struct error *err)
{
	struct args args = { 0 };
	char output[512];
	int rc;

	args_add(&args, tool);
	args_add(&args, "keygen");
	args_addf(&args, "%s/keys/%s.key", d->dirs.run, name);
	rc = child_output(&args, output, sizeof(output), CHILD_WAIT_US, err);
	args_free(&args);
	if (rc != 0)
		return rc;
	args_addf(&d->made, "%s/keys/%s.key", d->dirs.run, name);
	if (strlen(output) != KEY_TEXT || strspn(output, "0123456789abcdef") != KEY_TEXT)
		return error_set(
			err, -EPROTO,
			"%s keygen: expected a public key of %d hex digits, got \"%s\"", tool,
			KEY_TEXT, output);
	strcpy(public, output);
	return 0;
}

static void admit_key(struct demo *d, const char *key, const char *role, const char *name)
{
	char *longer = alloc_format("%s%s %s %s\n",
				    d->admitted ? d->admitted : "skippipe-admitted 1\n", key,
				    role, name);

	free(d->admitted);
	d->admitted = longer;
}

static int make_keys(struct demo *d, struct error *err)
{
	char tool[PATH_MAX], key[KEY_TEXT + 1], name[32], path[PATH_MAX + 32];
	int rc = verbs_program("skippipe-key", tool, sizeof(tool), err);

	if (rc == 0)
		rc = make_key(d, tool, "controller", d->controller_key, err);
	if (rc == 0)
		rc = make_key(d, tool, "console", key, err);
	if (rc == 0)
		admit_key(d, key, "console", "operator");
	for (uint32_t i = 0; rc == 0 && i < d->options.agents; i++) {
		snprintf(name, sizeof(name), "agent%u", i);
		rc = make_key(d, tool, name, key, err);
		if (rc == 0)
			admit_key(d, key, "agent", name);
	}
	if (rc != 0)
		return rc;
	snprintf(path, sizeof(path), "%s/keys/admitted", d->dirs.run);
	if (access(path, F_OK) == 0)
		return error_set(err, -EEXIST, "%s: exists; give another --run-dir", path);
	args_add(&d->made, path);
	return file_write(path, d->admitted, strlen(d->admitted), FILE_PRIVATE, err);
}

/* Removes the keys of a demo that failed to start. If the keys stayed, the next start in this
 * folder would fail, because a key is never overwritten. */
static void remove_keys(const struct demo *d)
{
	if (file_exists(d->dirs.run, "run.db"))
		return;
	for (size_t i = 0; i < d->made.n; i++)
		unlink(d->made.list[i]);
}

/* ---- command lines ---- */

static void set_log(const struct demo *d, struct child *c, const char *name)
{
	c->log = alloc_format("%s/log/%s.log", d->dirs.run, name);
}

static void add_key(const struct demo *d, struct args *a, const char *name)
{
	args_add(a, "--key");
	args_addf(a, "%s/keys/%s.key", d->dirs.run, name);
}

/* Makes the controller's command line. A controller that resumes the run gets few options, because
 * it reads its settings from the record. */
static void controller_args(const struct demo *d, struct args *a, const char *program,
			    bool resume)
{
	const struct demo_options *o = &d->options;
	const struct args *passed = resume ? &o->again : &o->controller;
	char stages[DEMO_STAGES_MOST * 5 + 1], *to = stages;

	for (uint32_t s = 0; s < o->n_stages; s++)
		to += sprintf(to, s ? ",%u" : "%u", o->stages[s]);
	args_add(a, program);
	args_add(a, resume ? "--resume" : "--run-dir");
	args_add(a, d->dirs.run);
	args_add(a, "--listen");
	args_add(a, d->address);
	add_key(d, a, "controller");
	args_add(a, "--admitted");
	args_addf(a, "%s/keys/admitted", d->dirs.run);
	args_add(a, "--embedded");
	args_addf(a, "--supervisor-fd=%d", d->processes.orders_to);
	if (!resume) {
		if (o->cluster) {
			args_addf(a, "--emulate=%s", o->cluster);
		} else {
			if (o->started)
				args_addf(a, "--agents=%u..%u", o->started, o->agents);
			else
				args_addf(a, "--agents=%u", o->agents);
			args_addf(a, "--stages=%s", stages);
			args_add(a, "--emulate=regions");
		}
		args_addf(a, "--skip=%u", o->skip);
		if (o->algorithm)
			args_addf(a, "--algorithm=%s", o->algorithm);
	}
	for (size_t i = 0; i < passed->n; i++)
		args_add(a, passed->list[i]);
	if (o->headless)
		args_addf(a, "--format=%s", o->format);
}

static int prepare_controller(struct demo *d, struct error *err)
{
	char path[PATH_MAX];
	int rc = verbs_program("skippipe-controller", path, sizeof(path), err);

	if (rc != 0)
		return rc;
	controller_args(d, &d->processes.controller.args, path, false);
	controller_args(d, &d->processes.resume, path, true);
	snprintf(d->record, sizeof(d->record), "%s/run.db", d->dirs.run);
	d->processes.record = d->record;
	set_log(d, &d->processes.controller, "controller");
	d->processes.headless = d->options.headless;
	d->processes.echo = d->options.headless && strcmp(d->options.format, "text") == 0;
	return 0;
}

static void join_controller(const struct demo *d, struct args *a, const char *option)
{
	args_add(a, option);
	args_add(a, d->address);
	args_add(a, "--controller-key");
	args_add(a, d->controller_key);
}

/* Makes the command line of every agent, as an operator would type it. The devices are assigned to
 * the agents in turn. */
static int prepare_agents(struct demo *d, struct error *err)
{
	char path[PATH_MAX], name[32];
	struct devices devices = { .n = 0 };
	int rc = verbs_program("skippipe-agent", path, sizeof(path), err);

	if (rc == 0 && d->options.device)
		rc = devices_parse(&devices, d->options.device, err);
	if (rc != 0)
		return rc;
	d->processes.agents = alloc_array(d->options.agents, sizeof(*d->processes.agents));
	d->processes.n_agents = d->options.agents;
	d->processes.n_started = d->options.started;
	for (uint32_t i = 0; i < d->processes.n_agents; i++) {
		struct args *a = &d->processes.agents[i].args;

		snprintf(name, sizeof(name), "agent%u", i);
		args_add(a, path);
		join_controller(d, a, "--join");
		add_key(d, a, name);
		args_add(a, "--listen");
		args_addf(a, "ipc://%s/a%u", d->dirs.sockets, i);
		args_addf(a, "--node=%u", i);
		args_addf(a, "--run-dir=%s", d->dirs.run);
		if (d->options.rehearse)
			args_add(a, "--device=pretend");
		else if (devices.n > 0)
			args_addf(a, "--device=%s", devices.names[i % devices.n]);
		if (d->options.recompute)
			args_addf(a, "--recompute=%s", d->options.recompute);
		set_log(d, &d->processes.agents[i], name);
	}
	return 0;
}

static int prepare_console(struct demo *d, struct error *err)
{
	struct args *a = &d->processes.console.args;
	char path[PATH_MAX];
	int rc = verbs_program("skippipe-console", path, sizeof(path), err);

	if (rc != 0)
		return rc;
	args_add(a, path);
	join_controller(d, a, "--connect");
	add_key(d, a, "console");
	args_add(a, "--owner");
	if (d->options.theme)
		args_addf(a, "--theme=%s", d->options.theme);
	if (d->options.price)
		args_addf(a, "--price=%s", d->options.price);
	return 0;
}

static int prepare_processes(struct demo *d, struct error *err)
{
	int orders[2], rc;

	if (pipe2(orders, O_CLOEXEC | O_NONBLOCK) != 0)
		return error_set(err, -errno, "pipe: %s", strerror(errno));
	d->processes.orders = orders[0];
	d->processes.orders_to = orders[1];
	snprintf(d->address, sizeof(d->address), "ipc://%s/controller", d->dirs.sockets);
	rc = prepare_controller(d, err);
	if (rc == 0)
		rc = prepare_agents(d, err);
	if (rc == 0 && !d->options.headless)
		rc = prepare_console(d, err);
	return rc;
}

/* ---- running ---- */

static void demo_fini(struct demo *d)
{
	for (uint32_t i = 0; i < d->processes.n_agents; i++)
		child_free(&d->processes.agents[i]);
	free(d->processes.agents);
	if (d->processes.controller.args.list != d->processes.resume.list)
		args_free(&d->processes.resume);
	child_free(&d->processes.controller);
	child_free(&d->processes.console);
	if (d->processes.orders >= 0)
		close(d->processes.orders);
	if (d->processes.orders_to >= 0)
		close(d->processes.orders_to);
	demo_dirs_remove(&d->dirs);
	remove_keys(d);
	args_free(&d->made);
	free(d->admitted);
	demo_options_free(&d->options);
}

/* Prints an argument so that a shell reads it as one word. */
static void print_quoted(const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789/._-+=:,@%"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (strspn(text, plain) == strlen(text)) {
		fputs(text, stderr);
		return;
	}
	fputc('\'', stderr);
	for (; *text; text++)
		*text == '\'' ? fputs("'\\''", stderr) : fputc(*text, stderr);
	fputc('\'', stderr);
}

/* Prints how the run ended. After a failure it prints the cause: the signal that killed the
 * controller, or else the last line of the controller's log. */
static void report_end(const struct demo *d, int status)
{
	const struct child *controller = &d->processes.controller;
	char words[512], path[PATH_MAX];

	if (status != 0) {
		child_last_line(controller, words, sizeof(words));
		if (WIFSIGNALED(controller->status))
			child_ending_text(controller, words, sizeof(words));
		fprintf(stderr, "skippipe: %s%s\n",
			WIFSIGNALED(controller->status) ? "the controller ended: " : "",
			*words ? words : "the controller failed, and its log is empty");
		fprintf(stderr, "skippipe: logs are in %s/log\n", d->dirs.run);
		return;
	}
	fprintf(stderr, "skippipe: the run is recorded in %s\n", d->dirs.run);
	if (verbs_program("skippipe", path, sizeof(path), NULL) != 0)
		return;
	fprintf(stderr, "skippipe: to %s:\n  ",
		d->options.rehearse ? "check its record"
				    : "recompute it and compare the weights");
	print_quoted(path);
	fputs(" verify ", stderr);
	print_quoted(d->dirs.run);
	fputc('\n', stderr);
}

static FILE *open_log(const struct demo *d)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/log/demo.log", d->dirs.run);
	return fopen(path, "ae");
}

/* Checks that all programs exist. It is called before any folder is created, so that an incomplete
 * build leaves nothing behind. */
static int check_programs(const struct demo *d, struct error *err)
{
	static const char *const needed[] = { "skippipe-key", "skippipe-controller",
					      "skippipe-agent", "skippipe-console" };
	char path[PATH_MAX];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < (d->options.headless ? 3 : 4); i++)
		rc = verbs_program(needed[i], path, sizeof(path), err);
	return rc;
}

/* Checks that the console can open the terminal. It is called before the agents start, because the
 * end of the console would end the run. */
static int check_terminal(const struct demo *d, struct error *err)
{
	char path[PATH_MAX], out[512];
	struct args a = { 0 };
	int rc;

	if (d->options.headless)
		return 0;
	rc = verbs_program("skippipe-console", path, sizeof(path), err);
	if (rc != 0)
		return rc;
	args_add(&a, path);
	args_add(&a, "--check");
	if (d->options.theme)
		args_addf(&a, "--theme=%s", d->options.theme);
	if (d->options.price)
		args_addf(&a, "--price=%s", d->options.price);
	rc = child_output(&a, out, sizeof(out), CHILD_WAIT_US, err);
	if (rc == -EIO)
		error_set(err, rc, "%s", out);
	args_free(&a);
	return rc;
}

static int prepare_run(struct demo *d, struct error *err)
{
	int rc = check_programs(d, err);

	if (rc == 0)
		rc = check_terminal(d, err);
	if (rc == 0)
		rc = demo_dirs_make(&d->dirs, d->options.run_dir, err);
	if (rc != 0)
		return rc;
	if (d->dirs.why_moved[0])
		fprintf(stderr, "skippipe: recording in %s: %s\n", d->dirs.run,
			d->dirs.why_moved);
	else if (d->options.headless)
		fprintf(stderr, "skippipe: recording in %s\n", d->dirs.run);
	/* Keys come first, because prepare_processes puts the controller's key into command
	 * lines. */
	rc = make_keys(d, err);
	return rc == 0 ? prepare_processes(d, err) : rc;
}

static int run_demo(struct demo *d)
{
	struct log log = { .least = LOG_INFO, .who = "demo" };
	struct error err = { "" };
	int status = EXIT_FAILED, rc;

	supervise_hold_signals();
	rc = prepare_run(d, &err);
	if (rc == 0) {
		log.to = open_log(d);
		rc = supervise(&d->processes, &log, &status, &err);
		if (log.to)
			fclose(log.to);
	}
	if (rc != 0) {
		fprintf(stderr, "skippipe: %s\n", err.text);
		return EXIT_FAILED;
	}
	report_end(d, status);
	return status;
}

int demo_main(bool rehearse, char **argv)
{
	struct demo d = { .processes = { .orders = -1, .orders_to = -1 } };
	const char *verb = rehearse ? "rehearse" : "demo";
	struct error err = { "" };
	int status;

	if (demo_options_parse(&d.options, rehearse, argv, &err) != 0) {
		fprintf(stderr, "skippipe %s: %s\n", verb, err.text);
		return EXIT_USAGE;
	}
	if (d.options.help) {
		demo_options_help(rehearse, stdout);
		demo_options_free(&d.options);
		return 0;
	}
	if (!d.options.headless && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
		fprintf(stderr,
			"skippipe %s: standard input or output is not a terminal: running "
			"without a console, as with --headless\n",
			verb);
		d.options.headless = true;
	}
	status = run_demo(&d);
	demo_fini(&d);
	return status;
}
