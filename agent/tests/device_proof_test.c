/* Tests the proof of a device where there is nothing to prove. model/cuda/check/gpu.c and
 * model/tests/device_check_test.c test the comparison. */
#include "agent/device_proof.h"

#include "base/tests/test.h"
#include "model/stage.h"

TEST(devices_that_are_no_gpu_need_no_proof)
{
	struct error err = { "" };

	assert_int_equal(device_proof("cpu", &err), 0);
	assert_int_equal(device_proof("cpu:bf16", &err), 0);
	assert_int_equal(device_proof("pretend", &err), 0);
	assert_int_equal(device_proof(NULL, &err), 0);
	assert_int_equal(device_proof("no device", &err), 0);
	assert_string_equal(err.text, "");
}

/* The agent itself names a missing GPU, and computes on the CPU. */
TEST(a_missing_gpu_is_no_failure_of_the_proof)
{
	struct error err = { "" };

	assert_int_equal(device_proof("cuda:63", &err), 0);
	assert_string_equal(err.text, "");
	assert_int_equal(device_proof("cuda", &err), 0); /* a GPU that is here works */
}
