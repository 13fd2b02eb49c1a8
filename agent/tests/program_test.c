/* Tests the program from outside: options, signals, orders, faults and exit statuses. Runs
 * bin/skippipe-agent in the folder $SKIPPIPE_BUILD (default: build). The tests are skipped if
 * there is no such program. */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/tests/test.h"
#include "wire/msg.h"
#include "wire/post.h"
#include "wire/transfer.h"

enum { PATIENCE_US = 20000000, ARGS_MOST = 24 };

struct scene {
	char folder[64], program[512], log[128], key[128], join[128];
	struct keys_identity *identity, *agent_key;
	struct keys_list *admitted;
	struct post *post;
	post_peer_id peer; /* the connection of the agent; set at HELLO */
	pid_t pid;
	struct msg_hello hello;
	bool said_hello, ready, troubled, drains, has_tokenizer;
	struct msg_trouble trouble;
	uint64_t beats;
	/* Time of the last heartbeat, and longest interval between two heartbeats. */
	int64_t beat_us, longest_us;
};

static bool find_program(struct scene *s)
{
	const char *build = getenv("SKIPPIPE_BUILD");

	snprintf(s->program, sizeof(s->program), "%s/bin/skippipe-agent", build ? build : "build");
	return access(s->program, X_OK) == 0;
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	*state = s;
	if (!s)
		return -1;
	snprintf(s->folder, sizeof(s->folder), "/tmp/agent-program-XXXXXX");
	if (!mkdtemp(s->folder))
		return -1;
	snprintf(s->log, sizeof(s->log), "%s/log", s->folder);
	snprintf(s->key, sizeof(s->key), "%s/key", s->folder);
	snprintf(s->join, sizeof(s->join), "ipc://%s/controller", s->folder);
	s->admitted = keys_list_new();
	return keys_generate(&s->identity, NULL) < 0 || keys_generate(&s->agent_key, NULL) < 0 ||
	       keys_save(s->agent_key, s->key, NULL) < 0 ||
	       keys_list_admit(s->admitted, keys_public_of(s->agent_key), KEYS_AGENT, "a",
			       NULL) < 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	post_close(s->post);
	keys_list_free(s->admitted);
	keys_free(s->identity);
	keys_free(s->agent_key);
	file_remove_folder(s->folder);
	free(s);
	return 0;
}

/* Starts the program with these arguments, which end with NULL. */
static void spawn(struct scene *s, const char *const *args)
{
	char *argv[ARGS_MOST] = { s->program };
	int n = 1;

	while (*args && n < ARGS_MOST - 1)
		argv[n++] = (char *)*args++;
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0) {
		int log = open(s->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		dup2(log, 1);
		dup2(log, 2);
		execv(s->program, argv);
		_exit(127);
	}
}

static void serve(struct scene *s);

/* Waits until the program ends. Meanwhile plays the program's controller and answers its
 * messages. Returns the wait status. */
static int end_of(struct scene *s)
{
	int64_t by = clock_monotonic_us() + PATIENCE_US;
	int status;

	while (waitpid(s->pid, &status, WNOHANG) == 0) {
		if (clock_monotonic_us() > by)
			fail_msg("the agent does not end");
		serve(s);
	}
	s->pid = 0;
	return status;
}

static int exit_of(struct scene *s)
{
	int status = end_of(s);

	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void assert_output_has(struct scene *s, const char *text)
{
	char *log;
	size_t size;

	assert_int_equal(file_read(s->log, 1 << 20, &log, &size, NULL), 0);
	if (!strstr(log, text))
		fail_msg("it did not send_message \"%s\" but:\n%s", text, log);
	free(log);
}

/* ---- the controller ---- */

static void send_message(struct scene *s, const struct msg *m);

/* Handles a message of the agent. This controller has no files to send. */
static void take(struct scene *s, const struct post_message *p)
{
	struct msg m;

	if (p->kind != POST_DATA)
		return;
	assert_int_equal(msg_decode(&m, p->data, p->size), 0);
	if (m.type == MSG_HELLO) {
		s->hello = m.u.hello;
		s->peer = p->peer;
		s->said_hello = true;
	} else if (m.type == MSG_FILE_ASK) {
		struct msg no;

		transfer_refuse(&m.u.file_ask, "no such file here", &no);
		send_message(s, &no);
	} else if (m.type == MSG_READY) {
		s->ready = true;
	} else if (m.type == MSG_TROUBLE) {
		s->trouble = m.u.trouble;
		s->troubled = true;
	} else if (m.type == MSG_HEARTBEAT) {
		int64_t gap = m.u.heartbeat.now_us - s->beat_us;

		if (s->beats > 0 && gap > s->longest_us)
			s->longest_us = gap;
		s->beat_us = m.u.heartbeat.now_us;
		s->beats++;
		s->drains = m.u.heartbeat.drains;
	}
	msg_clear(&m);
}

static void serve(struct scene *s)
{
	struct post_message p;

	for (int i = 0; s->post && i < 64; i++) {
		post_tick(s->post, clock_monotonic_us());
		if (post_receive(s->post, clock_monotonic_us(), &p) < 0)
			break;
		take(s, &p);
	}
	poll(NULL, 0, 2);
}

static void serve_until(struct scene *s, const bool *flag, const char *what)
{
	int64_t by = clock_monotonic_us() + PATIENCE_US;

	while (!*flag) {
		serve(s);
		if (clock_monotonic_us() > by)
			fail_msg("waited in vain: %s", what);
	}
}

static void send_message(struct scene *s, const struct msg *m)
{
	char bytes[4096];
	long n = msg_encode(m, bytes, sizeof(bytes));
	struct post_part part = { bytes, (size_t)n };

	assert_true(n > 0);
	assert_int_equal(post_send(s->post, s->peer, &part, 1, POST_RELIABLE,
				   clock_monotonic_us()), 0);
}

static void start_agent(struct scene *s)
{
	struct post_options o = { .identity = s->identity, .admitted = s->admitted };
	struct error err = { "" };
	char text[KEYS_TEXT_SIZE];

	if (!find_program(s))
		skip();
	keys_text(keys_public_of(s->identity), text);
	spawn(s, (const char *const[]) { "--join", s->join, "--controller-key", text, "--key",
					 s->key, "--listen", "tcp://127.0.0.1:0", "--node", "0",
					 NULL });
	if (post_open(&s->post, &o, &err) < 0 || post_listen(s->post, s->join, NULL, &err) < 0)
		fail_msg("%s", err.text);
	serve_until(s, &s->said_hello, "hello");
	assert_int_equal(s->hello.protocol, MSG_VERSION);
	assert_int_equal(s->hello.node, 0);
	assert_int_equal(s->hello.pid, s->pid);
	assert_int_equal(strncmp(s->hello.address, "tcp://127.0.0.1:", 16), 0);
}

static void welcome(struct scene *s, const char *model, const char *corpus)
{
	struct msg m = { .type = MSG_WELCOME };

	m.u.welcome = (struct msg_welcome) { .n_nodes = 1, .run = 5, .batch = 1, .sequence = 16,
					     .n_shards = 1, .threads = 1, .slots = 1,
					     .corpus = corpus,
					     .has_tokenizer = s->has_tokenizer };
	m.u.welcome.n_corpus = corpus ? (uint32_t)strlen(corpus) + 1 : 0;
	snprintf(m.u.welcome.model, sizeof(m.u.welcome.model), "%s", model);
	send_message(s, &m);
}

static void assign(struct scene *s, uint8_t stage)
{
	struct msg m = { .type = MSG_ASSIGN, .u.assign = { .assignment = 1, .stage = stage } };

	send_message(s, &m);
}

#define SCENE(name) TEST_WITH(name, setup, teardown)

/* ---- tests ---- */

SCENE(test_bad_usage)
{
	static const char *const wrong[][10] = {
		{ NULL },
		{ "--nonsense", NULL },
		{ "--join", "tcp://127.0.0.1:1", NULL },
		{ "--join", "a", "--controller-key", "b", "--key", "c", "--listen", "d", "extra" },
		{ "--node", "-3", NULL },
		{ "--node", "1000", NULL },
		{ "--node", "x", NULL },
		{ "--orphan-s", "0", NULL },
		{ "--log", "loud", NULL },
		{ "--join", NULL },
	};
	struct scene *s = *state;

	if (!find_program(s))
		skip();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		spawn(s, wrong[i]);
		assert_int_equal(exit_of(s), 2);
		assert_output_has(s, "--help");
	}
	spawn(s, (const char *const[]) { "--help", NULL });
	assert_int_equal(exit_of(s), 0);
	assert_output_has(s, "--controller-key");
	spawn(s, (const char *const[]){ "--join", "a:1", "--controller-key", "b", "--key", "c",
					"--advertise", "tcp://[::]:5", NULL });
	assert_int_equal(exit_of(s), 2);
	assert_output_has(s, "--advertise");
}

SCENE(test_bad_values)
{
	struct scene *s = *state;
	char text[KEYS_TEXT_SIZE], missing[160];

	if (!find_program(s))
		skip();
	keys_text(keys_public_of(s->identity), text);
	snprintf(missing, sizeof(missing), "%s/none", s->folder);
	spawn(s, (const char *const[]) { "--join", s->join, "--controller-key", missing, "--key",
					 s->key, "--listen", "127.0.0.1:0", NULL });
	assert_int_equal(exit_of(s), 1);
	assert_output_has(s, missing);
	/* --controller-key takes a public key, not the file of a private key. */
	spawn(s, (const char *const[]) { "--join", s->join, "--controller-key", s->key, "--key",
					 s->key, "--listen", "127.0.0.1:0", NULL });
	assert_int_equal(exit_of(s), 1);
	assert_output_has(s, s->key);
	assert_int_equal(chmod(s->key, 0644), 0);
	spawn(s, (const char *const[]) { "--join", s->join, "--controller-key", text, "--key",
					 s->key, "--listen", "127.0.0.1:0", NULL });
	assert_int_equal(exit_of(s), 1);
	assert_output_has(s, s->key);
	assert_int_equal(chmod(s->key, 0600), 0);
	spawn(s, (const char *const[]) { "--join", s->join, "--controller-key", text, "--key",
					 s->key, "--listen", "nowhere", NULL });
	assert_int_equal(exit_of(s), 1);
	assert_output_has(s, "nowhere");
}

SCENE(test_orphan)
{
	struct scene *s = *state;
	char text[KEYS_TEXT_SIZE];

	if (!find_program(s))
		skip();
	keys_text(keys_public_of(s->identity), text);
	spawn(s, (const char *const[]) { "--join", s->join, "--controller-key", text, "--key",
					 s->key, "--listen", "127.0.0.1:0", "--orphan-s", "1",
					 NULL });
	assert_int_equal(exit_of(s), 1);
	assert_output_has(s, "no controller for 1 s");
}

static bool output_has(const struct scene *s, const char *text)
{
	char *log;
	size_t size;
	bool said;

	if (file_read(s->log, 1 << 20, &log, &size, NULL) != 0)
		return false;
	said = strstr(log, text) != NULL;
	free(log);
	return said;
}

/* If the agent's port is in use, the agent waits, because an agent of the previous run may not
 * have ended yet. */
SCENE(test_port_that_becomes_free)
{
	struct scene *s = *state;
	struct post_options o = { .identity = s->identity, .admitted = s->admitted };
	int64_t by = clock_monotonic_us() + PATIENCE_US;
	char text[KEYS_TEXT_SIZE], address[LINK_ADDRESS_SIZE];
	struct post *other;

	if (!find_program(s))
		skip();
	keys_text(keys_public_of(s->identity), text);
	assert_int_equal(post_open(&other, &o, NULL), 0);
	assert_int_equal(post_listen(other, "tcp://127.0.0.1:0", address, NULL), 0);
	spawn(s, (const char *const[]) { "--join", s->join, "--controller-key", text, "--key",
					 s->key, "--listen", address, NULL });
	while (!output_has(s, "another program listens there; waiting") &&
	       clock_monotonic_us() < by)
		poll(NULL, 0, 2);
	post_close(other);
	assert_int_equal(post_open(&s->post, &o, NULL), 0);
	assert_int_equal(post_listen(s->post, s->join, NULL, NULL), 0);
	serve_until(s, &s->said_hello, "hello");
	assert_string_equal(s->hello.address, address);
	assert_output_has(s, "waiting");
}

SCENE(test_refused)
{
	struct msg m = { .type = MSG_REFUSED, .u.refused = { .reason = "the cluster is full" } };
	struct scene *s = *state;

	start_agent(s);
	send_message(s, &m);
	assert_int_equal(exit_of(s), 1);
	assert_output_has(s, "the cluster is full");
}

/* The test sends the answer that a controller of another version sends. The agent must end and say
 * that the versions differ. */
SCENE(test_another_version)
{
	struct msg m = { .type = MSG_REFUSED };
	struct scene *s = *state;
	unsigned char bytes[256];
	struct post_part part = { bytes, msg_size(&m) };

	start_agent(s);
	assert_true(part.size <= sizeof(bytes));
	assert_int_equal(msg_encode(&m, bytes, sizeof(bytes)), (long)part.size);
	bytes[2]++; /* changes MSG_VERSION */
	assert_int_equal(post_send(s->post, s->peer, &part, 1, POST_RELIABLE,
				   clock_monotonic_us()), 0);
	assert_int_equal(exit_of(s), 1);
	assert_output_has(s, "another version of skippipe");
}

SCENE(test_stop_and_signals)
{
	struct msg m = { .type = MSG_STOP, .u.stop = { "enough" } };
	struct scene *s = *state;

	start_agent(s);
	welcome(s, "tiny", NULL);
	assign(s, 1);
	serve_until(s, &s->ready, "ready");
	send_message(s, &m);
	assert_int_equal(exit_of(s), 0);
	assert_output_has(s, "enough");
	post_close(s->post);
	s->post = NULL;
	s->said_hello = s->ready = s->troubled = false;
	start_agent(s);
	welcome(s, "tiny", NULL);
	assign(s, 1);
	serve_until(s, &s->ready, "ready");
	assert_int_equal(kill(s->pid, SIGTERM), 0);
	serve_until(s, &s->drains, "a heartbeat that says that it drains");
	assert_false(s->troubled);
	assert_int_equal(kill(s->pid, SIGTERM), 0);
	assert_int_equal(exit_of(s), 0);
	assert_true(s->troubled);
	assert_int_equal(s->trouble.fatal, 1);
	assert_non_null(strstr(s->trouble.text, "leaving"));
}

SCENE(test_hang_and_kill)
{
	struct msg m = { .type = MSG_FAULT, .u.fault = { 1, FAULT_HANG, -1, 0, 800 } };
	struct scene *s = *state;
	uint64_t beats;
	int status;

	start_agent(s);
	welcome(s, "tiny", NULL);
	assign(s, 1);
	serve_until(s, &s->ready, "ready");
	while (s->beats == 0) /* wait for the heartbeat that begins the first interval */
		serve(s);
	beats = s->beats;
	send_message(s, &m);
	while (s->beats < beats + 8)
		serve(s);
	assert_true(s->longest_us >= 800000);
	m.u.fault.fault = 2;
	m.u.fault.kind = FAULT_KILL;
	send_message(s, &m);
	status = end_of(s);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void expect_fatal(struct scene *s, const char *model, const char *corpus, const char *text)
{
	start_agent(s);
	welcome(s, model, corpus);
	assign(s, 0);
	assert_int_equal(exit_of(s), 1);
	assert_true(s->troubled && s->trouble.fatal);
	if (!strstr(s->trouble.text, text))
		fail_msg("\"%s\" does not send_message %s", s->trouble.text, text);
	assert_output_has(s, text);
}

SCENE(test_bad_corpus)
{
	expect_fatal(*state, "tiny", "/nowhere/to/be/found", "/nowhere/to/be/found");
	assert_output_has(*state, "no such file here");
}

/* Gives the agent a corpus on which it cannot train. Checks that the agent ends and reports the
 * reason. */
static void refuses_corpus(struct scene *s, const char *name, const void *data, size_t size,
			   const char *text)
{
	char path[128];
	struct error err;

	snprintf(path, sizeof(path), "%s/%s", s->folder, name);
	assert_int_equal(file_write(path, data, size, 0600, &err), 0);
	expect_fatal(s, "tiny", path, text);
	assert_output_has(s, text);
	unlink(path);
}

SCENE(foreign_tokens_are_no_text)
{
	static const char tokens[1000] = "16-bit tokens";

	refuses_corpus(*state, "train.bin", tokens, sizeof(tokens),
		       "train.bin: a .bin without the header of a token shard");
}

SCENE(bytes_with_nul_are_no_text)
{
	static const char wide[1000] = "t\0e\0x\0t";

	refuses_corpus(*state, "wide.txt", wide, sizeof(wide),
		       "wide.txt: not a text: byte 2 is NUL");
}

SCENE(tokens_of_another_vocabulary_are_refused)
{
	enum { TOKENS = 2000, HEADER = 1024 };
	static uint8_t shard[HEADER + 2 * TOKENS];
	const uint32_t head[] = { 20240520, 1, TOKENS };

	memcpy(shard, head, sizeof(head));
	shard[HEADER] = 0xe7; /* token 999, which the model does not have */
	shard[HEADER + 1] = 3;
	refuses_corpus(*state, "shard.bin", shard, sizeof(shard),
		       "the corpus has tokens up to 999, the model a vocab of 256");
}

SCENE(a_text_is_no_corpus_of_a_model_with_a_tokenizer)
{
	static char text[2000];

	memset(text, 'x', sizeof(text));
	((struct scene *)*state)->has_tokenizer = true;
	refuses_corpus(*state, "text", text, sizeof(text),
		       "the corpus is text, and the model has a tokenizer");
}

SCENE(test_bad_model)
{
	expect_fatal(*state, "{\"format\":\"skippipe.model/1\",\"modle\":{}}", NULL, "modle");
}
