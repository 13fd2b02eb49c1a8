/* Tests names of devices, the description of a CPU, and the limits of one process. cuda_test.c
 * tests the GPU's side. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tests/test.h"
#include "model/vector/vector.h"
#include "model/stage.h"

TEST(names_are_read_and_written)
{
	static const char *const names[][2] = {
		{ "cpu", "cpu" },
		{ "cpu:v3", "cpu:v3" },
		{ "cpu:amx:bf16", "cpu:amx:bf16" },
		{ "cpu:bf16", "cpu:bf16" },
		{ "cuda", "cuda:0" },
		{ "cuda:3", "cuda:3" },
		{ "cuda:bf16", "cuda:0:bf16" },
		{ "cuda:12:bf16", "cuda:12:bf16" },
	};
	static const char *const bad[] = { "",         "gpu",     "cpu:",        "cpu:v9",
					   "cpu:v3x",  "cpu:1",   "cuda:v3",     "cuda:",
					   "cuda:all", "cpu:v3:", "cpu:bf16:v3", "cuda:1:2" };
	struct device_name n;
	char text[DEVICE_NAME_SIZE];
	struct error err;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(device_name_parse(&n, names[i][0], &err), 0);
		device_name_print(&n, text);
		assert_string_equal(text, names[i][1]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(device_name_parse(&n, bad[i], &err), -EINVAL);
	assert_non_null(strstr(err.text, "device \"cuda:1:2\": expected cpu or cuda"));
}

TEST(likeness_leaves_a_gpus_number_out)
{
	assert_true(device_texts_alike("cuda:0 sm_89 L4", "cuda:5 sm_89 L4"));
	assert_false(device_texts_alike("cuda:0 sm_89 L4", "cuda:0:bf16 sm_89 L4"));
	assert_false(device_texts_alike("cuda:0 sm_89 L4", "cuda:0 sm_89 L40S"));
	assert_true(device_texts_alike("cpu:v3 oneDNN 2.6.3", "cpu:v3 oneDNN 2.6.3"));
	assert_false(device_texts_alike("cpu:v3 oneDNN 2.6.3", "cpu:v4 oneDNN 2.6.3"));
	assert_false(device_texts_alike("cpu:v3 oneDNN 2.6.3", "cpu:v3 oneDNN 3.6.2"));
	assert_true(device_texts_alike("", ""));
	assert_false(device_texts_alike("", "cpu:v3"));
}

/* Forbids new code, as MemoryDenyWriteExecute=yes of systemd does. This test must run before any
 * test that computes, because oneDNN keeps the code that it has generated. */
TEST(a_process_that_may_run_no_new_code_has_no_cpu)
{
	/* Prctl's numbers, since Linux 6.3. */
	enum { SET_MDWE = 65, REFUSE_EXEC_GAIN = 1, NOT_HERE = 255 };
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		struct stage_device d;
		struct error err = { "" };

		if (prctl(SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) < 0)
			_exit(NOT_HERE);
		if (stage_device(&d, "cpu", &err) != -EPERM || !strstr(err.text, "oneDNN"))
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE)
		skip();
	assert_int_equal(status, 0);
}

/* oneDNN accepts one instruction set for a whole process: the first that is requested. */
TEST(a_process_computes_with_one_set)
{
	struct stage_device d;
	struct error err = { "" };

	assert_int_equal(stage_device(&d, "cpu:plain", &err), 0);
	assert_string_equal(d.name, "cpu:plain");
	assert_int_equal(strncmp(d.text, "cpu:plain ", 10), 0);
	assert_true(strlen(d.text) > 10 && d.free_bytes > 0);
	assert_int_equal(stage_device(&d, "cpu:plain:bf16", &err), -ENOTSUP);
	assert_int_equal(stage_device(&d, "cpu", &err), 0);
	assert_string_equal(d.name, "cpu:plain");
	if (!vector_ops_named("v3"))
		return;
	assert_int_equal(stage_device(&d, "cpu:v3", &err), -EBUSY);
	assert_non_null(strstr(err.text, "v3"));
	assert_string_equal(d.name, "cpu:plain"); /* the name was not changed */
}
