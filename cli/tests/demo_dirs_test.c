/* A run that cannot be recorded in the default folder goes to a folder that only this user can
 * write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/demo_dirs.h"

static void a_prepared_folder_is_refused(void **state)
{
	char folder[] = "/tmp/skippipe-place-XXXXXX", path[64], other[64];
	struct error err = { "" };
	struct stat st;

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_prepared_folder_is_refused) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
