/* Finds the programs and files of this installation from the place of the running program, so that
 * an unpacked bundle works in any folder and needs no variable of the environment. */
#include "base/process/installed.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int installed_folder(char *out, size_t room, struct error *err)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return error_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	if ((size_t)snprintf(out, room, "%s", self) >= room)
		return error_set(err, -ENAMETOOLONG, "%s: the name is too long", self);
	return 0;
}

void installed_path(const char *name, const char *source, char *out, size_t room)
{
	char folder[PATH_MAX];

	if (installed_folder(folder, sizeof(folder), NULL) == 0) {
		snprintf(out, room, "%s/../share/skippipe/%s", folder, name);
		if (access(out, R_OK) == 0)
			return;
		/* build/bin has the programs of the build tree, two folders below its root */
		snprintf(out, room, "%s/../../%s", folder, source ? source : "");
		if (source && access(out, R_OK) == 0)
			return;
	}
	snprintf(out, room, "%s/share/skippipe/%s", SKIPPIPE_PREFIX, name);
}
