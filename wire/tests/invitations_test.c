/* Tests invitations in the admitted list, and their tokens. */
#include "wire/invite/invitations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/tests/test.h"
#include "wire/invite/token.h"

enum { NOW_S = 1800000000 };

struct place {
	char folder[64], list[128];
	struct keys_list *keys;
};

static void place_make(struct place *p)
{
	snprintf(p->folder, sizeof(p->folder), "/tmp/skippipe-invitations-test.XXXXXX");
	assert_non_null(mkdtemp(p->folder));
	snprintf(p->list, sizeof(p->list), "%s/admitted", p->folder);
	assert_int_equal(keys_list_open(&p->keys, p->list, NULL), 0);
}

static void place_clear(struct place *p)
{
	char lock[160];
	keys_list_free(p->keys);
	snprintf(lock, sizeof(lock), "%s.lock", p->list);
	unlink(p->list);
	unlink(lock);
	assert_int_equal(rmdir(p->folder), 0);
}

static const struct keys_public invitation = { { 7 } };

static void invite(struct place *p, enum keys_role role, uint32_t uses, int64_t for_s)
{
	const struct keys_terms terms = { .role = role, .uses = uses, .ends_s = NOW_S + for_s };
	assert_int_equal(invitations_add(p->keys, &invitation, "7", &terms, NOW_S, NULL), 0);
}

/* Asks for the admission of a key under a name. Returns the result; *answer may be NULL. */
static int ask(struct place *p, uint8_t key, const char *name, bool is_exact, int64_t now_s,
	       struct invitation_answer *answer, struct error *err)
{
	struct invitation_request q = { .invitation = invitation,
					.key = { { key } },
					.role = KEYS_AGENT,
					.is_exact = is_exact };
	struct invitation_answer unused;
	snprintf(q.name, sizeof(q.name), "%s", name);
	return invitations_admit(p->keys, &q, now_s, answer != NULL ? answer : &unused, err);
}

static void refuses(struct place *p, uint8_t key, const char *name, int64_t now_s, const char *why)
{
	struct error err = { "" };
	const size_t n = keys_list_count(p->keys);
	assert_int_equal(ask(p, key, name, true, now_s, NULL, &err), -EPERM);
	if (strstr(err.text, why) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err.text, why);
	assert_int_equal(keys_list_count(p->keys), n);
}

TEST(an_invitation_admits_keys_under_unique_names)
{
	struct place p;
	struct invitation_answer a;
	struct keys_list *again;
	place_make(&p);
	invite(&p, KEYS_AGENT, 4, 60);
	assert_int_equal(ask(&p, 1, "gpu", false, NOW_S, &a, NULL), 0);
	assert_string_equal(a.name, "gpu");
	assert_true(a.is_new);
	assert_int_equal(ask(&p, 2, "gpu", false, NOW_S, &a, NULL), 0);
	assert_string_equal(a.name, "gpu-2");
	assert_int_equal(ask(&p, 3, "-o rm", false, NOW_S, &a, NULL), 0);
	assert_string_equal(a.name, "xo-rm");
	/* The owner of the key has not received the answer and asks again. No second use may be
	 * counted. */
	assert_int_equal(ask(&p, 2, "other", false, NOW_S, &a, NULL), 0);
	assert_string_equal(a.name, "gpu-2");
	assert_false(a.is_new);
	refuses(&p, 4, "gpu", NOW_S, "belongs to another key");
	refuses(&p, 4, "a b", NOW_S, "not a name");
	assert_int_equal(ask(&p, 4, "", false, NOW_S, &a, NULL), 0);
	assert_string_equal(a.name, "agent");
	assert_int_equal(a.terms.used, 4);
	refuses(&p, 5, "late", NOW_S, "used up (4 of 4 uses)");
	/* A program that reads the file must find the whole list. */
	assert_int_equal(keys_list_open(&again, p.list, NULL), 0);
	assert_int_equal(keys_list_count(again), 5);
	assert_int_equal(keys_list_find(again, &invitation)->terms.used, 4);
	assert_int_equal(keys_list_find(again, &(struct keys_public){ { 3 } })->role, KEYS_AGENT);
	keys_list_free(again);
	place_clear(&p);
}

TEST(an_invitation_ends)
{
	struct place p;
	struct error err = { "" };
	place_make(&p);
	invite(&p, KEYS_AGENT, 9, 60);
	refuses(&p, 1, "x", NOW_S + 60, "expired");
	assert_int_equal(ask(&p, 1, "x", true, NOW_S + 59, NULL, NULL), 0);
	assert_int_equal(invitations_revoke(p.keys, "x", &err), -ENOENT);
	assert_int_equal(invitations_revoke(p.keys, "7", &err), 0);
	refuses(&p, 2, "y", NOW_S, "revoked");
	assert_non_null(keys_list_find(p.keys, &(struct keys_public){ { 1 } }));
	/* Adding an invitation must remove an invitation that ended long ago. */
	const struct keys_terms terms = { .role = KEYS_AGENT, .uses = 1, .ends_s = INT32_MAX };
	assert_int_equal(invitations_add(p.keys, &(struct keys_public){ { 8 } }, "8", &terms,
					 NOW_S + 61 + INVITATION_KEPT_S, NULL),
			 0);
	assert_null(keys_list_find(p.keys, &invitation));
	refuses(&p, 2, "y", NOW_S, "withdrawn");
	place_clear(&p);
}

/* An invitation must admit keys for its own role and for no other role. It must not change the
 * role of an admitted key. */
TEST(an_invitation_grants_its_role_only)
{
	struct place p;
	place_make(&p);
	invite(&p, KEYS_CONSOLE, 9, 60);
	refuses(&p, 1, "x", NOW_S, "is for the role console");
	place_clear(&p);
	place_make(&p);
	invite(&p, KEYS_AGENT, 9, 60);
	assert_int_equal(
		keys_list_admit(p.keys, &(struct keys_public){ { 1 } }, KEYS_CONSOLE, "desk", NULL),
		0);
	refuses(&p, 1, "x", NOW_S, "another role");
	/* The invitation's own key must not be admitted. */
	refuses(&p, 7, "x", NOW_S, "another role");
	assert_int_equal(keys_list_find(p.keys, &(struct keys_public){ { 1 } })->role,
			 KEYS_CONSOLE);
	place_clear(&p);
}

/* Admitting a key by an invitation writes the list, but must not lift the bars of other keys. */
TEST(an_admission_lifts_no_bar)
{
	struct place p;
	struct keys_list *operator;
	const struct keys_public noisy = { { 1 } };
	place_make(&p);
	invite(&p, KEYS_AGENT, 9, 60);
	assert_int_equal(ask(&p, 1, "noisy", true, NOW_S, NULL, NULL), 0);
	keys_list_bar(p.keys, &noisy);
	assert_int_equal(ask(&p, 2, "x", true, NOW_S, NULL, NULL), 0);
	assert_int_equal(keys_list_refresh(p.keys, NULL), 0);
	assert_true(keys_list_barred(p.keys, &noisy));
	refuses(&p, 1, "noisy", NOW_S, "barred");
	assert_int_equal(keys_list_open(&operator, p.list, NULL), 0);
	assert_int_equal(keys_list_admit(operator, & noisy, KEYS_AGENT, "noisy", NULL), 0);
	assert_int_equal(keys_list_refresh(p.keys, NULL), 1);
	assert_false(keys_list_barred(p.keys, &noisy));
	keys_list_free(operator);
	place_clear(&p);
}

TEST(broken_terms_are_refused)
{
	static const char *const wrong[] = { "",
					     " agent",
					     " agent 0/1",
					     " agent 0/0 2026-01-01T00:00:00Z",
					     " agent 2/1 2026-01-01T00:00:00Z",
					     " agent 0/1 tomorrow",
					     " agent 0/1 2026-01-01T00:00:00Z gone",
					     " agent 0/1 2026-01-01T00:00:00Z revoked twice",
					     " invitation 0/1 2026-01-01T00:00:00Z",
					     " controller 0/1 2026-01-01T00:00:00Z",
					     " agent -1/1 2026-01-01T00:00:00Z",
					     " agent 0/9999999 2026-01-01T00:00:00Z" };
	struct keys_entry e = { .role = KEYS_INVITATION };
	char text[INVITATION_TERMS_SIZE];
	struct error err;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (invitations_parse_terms(wrong[i], &e.terms, &err) != -EINVAL)
			fail_msg("accepted:%s", wrong[i]);
	}
	static const char right[] = " watcher 3/8 2026-11-29T04:00:00Z revoked";
	assert_int_equal(invitations_parse_terms(right, &e.terms, &err), 0);
	invitations_print_terms(&e, text);
	assert_string_equal(text, right);
}

/* ---- tokens ---- */

static void make_token(struct keys_identity **id, char text[TOKEN_SIZE])
{
	struct token t = { .role = KEYS_CONSOLE, .controller = { { 1, 2, 3 } }, .n_addresses = 2 };
	strcpy(t.addresses[0], "tcp://hub.example:7700");
	strcpy(t.addresses[1], "tcp://[2001:db8::7]:7700");
	assert_int_equal(keys_generate(id, NULL), 0);
	assert_int_equal(token_print(&t, *id, text, NULL), 0);
}

TEST(a_token_comes_back)
{
	struct keys_identity *id, *back;
	struct token t;
	char text[TOKEN_SIZE];
	make_token(&id, text);
	assert_true(token_is(text));
	assert_int_equal(token_parse(text, &t, &back, NULL), 0);
	assert_int_equal(t.role, KEYS_CONSOLE);
	assert_int_equal(t.controller.bytes[2], 3);
	assert_int_equal(t.n_addresses, 2);
	assert_string_equal(t.addresses[1], "tcp://[2001:db8::7]:7700");
	assert_true(keys_equal(keys_public_of(id), keys_public_of(back)));
	keys_free(id);
	keys_free(back);
}

/* A token with any changed character must be refused. The error must not show the token, because it
 * may be a valid token of another controller. */
TEST(a_changed_token_is_refused)
{
	struct keys_identity *id, *back;
	struct token t;
	struct error err = { "" };
	struct rng rng;
	char text[TOKEN_SIZE], changed[TOKEN_SIZE];
	rng_init(&rng, 1);
	make_token(&id, text);
	const size_t n = strlen(text);
	for (int i = 0; i < 2000; i++) {
		strcpy(changed, text);
		const size_t at = rng_below(&rng, (uint32_t)n);
		if (i % 2 == 0)
			changed[at] = 0;
		else
			changed[at] ^= (char)(1 << rng_below(&rng, 7));
		if (strcmp(changed, text) == 0)
			continue;
		assert_int_equal(token_parse(changed, &t, &back, &err), -EINVAL);
		assert_null(strstr(err.text, "skippipe1_"));
	}
	keys_free(id);
}

TEST(a_token_is_taken_and_wiped)
{
	char folder[] = "/tmp/skippipe-token-test.XXXXXX", path[80], value[96], out[TOKEN_SIZE];
	char text[] = "skippipe1_abc", framed[] = "\xef\xbb\xbf skippipe1_abc\r\n";
	struct error err = { "" };
	assert_int_equal(token_take(text, out, NULL), 0);
	assert_string_equal(out, "skippipe1_abc");
	for (size_t i = 0; i < sizeof(text); i++)
		assert_int_equal(text[i], 0);
	assert_int_equal(token_take(framed, out, NULL), 0);
	assert_string_equal(out, "skippipe1_abc");
	assert_string_equal(framed, "\xef\xbb\xbf ");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/t", folder);
	assert_int_equal(file_write(path, "  word \nmore\n", 13, FILE_PRIVATE, NULL), 0);
	snprintf(value, sizeof(value), " @%s\n", path);
	assert_int_equal(token_take(value, out, NULL), 0);
	assert_string_equal(out, "word");
	assert_int_equal(file_write(path, "\xef\xbb\xbfword\r\n", 9, FILE_PRIVATE, NULL), 0);
	assert_int_equal(token_take(value, out, NULL), 0);
	assert_string_equal(out, "word");
	unlink(path);
	assert_int_equal(token_take(value, out, &err), -ENOENT);
	assert_int_equal(rmdir(folder), 0);
}
