/* invited_test.c - peers with valid and invalid invitations connect to a whole controller. With an
 * invitation, a peer is allowed to request the admission of a key. It is allowed nothing else. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/tests/test.h"
#include "controller/tests/visitor.h"
#include "wire/invite/invitations.h"

static int door_open(void **state)
{
	const char *options[] = { "--agents", "6", "--stages", "2,2,2", NULL };

	*state = door_new(options);
	return 0;
}

static int door_close(void **state)
{
	return door_free(*state);
}

#define FIXTURE_TEST(name) TEST_WITH(name, door_open, door_close)

/* The controller's answer to a request for admission. */
struct answer {
	bool admitted, refused, final;
	char text[256];
};

static void hear_answer(void *context, const struct msg *m)
{
	struct answer *a = context;

	if (m->type == MSG_ADMITTED) {
		a->admitted = true;
		snprintf(a->text, sizeof(a->text), "%s", m->u.admitted.name);
	} else if (m->type == MSG_REFUSED) {
		a->refused = true;
		a->final = m->u.refused.final;
		snprintf(a->text, sizeof(a->text), "%s", m->u.refused.reason);
	}
}

/* Makes a visitor that connects with the key of an invitation. */
static void invited_new(struct visitor *v, struct door *d, uint32_t uses, struct answer *a)
{
	struct keys_terms terms = { .role = KEYS_AGENT,
				    .uses = uses,
				    .ends_s = (int64_t)time(NULL) + 600 };

	visitor_new(v, d, 0, NULL);
	assert_int_equal(invitations_add(d->list, keys_public_of(v->id), "inv", &terms, 0, NULL),
			 0);
	v->context = a;
	v->hear = hear_answer;
	visitor_come_in(v, NULL);
}

static void ask(struct visitor *v, const struct keys_public *key, struct answer *a)
{
	struct msg m = { .type = MSG_JOIN,
			 .u.join = { .protocol = MSG_VERSION,
				     .role = KEYS_AGENT,
				     .name = "node",
				     .is_exact = 0 } };

	*a = (struct answer){ .refused = false };
	memcpy(m.u.join.key, key->bytes, sizeof(m.u.join.key));
	visitor_send(v, &m, POST_RELIABLE);
	UNTIL(v, NULL, a->admitted || a->refused);
}

FIXTURE_TEST(an_invitation_admits_a_key_until_it_is_used_up)
{
	struct door *d = *state;
	struct visitor v, operator, agent, late;
	struct answer a;

	visitor_new(&operator, d, KEYS_CONSOLE, "operator");
	visitor_attach(&operator);
	visitor_new(&agent, d, 0, NULL);
	visitor_new(&late, d, 0, NULL);
	invited_new(&v, d, 1, &a);
	ask(&v, keys_public_of(agent.id), &a);
	assert_true(a.admitted);
	assert_string_equal(a.text, "node");
	visitor_come_in(&agent, &operator);
	UNTIL(&operator, NULL,
	      strstr(operator.journal, "node was admitted as agent by invitation"));
	/* The machine asks again, as if the answer had been lost */
	ask(&v, keys_public_of(agent.id), &a);
	assert_true(a.admitted);
	ask(&v, keys_public_of(late.id), &a);
	assert_true(a.refused && a.final);
	assert_non_null(strstr(a.text, "used up"));
	UNTIL(&operator, NULL, strstr(operator.journal, "refused: the invitation is used up"));
	/* A restarted controller knows that the invitation has been used up. */
	door_restart(d, (const char *const[]){ NULL });
	UNTIL(&v, NULL, v.restarts > 0);
	ask(&v, keys_public_of(late.id), &a);
	assert_true(a.refused);
	visitor_free(&v);
	visitor_free(&agent);
	visitor_free(&late);
	visitor_free(&operator);
}

/* The session of an invitation is not the session of a member. All messages except the request for
 * admission are violations. */
FIXTURE_TEST(an_invitation_is_no_member)
{
	static const enum msg_type types[] = { MSG_HELLO, MSG_ATTACH, MSG_COMMAND, MSG_HEARTBEAT,
					       MSG_FILE_ASK };
	struct door *d = *state;
	struct visitor v, operator;
	struct answer a = { .refused = false };

	visitor_new(&operator, d, KEYS_CONSOLE, "operator");
	visitor_attach(&operator);
	invited_new(&v, d, 9, &a);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		visitor_send(&v, &(struct msg){ .type = types[i] }, POST_RELIABLE);
	/* A request with an invitation must not change the role of an admitted key. */
	ask(&v, keys_public_of(operator.id), &a);
	assert_true(a.refused);
	assert_non_null(strstr(a.text, "another role"));
	assert_false(v.synced);
	ask(&v, keys_public_of(v.id), &a);
	assert_true(a.refused);
	assert_int_equal(visitor_command(&operator, COMMAND_ARM, 60), 0);
	/* After more violations, the controller bars a peer that has an invitation. */
	for (int i = 0; i < 2000 && !v.refused; i++) {
		visitor_send(&v, &(struct msg){ .type = MSG_HELLO }, POST_RELIABLE);
		visitor_turn(&v);
		visitor_turn(&operator);
	}
	UNTIL(&v, &operator, v.refused);
	assert_int_equal(v.reason, LINK_FLOOD);
	UNTIL(&operator, NULL, strstr(operator.journal, "invitation inv exceeded its quota"));
	assert_true(door_alive(d));
	visitor_free(&v);
	visitor_free(&operator);
}

/* A peer with a wrong secret has a key that the controller does not know. The controller treats
 * this peer as a stranger, and strangers get no session. Meanwhile an honest machine can join. */
FIXTURE_TEST(false_invitations_are_strangers)
{
	enum { CROWD = 40, ROUNDS = 5 };
	struct door *d = *state;
	struct visitor crowd[CROWD], honest, agent;
	struct answer a;
	unsigned refused = 0;

	visitor_new(&agent, d, 0, NULL);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < CROWD; i++)
			visitor_new(&crowd[i], d, 0, NULL);
		if (round == 0) {
			invited_new(&honest, d, 1, &a);
			ask(&honest, keys_public_of(agent.id), &a);
			assert_true(a.admitted);
		}
		for (int i = 0; i < CROWD; i++) {
			UNTIL(&crowd[i], NULL, crowd[i].refused);
			assert_int_equal(crowd[i].reason, LINK_NOT_ADMITTED);
			assert_false(crowd[i].up);
			refused++;
			visitor_free(&crowd[i]);
		}
	}
	assert_int_equal(refused, CROWD * ROUNDS);
	assert_int_equal(keys_list_refresh(d->list, NULL), 1);
	/* The list has the keys of the invitation and of the agent */
	assert_int_equal(keys_list_count(d->list), 2);
	visitor_free(&honest);
	visitor_free(&agent);
}
