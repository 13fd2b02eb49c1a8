/* token.h - the token that an operator gives to the owner of an invitation.
 *
 * A token is one word: a prefix and base64 with the alphabet for URLs. The base64 encodes a
 * version, the role, the controller's public key, the invitation's secret (invitations.h), the
 * controller's addresses, and a check sum against mistakes in copying. Anybody with the token can
 * use the invitation. A token is therefore handled like a secret key: it is never logged, and this
 * module wipes its copies.
 */
#ifndef WIRE_TOKEN_H
#define WIRE_TOKEN_H

#include "wire/keys.h"
#include "wire/sessions/link.h"

#define TOKEN_PREFIX "skippipe1_"
#define TOKEN_ADDRESSES 4
#define TOKEN_SIZE 1024 /* size of a token as text, with the NUL */

struct token {
	enum keys_role role; /* role that the invitation grants */
	struct keys_public controller;
	/* The n_addresses addresses of the controller. */
	char addresses[TOKEN_ADDRESSES][LINK_ADDRESS_SIZE];
	unsigned n_addresses;
};

/* Returns true if the text begins like a token, even if the rest is invalid. */
bool token_is(const char *text);
/* Writes the token. The caller wipes the text (token_wipe). -EINVAL: there is no address, or an
 * address is too long. */
int token_print(const struct token *token, const struct keys_identity *invitation,
		char out[TOKEN_SIZE], struct error *err);
/* Reads a token. *invitation is the invitation's key pair, which the caller frees with keys_free.
 * The error message never contains the token. -EINVAL: the text is no token; the other errors are
 * those of keys_generate. */
int token_parse(const char *text, struct token *out, struct keys_identity **invitation,
		struct error *err);
/* Returns a pointer to the start of an option's value, behind a byte order mark and spaces. */
char *token_begin(char *value);
/* Reads the value of an option that takes a token. The value is the token itself, @FILE for the
 * first word of a file, or - for the first word of standard input. A token in the value is
 * overwritten in place, so that no list of processes shows it. The caller wipes `out`. */
int token_take(char *value, char out[TOKEN_SIZE], struct error *err);
void token_wipe(char *text);

#endif
