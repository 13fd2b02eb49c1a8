/* Tests the record from which `fleet down` learns the hosts and the invitations of the last `fleet
 * up`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tests/test.h"
#include "cli/fleet/record.h"

static void use_folder(char folder[static 32])
{
	strcpy(folder, "/tmp/skippipe-record-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(setenv("XDG_STATE_HOME", folder, 1), 0);
}

static void remove_folder(const char *folder)
{
	char path[64];

	record_remove("0123");
	snprintf(path, sizeof(path), "%s/skippipe", folder);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static struct record write_and_read(const struct record *r)
{
	struct record out = { .run_dir = "" };
	struct error err = { "" };

	if (record_write(r, "0123", &err) != 0 || record_read(&out, "0123", &err) != 0)
		fail_msg("%s", err.text);
	return out;
}

TEST(every_invitation_is_kept_until_down)
{
	struct host m1 = { .name = "m.1", .target = "me@m1", .port = "40" };
	struct record r = { .run_dir = "/a run", .hosts = { &m1, 1 } }, got;
	char folder[32];

	use_folder(folder);
	got = write_and_read(&r);
	assert_string_equal(got.run_dir, "/a run");
	assert_int_equal(got.invitations.n, 0);
	assert_false(got.is_forgotten);
	assert_int_equal(got.hosts.n, 1);
	record_free(&got);
	args_add(&r.invitations, "0a1b2c3d");
	args_add(&r.invitations, "ffffffff");
	r.is_forgotten = true;
	got = write_and_read(&r);
	assert_int_equal(got.invitations.n, 2);
	assert_string_equal(got.invitations.list[0], "0a1b2c3d");
	assert_string_equal(got.invitations.list[1], "ffffffff");
	assert_true(got.is_forgotten);
	assert_string_equal(got.hosts.list[0].target, "me@m1");
	record_free(&got);
	args_free(&r.invitations);
	remove_folder(folder);
}

/* FILE gives the name of a recorded host to another machine. If this went unnoticed, `down` would
 * end only the agent on the new machine, and the old machine would continue to train. */
TEST(a_name_that_another_machine_takes_is_noticed)
{
	struct host left = { .name = "left", .target = "gpu@a", .port = "40" };
	struct host now = { .name = "left", .target = "gpu@b", .port = "40" };
	const struct record r = { .hosts = { &left, 1 } };

	assert_ptr_equal(record_conflict(&r, &now), &left);
	strcpy(now.target, "gpu@a");
	assert_null(record_conflict(&r, &now));
	strcpy(now.port, "41");
	assert_ptr_equal(record_conflict(&r, &now), &left);
	strcpy(now.name, "right");
	assert_null(record_conflict(&r, &now));
}
