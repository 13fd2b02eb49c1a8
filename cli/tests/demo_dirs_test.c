/* Tests the choice of a run folder. If the default folder cannot be written, the run is recorded in
 * a folder in /tmp that only this user can write. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tests/test.h"
#include "cli/demo_dirs.h"

TEST(a_prepared_folder_is_refused)
{
	char folder[] = "/tmp/skippipe-place-XXXXXX", path[64], other[64];
	struct error err = { "" };
	struct stat st;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/runs", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	assert_int_equal(demo_dirs_own(path, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(demo_dirs_own(path, &err), 0);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(demo_dirs_own(path, &err), -EPERM);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(symlink(path, other), 0);
	assert_int_equal(demo_dirs_own(other, &err), -EPERM);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 1, 1), 0);
		assert_int_equal(demo_dirs_own(path, &err), -EPERM);
	}
	unlink(other);
	rmdir(path);
	assert_int_equal(rmdir(folder), 0);
}
