/* Tests answers of a GPU's driver: errors name remedies, and an unknown pointer is not read. */
#include <errno.h>
#include <string.h>

#include "base/tests/test.h"
#include "model/cuda/driver_fault.h"
#include "model/cuda/own_memory.h"

static enum pointer_kind answer_of_driver(void *answer, const void *p)
{
	(void)p;
	assert_non_null(answer); /* NULL: the test expects that the driver is not asked */
	return *(enum pointer_kind *)answer;
}

/* After a failure the driver does not answer. A pointer then counts as a device's, because the CPU
 * must not touch it. */
TEST(pointers_without_an_answer_are_not_touched)
{
	enum pointer_kind host = POINTER_HOST, device = POINTER_DEVICE, unknown = POINTER_UNKNOWN;
	struct own_memory own = { .n = 0 };
	char a[16], b[16];

	own_memory_add(&own, b, sizeof(b));
	own_memory_add(&own, a, sizeof(a));
	assert_true(own_memory_holds(&own, b, answer_of_driver, NULL));
	assert_true(own_memory_holds(&own, a + sizeof(a) - 1, answer_of_driver, NULL));
	assert_false(own_memory_holds(&own, &own, answer_of_driver, &host));
	assert_true(own_memory_holds(&own, &own, answer_of_driver, &device));
	assert_true(own_memory_holds(&own, &own, answer_of_driver, &unknown));
}

TEST(drivers_faults_have_remedies)
{
	static const struct {
		int code, driver, rc;
		const char *words;
	} cases[] = {
		{ DRIVER_OK, 13000, -ENODEV, "device cuda:2: there is no GPU" },
		{ DRIVER_NO_DEVICE, 13000, -ENODEV, "there is no GPU" },
		{ DRIVER_TOO_OLD, 0, -ENODEV, "or no driver" },
		{ DRIVER_TOO_OLD, 12020, -EIO, "knows CUDA 12.2, and this program is for 13.0" },
		{ DRIVER_STUB, 0, -ENODEV, "stub" },
		{ DRIVER_NOT_READY, 13000, -EIO, "nvidia-fabricmanager" },
		{ DRIVER_MISMATCH, 13000, -EIO, "restart the machine" },
		{ DRIVER_NO_COMPATIBILITY, 13000, -EIO, "cuda-compat" },
		{ DRIVER_UNKNOWN, 13000, -EIO, "nvidia-smi" },
		{ DRIVER_DEVICE_BUSY, 13000, -EIO, "compute mode" },
		{ 719, 13000, -EIO, "device cuda:2: the runtime's words" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error err = { "" };

		assert_int_equal(driver_fault(cases[i].code, "the runtime's words",
					      cases[i].driver, 13000, 2, &err),
				 cases[i].rc);
		assert_non_null(strstr(err.text, cases[i].words));
	}
}
