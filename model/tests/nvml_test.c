/* Tests the reader of a GPU's figures with a library of the tests (tests/nvml.c) that gives known
 * answers, or lacks functions and figures. */
#include <errno.h>
#include <string.h>

#include "base/tests/test.h"
#include "model/cuda/nvml.h"
#include "model/tests/nvml_script.h"

static char library[4096];

/* Loads a library of the tests, and resets its answers. */
static struct nvml_script *script(const char *name)
{
	struct nvml_script *s = nvml_script_load(name, library);

	*s = (struct nvml_script){ .utilisation = { 0, 97 },
				   .used = { 0, 61ull << 30 },
				   .total = 80ull << 30,
				   .reserved = 1ull << 30,
				   .power = { 0, 643210 },
				   .limit = { 0, 700000 },
				   .temperature = { 0, 71 } };
	return s;
}

static struct gpu_figures figures(void)
{
	struct gpu_figures f;
	struct nvml *n;

	assert_int_equal(nvml_open(&n, library, NVML_TEST_BUS, NULL), 0);
	nvml_read(n, &f);
	nvml_close(n);
	return f;
}

TEST(all_figures_are_read)
{
	struct nvml_script *s = script("nvml.so");
	struct gpu_figures f = figures();

	assert_int_equal(f.known, GPU_ALL);
	assert_int_equal(f.utilisation, 97);
	assert_int_equal(f.memory_mib, 80 << 10);
	assert_int_equal(f.memory_used_mib, 61 << 10); /* without the driver's own memory */
	assert_int_equal(f.power_mw, 643210);
	assert_int_equal(f.power_limit_mw, 700000);
	assert_int_equal(f.temperature_c, 71);
	assert_int_equal(f.throttling, 0);
	assert_int_equal(s->open, 0);
}

/* An old library lacks three functions, and has another name for a fourth. */
TEST(figures_that_an_old_library_lacks_are_absent)
{
	struct nvml_script *s = script("nvml_old.so");
	struct gpu_figures f;

	s->reasons.value = 0x40;
	f = figures();
	assert_int_equal(f.known, GPU_ALL & ~(GPU_POWER | GPU_POWER_LIMIT));
	assert_int_equal(f.memory_used_mib, 62 << 10);
	assert_int_equal(f.throttling, GPU_HEAT);
	assert_int_equal(f.power_mw, 0);
}

/* If a card lacks one figure, the other figures are still read. */
TEST(figures_that_a_card_does_not_support_are_absent)
{
	struct nvml_script *s = script("nvml.so");
	const struct {
		struct nvml_answer *answer;
		uint8_t figure;
	} cases[] = {
		{ &s->utilisation, GPU_UTILISATION }, { &s->used, GPU_MEMORY },
		{ &s->power, GPU_POWER },             { &s->limit, GPU_POWER_LIMIT },
		{ &s->temperature, GPU_TEMPERATURE }, { &s->reasons, GPU_THROTTLING },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* codes: 3: not supported; 15: the GPU is lost. */
		cases[i].answer->code = i % 2 ? 3 : 15;
		assert_int_equal(figures().known, GPU_ALL & ~cases[i].figure);
		cases[i].answer->code = 0;
	}
}

TEST(impossible_values_are_absent)
{
	struct nvml_script *s = script("nvml.so");

	s->utilisation.value = 101;
	s->used.value = s->total + 1;
	s->power.value = s->limit.value = GPU_POWER_MOST_MW + 1;
	s->temperature.value = 0xfffffff0; /* a temperature below 0 */
	assert_int_equal(figures().known, GPU_THROTTLING);
	s->used.value = s->total = 0;
	assert_int_equal(figures().known, GPU_THROTTLING);
	s->total = 1ull << 63;
	assert_int_equal(figures().known, GPU_THROTTLING);
}

TEST(reasons_for_throttling_are_translated)
{
	static const struct {
		unsigned long long bits;
		uint8_t throttling;
	} cases[] = {
		{ 0x0, 0 },
		{ 0x1, 0 },                /* the GPU is idle */
		{ 0x2 | 0x10 | 0x100, 0 }, /* a person has set the clocks */
		{ 0x4, GPU_POWER_CAP },
		{ 0x8, GPU_HARDWARE },
		{ 0x20, GPU_HEAT },
		{ 0x8 | 0x40, GPU_HEAT },
		{ 0x8 | 0x80, GPU_POWER_BRAKE },
		{ 0x8 | 0x20, GPU_HARDWARE | GPU_HEAT },
		{ ~0ull, GPU_HEAT | GPU_POWER_BRAKE | GPU_POWER_CAP },
		{ 1ull << 40, 0 }, /* an unknown reason */
	};
	struct nvml_script *s = script("nvml.so");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		s->reasons.value = cases[i].bits;
		assert_int_equal(figures().throttling, cases[i].throttling);
	}
}

TEST(the_error_names_what_cannot_be_opened)
{
	struct nvml_script *s = script("nvml.so");
	struct nvml *n = NULL;
	struct error err;

	assert_int_equal(nvml_open(&n, "libnvidia-absent.so.1", NVML_TEST_BUS, &err), -ENODEV);
	assert_non_null(strstr(err.text, "libnvidia-absent.so.1"));
	/* Opens a library that has none of NVML's functions. */
	assert_int_equal(nvml_open(&n, "libm.so.6", NVML_TEST_BUS, &err), -ENODEV);
	assert_non_null(strstr(err.text, "libm.so.6 is too old"));
	assert_int_equal(nvml_open(&n, library, "0000:66:00.0", &err), -ENODEV);
	assert_non_null(strstr(err.text, "does not know the GPU 0000:66:00.0: NVML error 6"));
	assert_int_equal(s->open, 0);
	s->init = 9; /* code 9: there is no driver */
	assert_int_equal(nvml_open(&n, library, NVML_TEST_BUS, &err), -ENODEV);
	assert_non_null(strstr(err.text, "does not start: NVML error 9"));
	assert_int_equal(s->open, 0);
	assert_null(n);
}
