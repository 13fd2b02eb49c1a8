/* Tests the microbatch that checks a device, with an emulated GPU. */
#include "model/device_check.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/tests/test.h"
#include "model/tests/emulated_device.h"

TEST(a_cpu_computes_a_microbatch)
{
	struct device_check c;
	struct error err = { "" };

	assert_int_equal(device_check(&c, "cpu", &err), 0);
	assert_true(fabs(c.loss - log(300)) < 0.5);
}

TEST(a_device_that_is_missing_is_named)
{
	struct device_check c = { .loss = 1 };
	struct error err = { "" };

	assert_int_equal(device_check(&c, "disc", &err), -EINVAL);
	assert_non_null(strstr(err.text, "disc"));
	assert_int_equal(device_check(&c, "cuda:1", &err), -EINVAL);
	assert_true(c.loss == 1);
}

TEST(a_good_card_agrees_with_the_cpu)
{
	static const char *const names[] = { "cuda", "cuda:0:bf16" };
	struct device_check c;
	struct error err = { "" };

	for (int i = 0; i < 2; i++) {
		assert_int_equal(device_check(&c, names[i], &err), 0);
		assert_true(c.gradient_error > 0 && c.loss_on_cpu > 5);
	}
}

TEST(a_card_with_wrong_numbers_is_found)
{
	struct device_check c;
	struct error err = { "" };

	wrong_products = true;
	assert_int_equal(device_check(&c, "cuda", &err), -EIO);
	wrong_products = false;
	assert_non_null(strstr(err.text, "device cuda: it computes wrong numbers"));
	assert_non_null(strstr(err.text, "faulty"));
}

TEST(a_card_that_fails_says_why)
{
	struct device_check c;
	struct error err = { "" };

	refused = EVERY_PRODUCT;
	assert_int_equal(device_check(&c, "cuda", &err), -EIO);
	refused = NO_PRODUCT;
	assert_non_null(strstr(err.text, "refused"));
	fail_at_wait = true;
	assert_int_equal(device_check(&c, "cuda", &err), -EIO);
	fail_at_wait = false;
}

/* Compares two trainers with the same weights, before and after one gradient is made wrong. */
TEST(a_wrong_or_missing_number_is_found)
{
	struct model_config config;
	struct error err = { "" };
	struct hyperparameters hyper;
	const struct stage_options o = { .batch = 1, .sequence = 8, .seed = 3 };
	struct trainer *t[2] = { NULL, NULL };
	float *gradient;

	assert_int_equal(model_preset("tiny", &config, &hyper, &err), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(trainer_new(&t[i], &config, &hyper, &o, &err), 0);
	gradient = stage_gradient(trainer_stages(t[1])[1]);
	stage_gradient(trainer_stages(t[0])[1])[0] = gradient[0] = 2;
	assert_true(device_check_furthest(t[0], t[1], config.n_stages, stage_gradient) == 0);
	stage_gradient(trainer_stages(t[0])[1])[0] = 3;
	assert_true(device_check_furthest(t[0], t[1], config.n_stages, stage_gradient) == 0.5);
	stage_gradient(trainer_stages(t[0])[1])[0] = NAN;
	assert_true(isnan(device_check_furthest(t[0], t[1], config.n_stages, stage_gradient)));
	for (int i = 0; i < 2; i++)
		trainer_free(t[i]);
}
