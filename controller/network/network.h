/* network.h - opens the controller's network: its key, the admitted keys and the listening socket.
 */
#ifndef CONTROLLER_NETWORK_H
#define CONTROLLER_NETWORK_H

#include "base/error.h"
#include "base/log.h"
#include "controller/options.h"
#include "wire/keys.h"
#include "wire/post.h"
#include "wire/sessions/link.h"

/* Limit of what one peer's messages may cost in a second, in frames (post.h). A busy agent sends
 * some hundred small frames in a second. */
#define NETWORK_CHARGE_PER_S 2000

/* Loads the keys, and listens with the settings in o. roles: a KEYS_ROLE_BIT mask of who may
 * connect. bound gets the address with the port that was chosen. After a failure, the caller frees
 * what was opened before the failure: keys_free, keys_list_free, post_close. */
int network_open(const struct options *o, uint32_t roles, const struct log *log,
		 struct keys_identity **identity, struct keys_list **admitted, struct post **post,
		 char bound[LINK_ADDRESS_SIZE], struct error *err);

#endif
