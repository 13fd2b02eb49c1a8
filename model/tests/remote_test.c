/* remote_test.c - tests a store whose commands are real shell commands, which succeed, fail, ignore
 * the signal that ends them, or take too long. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tests/test.h"
#include "model/files/remote.h"

static char folder[] = "/tmp/skippipe-remote-XXXXXX";

/* Makes a file to store, and a line for sh with the folder in place of each @. */
static char *begin(char *line, size_t room, const char *script)
{
	static char path[64];
	size_t n = 0;
	FILE *file;

	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	assert_non_null(mkdtemp(folder));
	for (; *script; script++)
		n += (size_t)snprintf(line + n, room - n, *script == '@' ? "%s" : "%.1s",
				      *script == '@' ? folder : script);
	snprintf(path, sizeof(path), "%s/file", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("weights", file);
	assert_int_equal(fclose(file), 0);
	return path;
}

static bool is_there(const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return access(path, F_OK) == 0;
}

static void end(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

TEST(a_file_is_stored_and_comes_back)
{
	struct remote r = { .limit_us = 600000000 };
	char line[256];
	const char *path = begin(line, sizeof(line),
				 "s() { case $1 in put) cat >@/$2;; get) cat @/$2;; esac; }; s");
	struct error err = { "" };

	r.to = line;
	assert_int_equal(remote_put(&r, "there", path, &err), 0);
	assert_true(is_there("there"));
	end();
}

struct putting {
	struct remote remote;
	const char *path;
	int rc;
};

static void *put(void *argument)
{
	struct putting *p = argument;
	struct error err;

	p->rc = remote_put(&p->remote, "name", p->path, &err);
	return NULL;
}

/* The command would run for a minute. When remote_put returns, none of its processes is left. */
TEST(a_command_that_ignores_the_signal_is_killed)
{
	struct putting p = { .rc = 0 };
	char line[256];
	pthread_t thread;

	p.path = begin(line, sizeof(line),
		       "s() { trap '' TERM; : >@/begun; sleep 60; : >@/ended; exit 1; }; s");
	p.remote.to = line;
	assert_int_equal(pthread_create(&thread, NULL, put, &p), 0);
	while (!is_there("begun"))
		usleep(10000);
	remote_stop(&p.remote);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(p.rc, -ECANCELED);
	assert_false(is_there("ended"));
	end();
}

TEST(a_command_that_takes_too_long_is_killed)
{
	struct remote r = { .limit_us = 200000 };
	char line[256];
	const char *path = begin(line, sizeof(line),
				 "s() { trap '' TERM; sleep 60; : >@/ended; exit 1; }; s");
	struct error err = { "" };

	r.to = line;
	assert_int_equal(remote_put(&r, "name", path, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "put name has not ended"));
	assert_false(is_there("ended"));
	end();
}
