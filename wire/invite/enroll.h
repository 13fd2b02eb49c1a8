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
	const struct token *token;              /* borrowed, as the other pointers are */
	const struct keys_identity *invitation; /* the token's key */
	const struct keys_identity *own;        /* the key to be admitted */
	bool is_new;      /* the key was just made, so it is not admitted yet */
	const char *name; /* name that this process wants; NULL: the name of the machine */
	int64_t wait_us;  /* time to reach the controller and to get its answer */
	int signals;      /* a descriptor that becomes readable when the process shall end; -1 */
	const struct log *log; /* reasons why the controller is not reached */
};

struct enrolled {
	char address[LINK_ADDRESS_SIZE]; /* the token's address at which the controller answered */
	char name[KEYS_NAME_SIZE];       /* the name of the key; "": it was admitted before */
};

/* Waits until the controller has admitted the key. -EPERM: it refused, for the reason in err, and
 * would refuse again; -EINTR: signals became readable; -ETIMEDOUT; -EPROTO: another version. */
int enroll(const struct enroll_options *options, struct enrolled *out, struct error *err);

#endif
