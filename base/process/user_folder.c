/* Finds a user's folder. HOME is missing in a service. In a container whose user has no account,
 * HOME is missing or "/". In these cases a program must report what is missing. It must not use the
 * folder in which it was started, because other users may write there. */
#include "base/process/user_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* Returns the variable's absolute path, or NULL. */
static const char *absolute(const char *variable)
{
	const char *path = getenv(variable);

	return path && path[0] == '/' ? path : NULL;
}

int user_folder(char *to, size_t room, const char *variable, const char *in_home,
		struct error *err)
{
	const char *given = absolute(variable), *path = given ? given : absolute("HOME");
	size_t n = path ? strlen(path) : 0;

	if (!path)
		return error_set(err, -ENOENT, "neither %s nor HOME is an absolute path", variable);
	while (n > 0 && path[n - 1] == '/')
		n--;
	if (snprintf(to, room, "%.*s%s%s/skippipe", (int)n, path, given ? "" : "/",
		     given ? "" : in_home) >= (int)room)
		return error_set(err, -ENAMETOOLONG, "%s: the name is too long", path);
	return 0;
}

int user_state_file(char *to, size_t room, const char *name, struct error *err)
{
	char folder[4000];
	int rc = user_folder(folder, sizeof(folder), "XDG_STATE_HOME", ".local/state", err);

	if (rc == 0)
		rc = file_make_private_folder(folder, err);
	if (rc == 0 && snprintf(to, room, "%s/%s", folder, name) >= (int)room)
		rc = error_set(err, -ENAMETOOLONG, "%s/%s: the name is too long", folder, name);
	return rc;
}
