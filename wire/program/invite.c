/* invite.c - the command `skippipe invite`: makes an invitation and prints its token, lists
 * invitations, or revokes an invitation. The command edits the file of admitted keys. A running
 * controller watches this file, but the command needs no controller. */
#include "wire/program/invite.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/process/options.h"
#include "base/process/user_folder.h"
#include "wire/address.h"
#include "wire/invite/invitations.h"
#include "wire/reach.h"
#include "wire/invite/token.h"

enum { DONE = 0, FAILED = 1, USAGE = 2, PORT = 7700, TRIES = 8 };

struct request {
	const char *key_file, *admitted_file; /* paths given as options; NULL: not given */
	char key[PATH_MAX], admitted[PATH_MAX];
	const char *revoked; /* name of the invitation to revoke; NULL: no --revoke */
	bool lists;
	struct token token;
	struct keys_terms terms;
	int64_t for_s;
};

static int report_error(const struct error *err)
{
	fprintf(stderr, "skippipe invite: %s\n", err->text);
	return FAILED;
}

/* Reads a duration: a number followed by a unit of time. */
static bool read_duration(const char *text, int64_t *out_s)
{
	static const struct {
		char unit;
		int64_t s;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	char *end;
	const long n = strtol(text, &end, 10);
	if (end == text || n < 1 || n > 1000000 || end[0] == 0 || end[1] != 0)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (units[i].unit == end[0]) {
			*out_s = n * units[i].s;
			return *out_s <= 366 * INT64_C(86400);
		}
	}
	return false;
}

static int take_address(void *options, const char *text, struct error *err)
{
	struct token *token = &((struct request *)options)->token;
	char host[LINK_ADDRESS_SIZE], port[8];
	bool has_room = token->n_addresses < TOKEN_ADDRESSES;
	char *to = token->addresses[has_room ? token->n_addresses : 0];
	const int n = snprintf(to, LINK_ADDRESS_SIZE, "%s%s",
			       strstr(text, "://") != NULL ? "" : "tcp://", text);
	if (!has_room || n >= LINK_ADDRESS_SIZE ||
	    (strncmp(to, "ipc://", 6) != 0 && (!address_split(to, host, port) || atoi(port) <= 0)))
		return error_set(
			err, -EINVAL,
			"--address: expected tcp://HOST:PORT, at most %d times, got \"%s\"",
			TOKEN_ADDRESSES, text);
	token->n_addresses++;
	return 0;
}

static int take_role(void *options, const char *text, struct error *err)
{
	struct keys_terms *terms = &((struct request *)options)->terms;
	const unsigned may_join = KEYS_ROLE_BIT(KEYS_AGENT) | KEYS_ROLE_BIT(KEYS_CONSOLE) |
				  KEYS_ROLE_BIT(KEYS_WATCHER);
	if (keys_role_parse(text, &terms->role) == 0 &&
	    (KEYS_ROLE_BIT(terms->role) & may_join) != 0)
		return 0;
	return error_set(err, -EINVAL, "--role: expected agent, console or watcher, got \"%s\"",
			 text);
}

static int take_duration(void *options, const char *text, struct error *err)
{
	return read_duration(text, &((struct request *)options)->for_s)
		       ? 0
		       : error_set(err, -EINVAL,
				   "--for: expected a time of at most 366 days, such as 90s, 30m, "
				   "2h or 7d, got \"%s\"",
				   text);
}

#define AT(field) .at = offsetof(struct request, field)
static const struct options_row rows[] = {
	{ "role", OPTIONS_PARSED, "ROLE", "agent",
	  "agent; console, which may give commands; or watcher", .parse = take_role },
	{ "uses", OPTIONS_U32, "N", "1", "number of machines that may use the token",
	  AT(terms.uses), .least = 1, .most = INVITATION_USES_MOST },
	{ "for", OPTIONS_PARSED, "TIME", "2h", "how long it is valid: 90s, 30m, 2h or 7d",
	  .parse = take_duration },
	{ "address", OPTIONS_PARSED, "ADDRESS", .parse = take_address,
	  .help = "where machines reach the controller, tcp://HOST:PORT; up to 4 are tried in "
		  "turn [this machine's addresses, port 7700]" },
	{ "list", OPTIONS_FLAG, AT(lists), .help = "list the invitations" },
	{ "revoke", OPTIONS_TEXT, "ID", AT(revoked),
	  .help = "end an invitation; machines that have joined stay" },
	{ "key", OPTIONS_TEXT, "FILE", AT(key_file),
	  .help = "the controller's key, created if it is missing "
		  "[~/.local/state/skippipe/controller.key]" },
	{ "admitted", OPTIONS_TEXT, "FILE", AT(admitted_file),
	  .help = "the list of admitted keys [~/.local/state/skippipe/admitted]" },
	{ "help", OPTIONS_HELP, .help = "print this help" },
};
#undef AT

static const struct options_table table_of_invite = {
	rows,
	sizeof(rows) / sizeof(rows[0]),
	.intro = "usage: skippipe invite [--role ROLE] [--uses N] [--for TIME] [--address ADDRESS "
		 "...]\n"
		 "       skippipe invite --list\n"
		 "       skippipe invite --revoke ID\n"
		 "\n"
		 "Prints a token with which a machine joins the controller of this machine:\n"
		 "skippipe agent --join TOKEN, or skippipe console TOKEN. Anybody who has the "
		 "token may\n"
		 "use it, so treat it like a password (docs/security.md). A running controller "
		 "notices a\n"
		 "new invitation within a second.\n"
		 "\n",
	.end = "\nThe controller's options --key and --admitted have the same values by default.\n",
};

/* Gives the path of a file: the argument of the option or, without the option, the file `name` in
 * the user's folder. Creates the user's folder. */
static int choose_file(char path[PATH_MAX], const char *option, const char *given, const char *name,
		       struct error *err)
{
	if (given == NULL) {
		const int rc = user_state_file(path, PATH_MAX, name, err);
		return rc == 0 ? 0 : error_prefix(err, rc, "give --key and --admitted");
	}
	if (snprintf(path, PATH_MAX, "%s", given) >= PATH_MAX)
		return error_set(err, -ENAMETOOLONG, "%s: too long", option);
	return 0;
}

static int choose_files(struct request *r, struct error *err)
{
	const int rc = choose_file(r->key, "--key", r->key_file, "controller.key", err);
	return rc < 0 ? rc
		      : choose_file(r->admitted, "--admitted", r->admitted_file, "admitted", err);
}

static int64_t now_s(void)
{
	return clock_wall_us() / 1000000;
}

static int list_all(const struct keys_list *list)
{
	size_t n = 0;
	for (size_t i = 0; i < keys_list_count(list); i++) {
		const struct keys_entry *e = keys_list_at(list, i);
		char terms[INVITATION_TERMS_SIZE];
		if (e->role != KEYS_INVITATION)
			continue;
		if (n++ == 0)
			printf("ID       role, uses, end\n");
		const char *end = invitations_end(&e->terms, now_s());
		invitations_print_terms(e, terms);
		printf("%s%s%s%s\n", e->name, terms, end != NULL && !e->terms.is_revoked ? " " : "",
		       end != NULL && !e->terms.is_revoked ? end : "");
	}
	if (n == 0)
		puts("no invitations");
	return DONE;
}

/* Makes an invitation's key pair and adds the public key to the list. The invitation's name is the
 * first eight digits of the public key. */
static int add_invitation(struct keys_list *list, const struct keys_terms *terms,
			  struct keys_identity **out, char name[KEYS_NAME_SIZE], struct error *err)
{
	int rc = -EEXIST;
	for (int i = 0; rc == -EEXIST && i < TRIES; i++) {
		char text[KEYS_TEXT_SIZE];
		struct keys_identity *id;
		rc = keys_generate(&id, err);
		if (rc < 0)
			return rc;
		keys_text(keys_public_of(id), text);
		snprintf(name, KEYS_NAME_SIZE, "%.8s", text);
		rc = invitations_add(list, keys_public_of(id), name, terms, now_s(), err);
		if (rc == 0)
			*out = id;
		else
			keys_free(id);
	}
	return rc;
}

static void choose_addresses(struct token *token)
{
	struct reach_mapping mapping;
	if (token->n_addresses > 0)
		return;
	if (reach_mapped(PORT, PORT, &mapping))
		strcpy(token->addresses[token->n_addresses++], mapping.outside);
	token->n_addresses += reach_own(PORT, token->addresses + token->n_addresses,
					TOKEN_ADDRESSES - token->n_addresses);
	if (token->n_addresses == 0)
		snprintf(token->addresses[token->n_addresses++], LINK_ADDRESS_SIZE,
			 "tcp://127.0.0.1:%d", PORT);
}

/* Prints the token to standard output. Prints the invitation's name and terms, and the
 * controller's addresses, to standard error. */
static int print_token(const struct request *r, const struct keys_identity *invitation,
		       const char *name, struct error *err)
{
	struct keys_entry shown = { .role = KEYS_INVITATION, .terms = r->terms };
	char text[TOKEN_SIZE], terms[INVITATION_TERMS_SIZE];
	int rc = token_print(&r->token, invitation, text, err);
	if (rc < 0)
		return rc;
	puts(text);
	token_wipe(text);
	invitations_print_terms(&shown, terms);
	fprintf(stderr, "invitation %s:%s, for a controller at", name, terms);
	for (unsigned i = 0; i < r->token.n_addresses; i++)
		fprintf(stderr, " %s", r->token.addresses[i]);
	fprintf(stderr, "\n");
	return 0;
}

static int invite(struct request *r, struct keys_list *list, struct error *err)
{
	struct keys_identity *controller = NULL, *invitation = NULL;
	char name[KEYS_NAME_SIZE];
	r->terms.ends_s = now_s() + r->for_s;
	r->token.role = r->terms.role;
	choose_addresses(&r->token);
	int rc = keys_load_or_make(&controller, r->key, err);
	if (rc == 0) {
		r->token.controller = *keys_public_of(controller);
		rc = add_invitation(list, &r->terms, &invitation, name, err);
	}
	if (rc == 0)
		rc = print_token(r, invitation, name, err);
	keys_free(controller);
	keys_free(invitation);
	return rc;
}

int invite_command(int argc, char **argv)
{
	struct request r = { .lists = false };
	struct keys_list *list;
	struct error err = { "" };
	const int read = options_read(&table_of_invite, &r, argc, argv, NULL, &err);
	if (read > 0) {
		options_help(&table_of_invite, stdout);
		return DONE;
	}
	if (read < 0) {
		report_error(&err);
		return USAGE;
	}
	if (choose_files(&r, &err) < 0 || keys_list_open(&list, r.admitted, &err) < 0)
		return report_error(&err);
	int rc = 0;
	if (r.lists)
		rc = list_all(list);
	else if (r.revoked != NULL)
		rc = invitations_revoke(list, r.revoked, &err);
	else
		rc = invite(&r, list, &err);
	keys_list_free(list);
	return rc < 0 ? report_error(&err) : DONE;
}
