/* main.c - the program skippipe-key, which runs `skippipe keygen`, `public`, `admit`, `expel` and
 * `invite`. The program makes key pairs and edits the list of the keys that may join a run. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/process/options.h"
#include "base/process/output.h"
#include "wire/invite/invitations.h"
#include "wire/keys.h"
#include "wire/program/invite.h"

enum { DONE = 0, FAILED = 1, USAGE = 2 };

/* A parsed command line: the words, and the options of the command admit. */
struct request {
	const char *words[2];
	unsigned n;
	const char *name; /* argument of the option --name; NULL: not given */
	enum keys_role role;
	bool has_role;
};

enum { ADMIT = 1, OTHERS = 2 };

static int take_role(void *options, const char *text, struct error *err)
{
	return keys_role_parse(text, &((struct request *)options)->role) == 0
		       ? 0
		       : error_set(err, -EINVAL,
				   "--role: expected agent, controller, console or watcher, got "
				   "\"%s\"",
				   text);
}

static int take_word(void *options, const char *word, struct error *err)
{
	struct request *r = options;

	if (r->n == sizeof(r->words) / sizeof(r->words[0]))
		return error_set(err, -EINVAL, "%s: one word too many", word);
	r->words[r->n++] = word;
	return 0;
}

static const struct options_row rows[] = {
	{ NULL, .help = "Options of admit" },
	{ "role", OPTIONS_PARSED, "ROLE", .parse = take_role, .mark = ADMIT,
	  .given = offsetof(struct request, has_role),
	  .help = "agent; controller; console, which may give commands; or watcher" },
	{ "name", OPTIONS_TEXT, "NAME", .at = offsetof(struct request, name), .mark = ADMIT,
	  .help = "the owner's name in the list" },
	{ "help", OPTIONS_HELP, .help = "print this help" },
};

/* The help of all commands of this program except invite. */
static const struct options_table table_of_keys = {
	rows,
	sizeof(rows) / sizeof(rows[0]),
	.word = take_word,
	.intro =
		"usage: skippipe keygen FILE\n"
		"       skippipe public FILE\n"
		"       skippipe admit LIST KEY --role ROLE --name NAME\n"
		"       skippipe expel LIST NAME|KEY\n"
		"       skippipe invite [option ...]\n"
		"\n"
		"keygen  makes a key pair. Writes the secret to FILE (mode 0600, never "
		"overwritten)\n"
		"        and prints the public key, 64 hex digits. For an existing FILE, use "
		"`public`.\n"
		"public  prints the public key of the key pair in FILE.\n"
		"admit   adds a public KEY to LIST with a role and a name, so that its owner may "
		"join.\n"
		"        Creates LIST if it does not exist. Running programs notice within a "
		"second.\n"
		"expel   removes a name or key from LIST. Its sessions end at once, and it cannot\n"
		"        connect again.\n"
		"invite  prints a token with which a machine makes its own key and is admitted\n"
		"        (skippipe invite --help).\n",
	.end = "\nTo change a key: generate a new one, admit it, restart its owner, expel the old "
	       "one.\n",
};

/* Reads the command line of a command that takes n words. argv[0] is the command. If help was
 * printed or the line is wrong, sets *status to the exit status and returns false, because there
 * is nothing to run. */
static bool read_line(struct request *r, int argc, char **argv, unsigned n, const char *words,
		      int *status)
{
	struct options_table table = table_of_keys;
	struct error err = { "" };
	int rc;

	table.verb = argv[0];
	table.part = strcmp(argv[0], "admit") == 0 ? ADMIT : OTHERS;
	*r = (struct request){ .n = 0 };
	rc = options_read(&table, r, argc, argv, NULL, &err);
	*status = DONE;
	if (rc > 0)
		options_help(&table_of_keys, stdout);
	if (rc == 0 && (r->n != n || (table.part == ADMIT && (!r->has_role || !r->name))))
		rc = error_set(&err, -EINVAL, "takes %s (see --help)", words);
	if (rc < 0) {
		fprintf(stderr, "skippipe %s: %s\n", argv[0], err.text);
		*status = USAGE;
	}
	return rc == 0;
}

static int refuse_verb(void)
{
	fputs("skippipe: expected keygen, public, admit, expel or invite\n", stderr);
	options_help(&table_of_keys, stderr);
	return USAGE;
}

static int report_error(const struct error *err)
{
	fprintf(stderr, "skippipe: %s\n", err->text);
	return FAILED;
}

static int print_public(const struct keys_identity *id)
{
	char text[KEYS_TEXT_SIZE];
	keys_text(keys_public_of(id), text);
	puts(text);
	return DONE;
}

static int command_keygen(int argc, char **argv)
{
	struct keys_identity *id;
	struct error err = { "" };
	struct request r;
	int status;
	if (!read_line(&r, argc, argv, 1, "one FILE", &status))
		return status;
	if (keys_generate(&id, &err) < 0)
		return report_error(&err);
	int rc = keys_save(id, r.words[0], &err) < 0 ? report_error(&err) : print_public(id);
	keys_free(id);
	return rc;
}

static int show_public(int argc, char **argv)
{
	struct keys_identity *id;
	struct error err = { "" };
	struct request r;
	int status;
	if (!read_line(&r, argc, argv, 1, "one FILE", &status))
		return status;
	if (keys_load(&id, r.words[0], &err) < 0)
		return report_error(&err);
	int rc = print_public(id);
	keys_free(id);
	return rc;
}

/* Runs the command admit. Checks all arguments before it opens the list. */
static int command_admit(int argc, char **argv)
{
	struct keys_public key;
	struct keys_list *list;
	struct error err = { "" };
	struct request r;
	int status;
	if (!read_line(&r, argc, argv, 2, "LIST, KEY, --role and --name", &status))
		return status;
	if (keys_parse(r.words[1], &key, &err) < 0)
		return report_error(&err);
	if (keys_list_open(&list, r.words[0], &err) < 0)
		return report_error(&err);
	int rc = keys_list_admit(list, &key, r.role, r.name, &err);
	keys_list_free(list);
	return rc < 0 ? report_error(&err) : DONE;
}

/* Warns that expelling a key does not revoke invitations. The owner of a token can be admitted
 * again, with the same key or with another key. */
static void warn_of_invitations(const struct keys_list *list)
{
	for (size_t i = 0; i < keys_list_count(list); i++) {
		const struct keys_entry *e = keys_list_at(list, i);
		if (e->role == KEYS_INVITATION &&
		    invitations_end(&e->terms, clock_wall_us() / 1000000) == NULL)
			fprintf(stderr,
				"skippipe expel: invitation %s is still open: whoever has its "
				"token can be admitted again (skippipe invite --revoke %s)\n",
				e->name, e->name);
	}
}

static int command_expel(int argc, char **argv)
{
	struct keys_list *list;
	struct error err = { "" };
	struct request r;
	int status;
	if (!read_line(&r, argc, argv, 2, "LIST and a name or key", &status))
		return status;
	if (keys_list_open(&list, r.words[0], &err) < 0)
		return report_error(&err);
	int rc = keys_list_expel(list, r.words[1], &err);
	if (rc == 0)
		warn_of_invitations(list);
	keys_list_free(list);
	return rc < 0 ? report_error(&err) : DONE;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} verbs[] = {
		{ "keygen", command_keygen }, { "public", show_public },
		{ "admit", command_admit },   { "expel", command_expel },
		{ "invite", invite_command },
	};

	output_check_at_exit("skippipe-key");
	if (argc < 2)
		return refuse_verb();
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		options_help(&table_of_keys, stdout);
		return DONE;
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	}
	return refuse_verb();
}
