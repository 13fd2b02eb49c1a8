/* Joins a run with a token. Then sets the options (address, controller's key, own key) as if the
 * operator had given them; the rest of the console does not know of invitations. */
#include "tui/invited.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tui/console.h"

enum { WAIT_US = 60000000 };

static int read_token(char *value, struct token *token, struct keys_identity **invitation,
		      struct error *err)
{
	char text[TOKEN_SIZE];
	int rc;

	value = token_begin(value);
	if (value[0] != '@' && !token_is(value))
		return error_set(err, -EINVAL, "\"%.40s\" is no token of skippipe invite", value);
	rc = token_take(value, text, err);
	if (rc == 0)
		rc = token_parse(text, token, invitation, err);
	token_wipe(text);
	if (rc == 0 && token->role == KEYS_AGENT)
		rc = error_set(err, -EINVAL,
			       "this token is for an agent: skippipe agent --join TOKEN");
	return rc;
}

int invited_join(struct invited *to, struct options *o, int signals, struct error *err)
{
	const struct log log = { .to = stderr, .least = LOG_WARN, .who = "console" };
	struct keys_identity *invitation = NULL, *own = NULL;
	struct token token;
	struct enrolled joined;
	bool is_new;
	int rc = read_token(o->token, &token, &invitation, err);

	if (rc == 0 && !o->key)
		rc = console_default_key(to->key, err);
	else if (rc == 0 &&
		 snprintf(to->key, sizeof(to->key), "%s", o->key) >= (int)sizeof(to->key))
		rc = error_set(err, -EINVAL, "--key: too long");
	is_new = rc == 0 && access(to->key, F_OK) != 0;
	if (rc == 0)
		rc = keys_load_or_make(&own, to->key, err);
	if (rc == 0)
		rc = enroll(&(struct enroll_options){ .token = &token,
						      .invitation = invitation,
						      .own = own,
						      .is_new = is_new,
						      .name = o->name,
						      .wait_us = WAIT_US,
						      .signals = signals,
						      .log = &log },
			    &joined, err);
	keys_free(invitation);
	keys_free(own);
	if (rc != 0)
		return rc;
	memcpy(to->address, joined.address, sizeof(to->address));
	keys_text(&token.controller, to->controller_key);
	o->connect = to->address;
	o->controller_key = to->controller_key;
	o->key = to->key;
	return 0;
}
