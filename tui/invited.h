/* invited.h - joins a run by the token of an invitation, before the console opens. */
#ifndef TUI_INVITED_H
#define TUI_INVITED_H

#include "tui/options.h"
#include "wire/invite/enroll.h"

/* Memory for texts to which the options point after invited_join. */
struct invited {
	char address[LINK_ADDRESS_SIZE], controller_key[KEYS_TEXT_SIZE], key[4096];
};

/* Waits until the controller has admitted this console's key, and sets the options for the
 * connection. signals: a descriptor; the wait ends when it becomes readable. -EINVAL: the token or
 * an option is wrong; other errors are those of enroll. */
int invited_join(struct invited *to, struct options *o, int signals, struct error *err);

#endif
