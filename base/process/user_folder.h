/* user_folder.h - the folders of the user who starts a program (XDG Base Directory Specification).
 */
#ifndef BASE_PROCESS_USER_FOLDER_H
#define BASE_PROCESS_USER_FOLDER_H

#include <stddef.h>

#include "base/error.h"

/* Gives the path of skippipe's folder. Its parent is the folder that `variable` (such as
 * XDG_CONFIG_HOME) names or, if `variable` is not set, the folder `in_home` (such as ".config") in
 * HOME. As the specification demands, a variable with a relative path counts as not set. Creates
 * nothing. -ENOENT: neither variable is set; -ENAMETOOLONG: the path does not fit into `to`. */
int user_folder(char *to, size_t room, const char *variable, const char *in_home,
		struct error *err);

/* Gives the path of a file in skippipe's folder for state (XDG_STATE_HOME, ~/.local/state), and
 * creates the folder with mode 0700. */
int user_state_file(char *to, size_t room, const char *name, struct error *err);

#endif
