/* invited.h - joins a run by the token of an invitation, before the console opens. */
#ifndef TUI_INVITED_H
#define TUI_INVITED_H

#include "tui/options.h"
#include "wire/invite/enroll.h"

/* Texts that the options borrow after invited_join. */
struct invited {
	char address[LINK_ADDRESS_SIZE], controller_key[KEYS_TEXT_SIZE], key[4096];
};

/* Waits until the controller has admitted this console's key, and sets the options with which the
 * console connects. signals: a descriptor that ends the wait. -EINVAL: the token or an option is
 * wrong; other errors as enroll. */
int invited_join(struct invited *to, struct options *o, int signals, struct error *err);

#endif
