/* network.h - the controller's end of every connection. */
#ifndef CONTROLLER_NETWORK_H
#define CONTROLLER_NETWORK_H

#include "base/error.h"
#include "base/log.h"
#include "controller/options.h"
#include "wire/keys.h"
#include "wire/post.h"

/* What one peer may cost in a second (post.h): a busy agent sends some hundred small frames. */
#define NETWORK_CHARGE_PER_S 2000

/* Keys, who may connect (roles: a KEYS_ROLE_BIT mask) and the listening socket, as o says. What was
 * made before an error is the caller's to free: keys_free, keys_list_free, post_close. */
int network_open(const struct options *o, uint32_t roles, const struct log *log,
		 struct keys_identity **identity, struct keys_list **admitted, struct post **post,
		 struct error *err);

#endif
