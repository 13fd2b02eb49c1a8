/* Tests device_proof.c, which tests a GPU. The GPU is emulated. */
#include "agent/device_proof.h"

#include <errno.h>
#include <string.h>

#include "base/tests/test.h"
#include "model/tests/emulated_device.h"

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

TEST(a_good_card_is_proved)
{
	struct error err = { "" };

	assert_int_equal(device_proof("cuda:0", &err), 0);
	assert_string_equal(err.text, "");
}

/* device_proof accepts the number of a GPU that does not exist, because the agent itself reports
 * this later. */
TEST(a_missing_card_is_no_failure_of_the_proof)
{
	struct error err = { "" };

	assert_int_equal(device_proof("cuda:63", &err), 0);
	assert_string_equal(err.text, "");
}

TEST(a_faulty_card_is_named_with_a_remedy)
{
	struct error err = { "" };

	wrong_products = true;
	assert_int_equal(device_proof("cuda", &err), -EIO);
	wrong_products = false;
	assert_non_null(strstr(err.text, "computes wrong numbers"));
	assert_non_null(strstr(err.text, "did not join. skippipe doctor --device cuda says more"));
}

/* If the driver will compile for a long time, the agent must know this beforehand and report
 * it. */
TEST(a_card_without_code_is_known_before_its_use)
{
	assert_false(device_proof_compiles("cuda"));
	compiles = true;
	assert_true(device_proof_compiles("cuda:0:bf16"));
	assert_false(device_proof_compiles("cuda:1"));
	assert_false(device_proof_compiles("cpu"));
	compiles = false;
}
