/* Tests remote_run with a program in place of ssh. The script runs whatever the hosts' login shells
 * write. Few connections log in at a time. The user's settings for interactive sessions have no
 * effect. A failure is reported with its reason. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tests/test.h"
#include "cli/fleet/remote.h"

enum { HOSTS = 24, LOGINS = 8, LIMIT_US = 60000000 };

static char folder[64];

/* Puts a program named ssh first in PATH. When this program starts, it adds to the file `counts`
 * how many of its processes log in at that time. Then it executes the shell text `login`, in which
 * $line is the line for the host's login shell.
 *
 * remote_run counts a login for 10 s, but on a busy machine a process may begin up to 5 s late. A
 * process is therefore counted for 5 s only, so that `counts` has no login that remote_run has
 * already forgotten. */
static void replace_ssh(const char *login)
{
	char path[96], text[1024];

	snprintf(folder, sizeof(folder), "/tmp/skippipe-remote-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/ssh", folder);
	snprintf(text, sizeof(text),
		 "#!/bin/sh\n"
		 "cd %s && touch login.$$\n"
		 "find . -name 'login*' -newermt '5 seconds ago' | wc -l >>counts\n"
		 "sleep 0.3\n"
		 "for line; do case $line in\n"
		 "-o*) echo \"$line\" >>options ;;\n"
		 "-F*) cat \"${line#-F}\" >>options ;;\n"
		 "esac; done\n"
		 "rm login.$$\n"
		 "%s\n",
		 folder, login);
	assert_int_equal(file_write(path, text, strlen(text), FILE_PRIVATE, NULL), 0);
	assert_int_equal(chmod(path, 0700), 0);
	snprintf(text, sizeof(text), "%s:/usr/bin:/bin", folder);
	setenv("PATH", text, 1);
	setenv("HOME", folder, 1);
}

static void take_answer(void *owner, struct remote_job *job, const char *key, const char *value)
{
	(void)job;
	if (key && strcmp(key, "system") == 0 && strcmp(value, "Linux") == 0)
		++*(int *)owner;
}

static void ignore_line(void *owner, struct remote_job *job, const char *key, const char *value)
{
	(void)owner;
	(void)job;
	(void)key;
	(void)value;
}

/* Runs the script's verb `check` on n hosts. Returns how many have answered that they run Linux. */
static int ask(struct remote_job *jobs, int n)
{
	static struct host hosts[HOSTS];
	int answers = 0;
	const struct remote_calls calls = { &answers, take_answer, NULL };
	struct remote *r;

	assert_int_equal(remote_new(&r, "0", NULL), 0);
	for (int i = 0; i < n; i++) {
		snprintf(hosts[i].target, sizeof(hosts[i].target), "h%d", i);
		jobs[i] = (struct remote_job){ .host = &hosts[i], .folder = "f", .program = "" };
		args_add(&jobs[i].words, "check");
		args_add(&jobs[i].words, "key");
	}
	assert_int_equal(remote_run(r, jobs, (size_t)n, LIMIT_US, &calls, NULL), 0);
	for (int i = 0; i < n; i++)
		args_free(&jobs[i].words);
	remote_free(r);
	return answers;
}

static bool has_line(const char *file, const char *wanted)
{
	char path[96], line[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		found |= strcmp(line, wanted) == 0;
	}
	fclose(f);
	return found;
}

/* Returns the largest of the HOSTS counts that the programs wrote. */
static long most_logins(void)
{
	char path[96], line[32], *end;
	long most = 0, n = 0, count;
	FILE *f;

	snprintf(path, sizeof(path), "%s/counts", folder);
	f = fopen(path, "r");
	assert_non_null(f);
	for (; fgets(line, sizeof(line), f); n++) {
		count = strtol(line, &end, 10);
		assert_true(end > line && *end == '\n');
		most = count > most ? count : most;
	}
	fclose(f);
	assert_int_equal(n, HOSTS);
	return most;
}

TEST(hosts_answer_behind_what_their_login_shells_write)
{
	struct remote_job jobs[HOSTS];

	replace_ssh("printf 'Welcome\n@ failed a trick\ntitle'; exec sh -c \"$line\"");
	assert_int_equal(ask(jobs, HOSTS), HOSTS);
	for (int i = 0; i < HOSTS; i++)
		assert_int_equal(jobs[i].rc, 0);
	assert_in_range(most_logins(), 2, LOGINS);
	assert_true(has_line("options", "-oRemoteCommand=none"));
	assert_true(has_line("options", "-oClearAllForwardings=yes"));
	assert_true(has_line("options", "-oLogLevel=INFO"));
	/* The ssh to a jump host gets the file of options, but not the options of the command
	 * line. */
	assert_true(has_line("options", "BatchMode yes"));
	file_remove_folder(folder);
}

TEST(a_host_that_runs_no_commands_has_failed)
{
	struct remote_job jobs[HOSTS];

	replace_ssh("echo choose from the menu");
	assert_int_equal(ask(jobs, HOSTS), 0);
	for (int i = 0; i < HOSTS; i++) {
		assert_int_equal(jobs[i].rc, -EIO);
		assert_string_equal(jobs[i].why,
				    "its login shell runs no commands: choose from the menu");
	}
	file_remove_folder(folder);
}

/* Makes the host's ssh print `text` and end with the exit status `status`. Checks that the reported
 * reason is `why`. */
static void check_reason(const char *text, int status, const char *why)
{
	struct remote_job job;
	char login[512];

	snprintf(login, sizeof(login), "printf \"%s\"\nexit %d", text, status);
	replace_ssh(login);
	assert_int_equal(ask(&job, 1), 0);
	assert_string_equal(job.why, why);
	file_remove_folder(folder);
}

TEST(the_reason_of_a_failed_login_is_not_that_it_ended)
{
	check_reason("Received disconnect from h port 22:11: Too many logins\n"
		     "Disconnected from h port 22\n",
		     255, "Received disconnect from h port 22:11: Too many logins");
	check_reason("Warning: Permanently added 'h' to the list of known hosts.\n"
		     "Connection closed by 192.0.2.1 port 22\n",
		     255, "Connection closed by 192.0.2.1 port 22");
	check_reason("config: line 2: Bad configuration option: usekeychain\n"
		     "config: terminating, 1 bad configuration options\n",
		     255, "config: line 2: Bad configuration option: usekeychain");
	check_reason("\n@ here\n", 255, "the connection was lost");
	check_reason("Warning: Permanently added 'h' to the list of known hosts.\n", 0,
		     "its login shell runs no commands");
}

TEST(a_known_reason_names_its_remedy)
{
	check_reason("Host key verification failed.\n", 255,
		     "Host key verification failed. (if ssh has never seen this host: "
		     "set StrictHostKeyChecking accept-new)");
	check_reason("Host key for h has changed and you have requested strict checking.\n"
		     "Host key verification failed.\n",
		     255,
		     "Host key for h has changed and you have requested strict checking. (if "
		     "another machine has this address now: run ssh-keygen -R ADDRESS)");
	check_reason("Received disconnect from h port 22:2: Too many authentication failures\n"
		     "Disconnected from h port 22\n",
		     255,
		     "Received disconnect from h port 22:2: Too many authentication failures "
		     "(name the host's key: IdentityFile, and IdentitiesOnly yes)");
	check_reason("root@h: Permission denied (keyboard-interactive).\n", 255,
		     "root@h: Permission denied (keyboard-interactive). (nobody enters a code "
		     "here: let the host accept the key alone)");
	check_reason("kex_exchange_identification: Connection closed by remote host\n"
		     "Connection closed by UNKNOWN port 65535\n",
		     255,
		     "Connection closed by UNKNOWN port 65535 (the jump host or ProxyCommand "
		     "failed: run ssh to the jump host to see why)");
	check_reason("Enjoy your Pod\nError: Your SSH client doesn't support PTY\n", 1,
		     "its login shell runs no commands: Error: Your SSH client doesn't support "
		     "PTY (at RunPod, take the address of SSH over exposed TCP)");
}

/* Installs a bundle on n hosts at the same time. The hosts share a home folder. program: a script
 * that becomes the bundle's program; "": the file of the bundle is not an archive. why gets the
 * reason of the first failure; "": no host failed. */
static void install(int n, const char *program, char why[REMOTE_LINE])
{
	static const char *const folders[] = { "f/a", "f/b", "f/c", "f/d" };
	const struct remote_calls calls = { NULL, ignore_line, NULL };
	struct host host = { .target = "h" };
	struct remote_job jobs[4];
	char command[1024], archive[96];
	struct remote *r;

	replace_ssh("exec sh -c \"$line\"");
	snprintf(archive, sizeof(archive), "%s/archive", folder);
	snprintf(command, sizeof(command),
		 "cd %s && mkdir -p skippipe-0/bin && echo '%s' >skippipe-0/bin/skippipe &&"
		 " chmod +x skippipe-0/bin/skippipe &&"
		 " if [ '%s' ]; then tar -czf archive skippipe-0; else echo text >archive; fi",
		 folder, program, program);
	assert_int_equal(system(command), 0);
	for (int i = 0; i < n; i++) {
		jobs[i] = (struct remote_job){
			.host = &host, .folder = folders[i], .program = "", .file = archive
		};
		args_add(&jobs[i].words, "install");
		args_add(&jobs[i].words, "stamp");
	}
	assert_int_equal(remote_new(&r, "0", NULL), 0);
	assert_int_equal(remote_run(r, jobs, (size_t)n, LIMIT_US, &calls, NULL), 0);
	why[0] = '\0';
	for (int i = n - 1; i >= 0; i--) {
		assert_int_equal(jobs[i].rc == 0, jobs[i].why[0] == '\0');
		if (jobs[i].why[0])
			memcpy(why, jobs[i].why, REMOTE_LINE);
		args_free(&jobs[i].words);
	}
	remote_free(r);
	snprintf(command, sizeof(command),
		 "cd %s/.skippipe && rm -rf 0/bin 0/.stamp && rmdir 0 2>/dev/null;"
		 " ! ls -A | grep .",
		 folder);
	assert_int_equal(system(command), 0); /* only the bundle is there, or nothing */
	file_remove_folder(folder);
}

TEST(a_bundle_is_installed_or_the_reason_is_given)
{
	char why[REMOTE_LINE];

	/* The loader prints such a line if a library in LD_PRELOAD is missing. This is no error. */
	install(1, "echo ERROR: ld.so: ignored. >&2; echo skippipe 0", why);
	assert_string_equal(why, "");
	install(1, "echo skippipe 1", why);
	assert_string_equal(why, "the bundle does not run here: skippipe 1");
	install(1, "", why);
	assert_non_null(strstr(why, "the bundle cannot be unpacked: "));
	assert_non_null(strstr(why, "not in gzip format"));
}

TEST(hosts_that_share_a_home_folder_install_at_the_same_time)
{
	char why[REMOTE_LINE];

	install(4, "echo skippipe 0", why);
	assert_string_equal(why, "");
}
