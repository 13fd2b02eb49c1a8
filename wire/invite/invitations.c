/* invitations.c - invitations in the admitted list: their text, the reasons why they end, and the
 * admission of a key (invitations.h). A single write of the list both counts the use and admits
 * the key. A crash therefore neither loses a use nor admits a key without counting a use. */
#include "wire/invite/invitations.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "wire/admitted.h"

#define TIME_FORMAT "%Y-%m-%dT%H:%M:%SZ"
#define NUMBERS_MOST 10000 /* limit of the number that is appended to make a name unique */

int invitations_parse_terms(const char *text, struct keys_terms *out, struct error *err)
{
	struct keys_terms terms = { .uses = 0 };
	char role[16], end[32], revoked[16] = "";
	struct tm tm = { .tm_year = 0 };
	char extra[2];
	int words = sscanf(text == NULL ? "" : text, " %15s %u/%u %31s %15s %1s", role, &terms.used,
			   &terms.uses, end, revoked, extra);
	if (words < 4 || words > 5 || (words == 5 && strcmp(revoked, "revoked") != 0))
		return error_set(
			err, -EINVAL,
			"expected the terms of an invitation: a role, USED/USES and a time");
	const char *rest = strptime(end, TIME_FORMAT, &tm);
	if (rest == NULL || *rest != 0)
		return error_set(err, -EINVAL,
				 "\"%s\" is not a time: expected one like 2026-11-29T04:00:00Z",
				 end);
	if (keys_role_parse(role, &terms.role) < 0 || terms.role == KEYS_CONTROLLER ||
	    terms.role == KEYS_INVITATION)
		return error_set(
			err, -EINVAL,
			"an invitation cannot grant the role \"%s\": expected agent, console or "
			"watcher",
			role);
	if (terms.uses == 0 || terms.uses > INVITATION_USES_MOST || terms.used > terms.uses)
		return error_set(err, -EINVAL, "%u/%u uses: expected at most %d uses", terms.used,
				 terms.uses, INVITATION_USES_MOST);
	terms.ends_s = timegm(&tm);
	terms.is_revoked = words == 5;
	*out = terms;
	return 0;
}

void invitations_print_terms(const struct keys_entry *entry, char out[INVITATION_TERMS_SIZE])
{
	const struct keys_terms *terms = &entry->terms;
	const time_t ends = (time_t)terms->ends_s;
	char end[32] = "";
	struct tm tm;
	out[0] = 0;
	if (entry->role != KEYS_INVITATION)
		return;
	if (gmtime_r(&ends, &tm) != NULL)
		strftime(end, sizeof(end), TIME_FORMAT, &tm);
	snprintf(out, INVITATION_TERMS_SIZE, " %s %u/%u %s%s", keys_role_name(terms->role),
		 terms->used, terms->uses, end, terms->is_revoked ? " revoked" : "");
}

const char *invitations_end(const struct keys_terms *terms, int64_t now_s)
{
	if (terms->is_revoked)
		return "revoked";
	if (terms->used >= terms->uses)
		return "used up";
	return now_s >= terms->ends_s ? "expired" : NULL;
}

static void drop_old(struct keys_list *list, int64_t now_s)
{
	for (size_t i = keys_list_count(list); i > 0; i--) {
		const struct keys_entry *at = keys_list_at(list, i - 1);
		if (at->role == KEYS_INVITATION && now_s - at->terms.ends_s > INVITATION_KEPT_S)
			admitted_drop(list, admitted_find(list, &at->key));
	}
}

int invitations_add(struct keys_list *list, const struct keys_public *invitation, const char *name,
		    const struct keys_terms *terms, int64_t now_s, struct error *err)
{
	struct keys_entry entry = { .key = *invitation, .role = KEYS_INVITATION, .terms = *terms };
	struct admitted_edit edit;
	int rc = admitted_begin(list, &edit, err);
	if (rc < 0)
		return rc;
	drop_old(list, now_s);
	snprintf(entry.name, sizeof(entry.name), "%s", name);
	rc = admitted_put(list, &entry, err);
	return admitted_end(list, &edit, rc, err);
}

int invitations_revoke(struct keys_list *list, const char *name, struct error *err)
{
	struct admitted_edit edit;
	int rc = admitted_begin(list, &edit, err);
	if (rc < 0)
		return rc;
	struct keys_entry *entry = admitted_named(list, name);
	if (entry == NULL || entry->role != KEYS_INVITATION)
		rc = error_set(err, -ENOENT, "there is no invitation \"%.80s\"", name);
	else
		entry->terms.is_revoked = true;
	return admitted_end(list, &edit, rc, err);
}

/* Copies the wanted name, and replaces each character that a name cannot have by '-'. The
 * argument `otherwise` is the name to use if nothing useful remains. */
static void make_valid(const char *wish, const char *otherwise, char out[KEYS_NAME_SIZE])
{
	snprintf(out, KEYS_NAME_SIZE, "%s", wish);
	for (char *c = out; *c != 0; c++) {
		if (strchr(KEYS_NAME_CHARACTERS, *c) == NULL)
			*c = '-';
	}
	if (out[strspn(out, "-.")] == 0)
		snprintf(out, KEYS_NAME_SIZE, "%s", otherwise);
	if (out[0] == '-')
		out[0] = 'x';
}

/* If another key has the name, appends a number that makes it unique. */
static int make_unique(const struct keys_list *list, char name[KEYS_NAME_SIZE], struct error *err)
{
	char stem[KEYS_NAME_SIZE - 8];
	snprintf(stem, sizeof(stem), "%.*s", (int)sizeof(stem) - 1, name);
	for (unsigned i = 2; admitted_named(list, name) != NULL; i++) {
		if (i > NUMBERS_MOST)
			return error_set(err, -EPERM, "too many keys have the name %s", stem);
		snprintf(name, KEYS_NAME_SIZE, "%s-%u", stem, i);
	}
	return 0;
}

static int choose_name(const struct keys_list *list, const struct invitation_request *request,
		       char out[KEYS_NAME_SIZE], struct error *err)
{
	make_valid(request->name, keys_role_name(request->role), out);
	if (!request->is_exact)
		return make_unique(list, out, err);
	if (strcmp(out, request->name) != 0)
		return error_set(
			err, -EPERM,
			"\"%.60s\" is not a name: expected up to %d letters, digits, '.', '_' or "
			"'-'",
			request->name, KEYS_NAME_SIZE - 1);
	if (admitted_named(list, out) != NULL)
		return error_set(
			err, -EPERM,
			"the name \"%.60s\" belongs to another key: choose another --name, or "
			"expel that key",
			out);
	return 0;
}

/* Returns 1 if the requester's key is already admitted with the requested role, 0 if the key is not
 * on the list. Refuses a barred key, and a key with another role, because an invitation must not
 * change the rights of a key on the list. */
static int check_key(const struct keys_list *list, const struct invitation_request *request,
		     struct invitation_answer *out, struct error *err)
{
	const struct keys_entry *has = admitted_find(list, &request->key);
	if (has == NULL)
		return 0;
	if (has->role != request->role || has->barred)
		return error_set(err, -EPERM, "this machine's key is %s",
				 has->barred
					 ? "barred, because it exceeded its quota"
					 : "admitted for another role; start with another --key");
	memcpy(out->name, has->name, sizeof(out->name));
	return 1;
}

/* Checks the request and changes the list in memory. Returns 1 if the key was already admitted. */
static int admit(struct keys_list *list, const struct invitation_request *request, int64_t now_s,
		 struct invitation_answer *out, struct error *err)
{
	struct keys_entry entry = { .key = request->key, .role = request->role };
	struct keys_entry *by = admitted_find(list, &request->invitation);
	if (by == NULL || by->role != KEYS_INVITATION)
		return error_set(err, -EPERM, "the invitation was withdrawn");
	memcpy(out->invitation, by->name, sizeof(out->invitation));
	out->terms = by->terms;
	if (by->terms.role != request->role)
		return error_set(err, -EPERM, "the invitation is for the role %s, not %s",
				 keys_role_name(by->terms.role), keys_role_name(request->role));
	int rc = check_key(list, request, out, err);
	if (rc != 0)
		return rc;
	const char *end = invitations_end(&by->terms, now_s);
	if (end != NULL)
		return error_set(err, -EPERM, "the invitation is %s (%u of %u uses)", end,
				 by->terms.used, by->terms.uses);
	rc = choose_name(list, request, entry.name, err);
	if (rc < 0)
		return rc;
	by->terms.used++;
	out->terms = by->terms;
	out->is_new = true;
	memcpy(out->name, entry.name, sizeof(out->name));
	/* This call may move the entries, so `by` is invalid after it. */
	return admitted_put(list, &entry, err);
}

int invitations_admit(struct keys_list *list, const struct invitation_request *request,
		      int64_t now_s, struct invitation_answer *out, struct error *err)
{
	struct invitation_answer answer = { .is_new = false };
	struct admitted_edit edit;
	int rc = admitted_begin(list, &edit, err);
	if (rc < 0)
		return rc;
	rc = admit(list, request, now_s, &answer, err);
	const bool admitted_before = rc == 1;
	/* If the key was already admitted, nothing has changed. The error -EALREADY then makes
	 * admitted_end leave the file unwritten. */
	rc = admitted_end(list, &edit, admitted_before ? -EALREADY : rc, err);
	*out = answer;
	return admitted_before ? 0 : rc;
}
