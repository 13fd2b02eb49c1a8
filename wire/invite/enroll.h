/* enroll.h - asks a controller to admit this machine's key, with the token of an invitation.
 *
 * The key may be admitted already, from an earlier start; then the invitation is not used.
 * Otherwise this machine opens a session with the invitation's key. The controller proves its own
 * key in the handshake, and only the sealed session carries the request. The secret itself never
 * leaves this machine.
 */
#ifndef WIRE_ENROLL_H
#define WIRE_ENROLL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "wire/invite/token.h"

struct enroll_options {
	/* The token, borrowed; the other pointers are borrowed too. */
	const struct token *token;
	const struct keys_identity *invitation; /* the token's key */
	/* The key pair of this machine, which is to be admitted. */
	const struct keys_identity *own;
	bool is_new;      /* the key was just made, so it is not admitted yet */
	const char *name; /* name wanted for the key; NULL: the name of the machine */
	int64_t wait_us;  /* time to reach the controller and to get its answer */
	/* Descriptor that becomes readable when the process shall end; -1: none. */
	int signals;
	const struct log *log; /* receives the reasons why the controller is not reached */
};

struct enrolled {
	char address[LINK_ADDRESS_SIZE]; /* the token's address at which the controller answered */
	/* The name under which the key is admitted; "": the key was admitted before. */
	char name[KEYS_NAME_SIZE];
};

/* Waits until the controller has admitted the key. -EPERM: the controller refused for the reason in
 * err, and would refuse again; -EINTR: `signals` became readable; -ETIMEDOUT: no answer within
 * wait_us; -EPROTO: the controller has another version. */
int enroll(const struct enroll_options *options, struct enrolled *out, struct error *err);

#endif
