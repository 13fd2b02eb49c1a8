/* invite.c - the command `skippipe invite`: makes an invitation and prints its token, lists
 * invitations and revokes them. It changes the list of admitted keys, which a running controller
 * watches, and needs no controller to run. */
#include "wire/program/invite.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/process/user_folder.h"
#include "wire/address.h"
#include "wire/invite/invitations.h"
#include "wire/reach.h"
#include "wire/invite/token.h"

enum { DONE = 0, FAILED = 1, USAGE = 2, PORT = 7700, TRIES = 8 };

const char invite_help[] =
	"usage: skippipe invite [--role ROLE] [--uses N] [--for TIME] [--address ADDRESS ...]\n"
	"       skippipe invite --list\n"
	"       skippipe invite --revoke ID\n"
	"\n"
	"Prints a token with which a machine joins the controller of this machine:\n"
	"skippipe agent --join TOKEN, or skippipe console TOKEN. Anybody who has the token may\n"
	"use it, so treat it like a password (docs/security.md). A running controller notices a\n"
	"new invitation within a second.\n"
	"\n"
	"  --role ROLE           agent; console, which may give commands; or watcher  [agent]\n"
	"  --uses N              number of machines that may use the token  [1]\n"
	"  --for TIME            how long it is valid: 90s, 30m, 2h or 7d  [2h]\n"
	"  --address ADDRESS     where machines reach the controller, tcp://HOST:PORT; up to 4\n"
	"                        are tried in turn  [this machine's addresses, port 7700]\n"
	"  --list                list the invitations\n"
	"  --revoke ID           end an invitation; machines that have joined stay\n"
	"  --key FILE            the controller's key, created if it is missing\n"
	"                        [~/.local/state/skippipe/controller.key]\n"
	"  --admitted FILE       the list of admitted keys  [~/.local/state/skippipe/admitted]\n"
	"\n"
	"The controller's options --key and --admitted have the same values by default.\n";

struct request {
	char key[PATH_MAX], admitted[PATH_MAX];
	const char *revoked; /* NULL: no --revoke */
	bool lists;
	struct token token;
	struct keys_terms terms;
	int64_t for_s;
};

static int print_usage(const char *what)
{
	fprintf(stderr, "skippipe invite: %s (see --help)\n", what);
	return USAGE;
}

static int report_error(const struct error *err)
{
	fprintf(stderr, "skippipe invite: %s\n", err->text);
	return FAILED;
}

/* Reads a number and its unit of time. */
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

static bool take_address(struct token *token, const char *text)
{
	char host[LINK_ADDRESS_SIZE], port[8];
	if (token->n_addresses == TOKEN_ADDRESSES)
		return false;
	char *to = token->addresses[token->n_addresses++];
	const int n = snprintf(to, LINK_ADDRESS_SIZE, "%s%s",
			       strstr(text, "://") != NULL ? "" : "tcp://", text);
	return n < LINK_ADDRESS_SIZE &&
	       (strncmp(to, "ipc://", 6) == 0 || (address_split(to, host, port) && atoi(port) > 0));
}

/* Returns what is wrong with the option, or NULL. */
static const char *take_option(struct request *r, int option, const char *value)
{
	char *end;
	switch (option) {
	case 'r':
		return keys_role_parse(value, &r->terms.role) == 0 &&
				       (KEYS_ROLE_BIT(r->terms.role) &
					(KEYS_ROLE_BIT(KEYS_AGENT) | KEYS_ROLE_BIT(KEYS_CONSOLE) |
					 KEYS_ROLE_BIT(KEYS_WATCHER))) != 0
			       ? NULL
			       : "--role: expected agent, console or watcher";
	case 'u':
		r->terms.uses = (uint32_t)strtoul(value, &end, 10);
		return end != value && *end == 0 && *value != '-' && r->terms.uses >= 1 &&
				       r->terms.uses <= INVITATION_USES_MOST
			       ? NULL
			       : "--uses: expected a number from 1 to 4096";
	case 'f':
		return read_duration(value, &r->for_s)
			       ? NULL
			       : "--for: expected a time of at most 366 days, such as 90s, 30m, 2h "
				 "or 7d";
	case 'a':
		return take_address(&r->token, value)
			       ? NULL
			       : "--address: expected tcp://HOST:PORT, at most 4 times";
	case 'l':
		r->lists = true;
		return NULL;
	case 'R':
		r->revoked = value;
		return NULL;
	case 'k':
		return snprintf(r->key, sizeof(r->key), "%s", value) < (int)sizeof(r->key)
			       ? NULL
			       : "--key: too long";
	case 'A':
		return snprintf(r->admitted, sizeof(r->admitted), "%s", value) <
				       (int)sizeof(r->admitted)
			       ? NULL
			       : "--admitted: too long";
	default:
		return "unknown option, or an option without its value";
	}
}

/* Gives the files that have no option, and makes their folder. */
static int choose_files(struct request *r, struct error *err)
{
	int rc = 0;
	if (r->key[0] == 0)
		rc = user_state_file(r->key, sizeof(r->key), "controller.key", err);
	if (rc == 0 && r->admitted[0] == 0)
		rc = user_state_file(r->admitted, sizeof(r->admitted), "admitted", err);
	return rc == 0 ? 0 : error_prefix(err, rc, "give --key and --admitted");
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

/* Makes the key pair of an invitation and adds it to the list. Its name is the beginning of the
 * public key. */
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

/* Prints the token to standard output, and its role, uses and end to standard error. */
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
	static const struct option options[] = {
		{ "role", required_argument, NULL, 'r' },
		{ "uses", required_argument, NULL, 'u' },
		{ "for", required_argument, NULL, 'f' },
		{ "address", required_argument, NULL, 'a' },
		{ "list", no_argument, NULL, 'l' },
		{ "revoke", required_argument, NULL, 'R' },
		{ "key", required_argument, NULL, 'k' },
		{ "admitted", required_argument, NULL, 'A' },
		{ NULL, 0, NULL, 0 },
	};
	struct request r = { .terms = { .role = KEYS_AGENT, .uses = 1 }, .for_s = 7200 };
	struct keys_list *list;
	struct error err = { "" };
	int c;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		const char *wrong = take_option(&r, c, optarg);
		if (wrong != NULL)
			return print_usage(wrong);
	}
	if (optind < argc)
		return print_usage("takes options only");
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
