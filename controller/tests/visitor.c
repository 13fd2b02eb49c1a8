/* visitor.c - for tests: starts a whole controller as a process, and connects visitors that act as
 * consoles, watchers or agents. Tests can thus check the program itself. */
#include "controller/tests/visitor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tests/test.h"

static void dial(struct visitor *v, const struct door *d)
{
	struct post_options o = { .identity = v->id };

	assert_int_equal(post_open(&v->post, &o, NULL), 0);
	assert_int_equal(
		post_dial(v->post, d->address, keys_public_of(d->controller), &v->to, NULL), 0);
}

void visitor_new(struct visitor *v, struct door *d, enum keys_role role,
			const char *name)
{
	*v = (struct visitor){ 0 };
	assert_int_equal(keys_generate(&v->id, NULL), 0);
	if (role)
		assert_int_equal(
			keys_list_admit(d->list, keys_public_of(v->id), role, name, NULL), 0);
	dial(v, d);
}

void visitor_clone(struct visitor *clone, const struct visitor *v, struct door *d)
{
	*clone = (struct visitor){ .id = v->id, .borrows_id = true };
	dial(clone, d);
}

void visitor_free(struct visitor *v)
{
	post_close(v->post);
	if (!v->borrows_id)
		keys_free(v->id);
}

static void hear(struct visitor *v, const struct msg *m)
{
	size_t at = strlen(v->journal);

	if (v->hear)
		v->hear(v->context, m);
	if (m->type == MSG_SEE_SYNCED)
		v->synced = true;
	if (m->type == MSG_SEE_ITERATION)
		v->committed = m->u.see_iteration.iteration;
	if (m->type == MSG_SEE_REPLY) {
		v->answered = m->u.see_reply.command;
		v->status = m->u.see_reply.status;
	}
	if (m->type == MSG_SEE_NOTE)
		snprintf(v->journal + at, sizeof(v->journal) - at, "%s\n", m->u.see_note.text);
}

void visitor_turn(struct visitor *v)
{
	struct pollfd p = { .fd = post_fd(v->post), .events = POLLIN };
	struct post_message in;
	struct msg m;

	poll(&p, 1, 1);
	post_tick(v->post, clock_monotonic_us());
	for (int i = 0; i < 64 && post_receive(v->post, clock_monotonic_us(), &in) == 0; i++) {
		v->up = v->up || in.kind == POST_UP;
		v->restarts += in.kind == POST_UP && in.restarted;
		if (in.kind == POST_REFUSED) {
			v->refused = true;
			v->reason = in.reason;
		}
		if (in.kind != POST_DATA || msg_decode(&m, in.data, in.size) != 0)
			continue;
		hear(v, &m);
		msg_clear(&m);
	}
}

/* The controller reads its list of keys only a few times a second. A key that was just admitted is
 * refused at first, so this refusal is forgotten. */
void visitor_come_in(struct visitor *v, struct visitor *other)
{
	UNTIL(v, other, v->up);
	v->refused = false;
}

void visitor_send(struct visitor *v, const struct msg *m, enum post_flags flags)
{
	unsigned char data[2048];
	long size = msg_encode(m, data, sizeof(data));
	struct post_part part = { data, (size_t)size };

	assert_true(size > 0);
	post_send(v->post, v->to, &part, 1, flags, clock_monotonic_us());
}

void visitor_attach(struct visitor *v)
{
	struct msg m = { .type = MSG_ATTACH,
			 .u.attach = { .protocol = MSG_VERSION, .name = "test" } };

	visitor_send(v, &m, POST_RELIABLE);
	UNTIL(v, NULL, v->synced);
	v->refused = false;
}

/* Sends the command. Returns the status in the controller's reply. */
int32_t visitor_command(struct visitor *v, enum command_verb verb, int64_t value)
{
	static uint64_t id;
	struct msg m = { .type = MSG_COMMAND };

	id++;
	m.u.command = (struct msg_command){
		.id = id, .verb = (uint8_t)verb, .node = -1, .peer = -1, .value = value
	};
	visitor_send(v, &m, POST_RELIABLE);
	UNTIL(v, NULL, v->answered == id);
	return v->status;
}

/* ---- the controller ---- */

/* The controller's output goes to a file, because a pipe that no process reads would block the
 * controller. */
static void read_address(struct door *d, const char *log)
{
	int64_t give_up = clock_monotonic_us() + TEST_PATIENCE_US;
	char line[512], *at;
	FILE *f;

	while (clock_monotonic_us() < give_up) {
		f = fopen(log, "r");
		while (f && fgets(line, sizeof(line), f)) {
			at = strstr(line, "listening at ");
			if (at && strchr(line, '\n') &&
			    sscanf(at, "listening at %100s", d->address) == 1) {
				fclose(f);
				return;
			}
		}
		if (f)
			fclose(f);
		poll(NULL, 0, 10);
	}
	fail_msg("the controller does not listen");
}

/* Starts the controller. how: "--run-dir" or "--resume". */
static void start(struct door *d, const char *how, const char *const *options)
{
	const char *build = getenv("SKIPPIPE_BUILD"), *args[48];
	char program[512], run[96], log[96];
	int n = 0, to;

	snprintf(run, sizeof(run), "%s/run", d->folder);
	snprintf(program, sizeof(program), "%s/bin/skippipe-controller",
		 build ? build : "build");
	snprintf(log, sizeof(log), "%s/log", d->folder);
	to = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(to >= 0);
	args[n++] = program;
	args[n++] = how;
	args[n++] = run;
	args[n++] = "--key";
	args[n++] = d->key;
	args[n++] = "--admitted";
	args[n++] = d->admitted;
	while (*options && n < 47)
		args[n++] = *options++;
	args[n] = NULL;
	d->pid = fork();
	assert_true(d->pid >= 0);
	if (d->pid == 0) {
		/* If an assertion fails, the test's process ends, and this ends the controller,
		 * too */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(to, STDERR_FILENO);
		execv(program, (char *const *)args);
		_exit(127);
	}
	close(to);
	read_address(d, log);
}

void door_restart(struct door *d, const char *const *options)
{
	char address[LINK_ADDRESS_SIZE];
	const char *all[40] = { "--listen", address };
	int n = 2;

	kill(d->pid, SIGKILL);
	waitpid(d->pid, NULL, 0);
	snprintf(address, sizeof(address), "%s", d->address);
	while (*options && n < 39)
		all[n++] = *options++;
	start(d, "--resume", all);
}

struct door *door_new(const char *const *options)
{
	struct door *d = calloc(1, sizeof(*d));
	const char *all[40] = { "--gather-s", "300" };
	int n = 2;

	assert_non_null(d);
	strcpy(d->folder, "/tmp/skippipe-door-XXXXXX");
	assert_non_null(mkdtemp(d->folder));
	snprintf(d->admitted, sizeof(d->admitted), "%s/admitted", d->folder);
	snprintf(d->key, sizeof(d->key), "%s/key", d->folder);
	assert_int_equal(keys_generate(&d->controller, NULL), 0);
	assert_int_equal(keys_save(d->controller, d->key, NULL), 0);
	assert_int_equal(keys_list_open(&d->list, d->admitted, NULL), 0);
	while (*options && n < 39)
		all[n++] = *options++;
	start(d, "--run-dir", all);
	return d;
}

int door_free(struct door *d)
{
	char command_line[128];
	int status;

	kill(d->pid, SIGTERM);
	waitpid(d->pid, &status, 0);
	keys_list_free(d->list);
	keys_free(d->controller);
	snprintf(command_line, sizeof(command_line), "rm -rf '%s'", d->folder);
	status = system(command_line);
	free(d);
	return status;
}

bool door_alive(const struct door *d)
{
	return waitpid(d->pid, NULL, WNOHANG) == 0;
}
