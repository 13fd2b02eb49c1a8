/* main.c - the program skippipe-key, which runs `skippipe keygen`, `public`, `admit`, `expel` and
 * `invite`. It makes key pairs and edits the list of the keys that may join a run. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/process/output.h"
#include "wire/invite/invitations.h"
#include "wire/keys.h"
#include "wire/program/invite.h"

enum { DONE = 0, FAILED = 1, USAGE = 2 };

static const char help[] =
	"usage: skippipe keygen FILE\n"
	"       skippipe public FILE\n"
	"       skippipe admit LIST KEY --role agent|controller|console|watcher --name NAME\n"
	"       skippipe expel LIST NAME|KEY\n"
	"       skippipe invite [option ...]\n"
	"\n"
	"keygen  makes a key pair. Writes the secret to FILE (mode 0600, never overwritten) and\n"
	"        prints the public key, 64 hex digits. For an existing FILE, use `public`.\n"
	"public  prints the public key of the key pair in FILE.\n"
	"admit   adds a public KEY to LIST with a role and a name, so that its owner may join.\n"
	"        Creates LIST if it does not exist. Running programs notice within a second.\n"
	"expel   removes a name or key from LIST. Its sessions end at once, and it cannot connect\n"
	"        again.\n"
	"invite  prints a token with which a machine makes its own key and is admitted\n"
	"        (skippipe invite --help).\n"
	"\n"
	"To change a key: generate a new one, admit it, restart its owner, expel the old one.\n";

static int print_usage(const char *what)
{
	fprintf(stderr, "skippipe: %s\n%s", what, help);
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
	struct error err = {""};
	if (argc != 2)
		return print_usage("keygen takes one FILE");
	if (keys_generate(&id, &err) < 0)
		return report_error(&err);
	int rc = keys_save(id, argv[1], &err) < 0 ? report_error(&err) : print_public(id);
	keys_free(id);
	return rc;
}

static int show_public(int argc, char **argv)
{
	struct keys_identity *id;
	struct error err = {""};
	if (argc != 2)
		return print_usage("public takes one FILE");
	if (keys_load(&id, argv[1], &err) < 0)
		return report_error(&err);
	int rc = print_public(id);
	keys_free(id);
	return rc;
}

/* Checks all arguments before it opens the list. */
static int command_admit(int argc, char **argv)
{
	static const struct option options[] = {
		{"role", required_argument, NULL, 'r'},
		{"name", required_argument, NULL, 'n'},
		{NULL, 0, NULL, 0},
	};
	const char *role_text = NULL, *name = NULL;
	struct keys_public key;
	struct keys_list *list;
	enum keys_role role;
	struct error err = {""};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'r')
			role_text = optarg;
		else if (c == 'n')
			name = optarg;
		else
			return print_usage(
				"admit has only the options --role and --name, each with a value");
	}
	if (argc - optind != 2 || role_text == NULL || name == NULL)
		return print_usage("admit takes LIST, KEY, --role and --name");
	if (keys_role_parse(role_text, &role) < 0)
		return print_usage("--role: expected agent, controller, console or watcher");
	if (keys_parse(argv[optind + 1], &key, &err) < 0)
		return report_error(&err);
	if (keys_list_open(&list, argv[optind], &err) < 0)
		return report_error(&err);
	int rc = keys_list_admit(list, &key, role, name, &err);
	keys_list_free(list);
	return rc < 0 ? report_error(&err) : DONE;
}

/* The owner of a token can be admitted again, with the same or another key. */
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
	struct error err = {""};
	if (argc != 3)
		return print_usage("expel takes LIST and a name or key");
	if (keys_list_open(&list, argv[1], &err) < 0)
		return report_error(&err);
	int rc = keys_list_expel(list, argv[2], &err);
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
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(strcmp(argv[1], "invite") == 0 ? invite_help : help, stdout);
			return DONE;
		}
	}
	if (argc < 2)
		return print_usage("expected keygen, public, admit, expel or invite");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	}
	return print_usage("expected keygen, public, admit, expel or invite");
}
