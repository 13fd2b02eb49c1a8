/* invitations.h - invitations: entries of the admitted list whose owners may admit a key.
 *
 * An invitation is a key pair of its own. The operator gives away a token with the secret half
 * (wire/invite/token.h). The list holds the terms and the public half, from which nobody can
 * compute the secret. The owner of the token makes a key pair for the machine and opens an
 * encrypted session with the invitation's key. The session proves the secret without sending it.
 * In this session the machine asks for the admission of its own key. A stranger without the
 * secret is refused like any unknown key.
 *
 *     9c1d...(64 hex digits) invitation 3f2a9c01 agent 8/10 2026-11-29T04:00:00Z [revoked]
 *
 * The words after the invitation's name are its terms: the role that it grants, its uses so far and
 * their limit, and when it ends. An invitation that ended stays in the list for INVITATION_KEPT_S,
 * so that the owner of its token learns why it is refused.
 *
 * Times are seconds since 1970. The functions read no clock: the caller gives the present time as
 * now_s.
 */
#ifndef WIRE_INVITATIONS_H
#define WIRE_INVITATIONS_H

#include "wire/keys.h"

#define INVITATION_TERMS_SIZE 96
#define INVITATION_KEPT_S (30 * 86400)
#define INVITATION_USES_MOST KEYS_LIST_MOST

/* Parses the terms from the text after an entry's name. -EINVAL: the text has no valid terms. */
int invitations_parse_terms(const char *text, struct keys_terms *out, struct error *err);
/* Writes a space and the terms of an entry, in the format of the list's file. Writes "" if the
 * entry is no invitation. */
void invitations_print_terms(const struct keys_entry *entry, char out[INVITATION_TERMS_SIZE]);

/* Adds an invitation to the list, and removes invitations that ended more than INVITATION_KEPT_S
 * ago. The errors are those of keys_list_admit. */
int invitations_add(struct keys_list *list, const struct keys_public *invitation, const char *name,
		    const struct keys_terms *terms, int64_t now_s, struct error *err);
/* Revokes the invitation of that name. Keys that it has admitted stay admitted. -ENOENT: there is
 * no such invitation. */
int invitations_revoke(struct keys_list *list, const char *name, struct error *err);
/* Returns the reason why the invitation admits no more keys: "revoked", "expired" or "used up".
 * NULL: the invitation can admit further keys.
 */
const char *invitations_end(const struct keys_terms *terms, int64_t now_s);

struct invitation_request {
	/* Key of the invitation. The session has proven that the requester knows its secret. */
	struct keys_public invitation;
	struct keys_public key;        /* the key to be admitted */
	enum keys_role role;           /* the role that the process wants */
	/* Wanted name for the key. Unless is_exact is set, the name may be changed: invalid
	 * characters are replaced, and a number is appended if another key has the name. */
	char name[KEYS_NAME_SIZE];
	bool is_exact;
};
struct invitation_answer {
	char name[KEYS_NAME_SIZE];       /* the name under which the key is admitted */
	char invitation[KEYS_NAME_SIZE]; /* the name of the invitation */
	bool is_new;                     /* the key was not admitted before */
	struct keys_terms terms;         /* the terms of the invitation after this use */
};

/* Admits a key by an invitation and counts the use, in one durable change of the list. If the key
 * is already admitted with the role, no use is counted, because the key's owner may ask again
 * after a lost answer. -EPERM: refused, for the reason in err; other errors: the list cannot be
 * read or written. */
int invitations_admit(struct keys_list *list, const struct invitation_request *request,
		      int64_t now_s, struct invitation_answer *out, struct error *err);

#endif
