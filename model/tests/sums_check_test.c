/* Tests the check of sums on a device, with a GPU that is emulated. `build/gpu check` makes this
 * check on a real GPU. */
#include "model/tests/sums_check.h"

#include <errno.h>
#include <string.h>

#include "base/tests/test.h"
#include "model/tests/emulated_device.h"

static const struct model_config config = { .vocab = 41, .dim = 24, .n_layers = 2, .n_heads = 4,
					    .n_kv_heads = 2, .ffn_dim = 20, .context = 8,
					    .n_stages = 2, .rope_theta = 10000, .norm_eps = 1e-5f,
					    .init_std = 0.1f };

TEST(sums_have_the_cpus_bits)
{
	for (int format = 0; format < FORMAT_COUNT; format++) {
		unsigned differing = 9;
		struct error err = { "" };

		assert_int_equal(sums_check(&config, "cuda", (enum tensor_format)format, &differing,
					    &err),
				 0);
		assert_int_equal(differing, 0);
	}
}

/* If a kernel of a sum, or the kernel of the step, does nothing, the check reports unequal bits. */
TEST(a_kernel_without_effect_is_found)
{
	static const struct {
		enum device_kernel kernel;
		enum tensor_format format;
	} cases[] = { { KERNEL_ADD, FORMAT_FP32 },         { KERNEL_HASH, FORMAT_FP32 },
		      { KERNEL_SQUARES, FORMAT_FP32 },     { KERNEL_ADAMW, FORMAT_FP32 },
		      { KERNEL_BF16_ENCODE, FORMAT_BF16 }, { KERNEL_BF16_DECODE, FORMAT_BF16 },
		      { KERNEL_QUANTISE, FORMAT_Q6 },      { KERNEL_DEQUANTISE, FORMAT_Q6 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned differing = 0;
		struct error err = { "" };

		omitted_kernel = cases[i].kernel;
		assert_int_equal(sums_check(&config, "cuda", cases[i].format, &differing, &err), 0);
		omitted_kernel = KERNEL_COUNT;
		assert_true(differing > 0);
	}
}

TEST(a_card_that_fails_says_why)
{
	unsigned differing = 9;
	struct error err = { "" };

	fail_at_wait = true;
	assert_int_equal(sums_check(&config, "cuda", FORMAT_Q8, &differing, &err), -EIO);
	fail_at_wait = false;
	assert_non_null(strstr(err.text, "injected"));
	assert_int_equal(differing, 9);
}
