/* enroll.h - asks a controller to admit this machine's key, with the token of an invitation.
 *
 * If the key was admitted at an earlier start, the invitation is not used. Otherwise this machine
 * opens a session with the invitation's key. In the handshake the controller proves its own key.
 * Only then does this machine send the request, encrypted. The invitation's secret itself never
 * leaves this machine.
 */
#ifndef WIRE_ENROLL_H
#define WIRE_ENROLL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "wire/invite/token.h"

struct enroll_options {
	/* The invitation's token. This pointer and the other pointers of the struct are
	 * borrowed. */
	const struct token *token;
	const struct keys_identity *invitation; /* key pair of the invitation, from the token */
	/* Key pair of this machine. The controller is asked to admit its public half. */
	const struct keys_identity *own;
	bool is_new;      /* the key was just made, so it is not admitted yet */
	const char *name; /* name wanted for the key; NULL: the name of the machine */
	int64_t wait_us;  /* time limit for reaching the controller and getting its answer */
	/* Descriptor that becomes readable when a signal asks the process to end; -1: none. */
	int signals;
	const struct log *log; /* receives the reasons why the controller cannot be reached */
};

struct enrolled {
	/* The address from the token at which the controller answered. */
	char address[LINK_ADDRESS_SIZE];
	/* Name under which the controller admitted the key; "": the key was admitted earlier. */
	char name[KEYS_NAME_SIZE];
};

/* Waits until the controller has admitted the key. -EPERM: the controller refused for the reason
 * in err, and would refuse the key again; -EINTR: `signals` became readable; -ETIMEDOUT: no
 * answer within wait_us; -EPROTO: the controller has another version. */
int enroll(const struct enroll_options *options, struct enrolled *out, struct error *err);

#endif
