/* Tests the GPU's figures in heartbeats, with a substitute for NVIDIA's library (tests/nvml.c).
 * Tests how often the agent reads the figures, and what happens if the library hangs or is
 * missing. The GPU of complete agents is emulated. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/network/gpu_monitor.h"
#include "agent/tests/cluster.h"
#include "base/tests/test.h"
#include "model/cuda/nvml.h"
#include "model/tests/emulated_device.h"
#include "model/tests/nvml_script.h"

/* Loads the substitute under the file name of NVIDIA's library. A later dlopen of that name then
 * finds the substitute. */
static struct nvml_script *script(void)
{
	char path[4096];
	struct nvml_script *s = nvml_script_load("nvml.so", path);

	*s = (struct nvml_script){ .utilisation = { 0, 97 },
				   .used = { 0, 1ull << 30 },
				   .total = 2ull << 30,
				   .power = { 0, 300000 },
				   .limit = { 0, 400000 },
				   .temperature = { 0, 71 } };
	return s;
}

/* Waits until the present reading has ended. */
static void settle(struct gpu_monitor *m)
{
	while (gpu_monitor_busy(m))
		usleep(1000);
}

TEST(test_is_read_at_every_tenth_heartbeat)
{
	struct nvml_script *s = script();
	struct gpu_monitor *m;

	assert_int_equal(gpu_monitor_new(&m, NVML_LIBRARY, NVML_TEST_BUS, NULL, NULL), 0);
	assert_int_equal(gpu_monitor_turn(m).known, 0); /* no reading has ended yet */
	for (int i = 1; i <= 100; i++) {
		struct gpu_figures f;

		settle(m);
		s->temperature.value = (unsigned)(40 + i);
		f = gpu_monitor_turn(m);
		assert_int_equal(f.known, GPU_ALL);
		assert_int_equal(f.utilisation, 97);
	}
	settle(m);
	assert_in_range(s->calls, 10, 11);
	assert_in_range(gpu_monitor_turn(m).temperature_c, 131, 140);
	assert_int_equal(s->open, 1);
	gpu_monitor_free(m);
	assert_int_equal(s->open, 0);
}

/* If the library hangs, the caller must not wait, and outdated figures are dropped. */
TEST(test_a_library_that_hangs_has_no_figures)
{
	struct nvml_script *s = script();
	struct gpu_monitor *m;
	int turns = 0;

	assert_int_equal(gpu_monitor_new(&m, NVML_LIBRARY, NVML_TEST_BUS, NULL, NULL), 0);
	gpu_monitor_turn(m);
	settle(m);
	assert_int_equal(gpu_monitor_turn(m).known, GPU_ALL);
	s->hanging = 1;
	while (gpu_monitor_turn(m).known)
		assert_in_range(++turns, 1, 70);
	assert_in_range(turns, 50, 70);
	assert_true(gpu_monitor_busy(m));
	for (int i = 0; i < 100; i++)
		assert_int_equal(gpu_monitor_turn(m).known, 0);
	while (s->calls < 2)
		usleep(1000);
	assert_int_equal(s->calls, 2);
	s->hanging = 0;
	settle(m);
	assert_int_equal(gpu_monitor_turn(m).known, GPU_ALL);
	gpu_monitor_free(m);
}

TEST(test_a_missing_library_is_logged_once)
{
	char *text = NULL, *line;
	size_t size = 0;
	struct log log = { .least = LOG_INFO, .who = "test" };
	struct gpu_monitor *m;

	log.to = open_memstream(&text, &size);
	assert_non_null(log.to);
	assert_int_equal(gpu_monitor_new(&m, "libnvidia-absent.so.1", NVML_TEST_BUS, &log, NULL),
			 0);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(gpu_monitor_turn(m).known, 0);
		settle(m);
	}
	gpu_monitor_free(m);
	fclose(log.to);
	line = strstr(text, "no figures of the GPU: libnvidia-absent.so.1");
	assert_non_null(line);
	assert_null(strstr(line + 1, "no figures"));
	free(text);
}

static bool has_figures(struct cluster *c)
{
	return c->nodes[0].beat.gpu.known != 0;
}

static bool has_beaten(struct cluster *c)
{
	return c->nodes[0].beat.beat > 15;
}

static struct cluster *cluster_on(const char *device)
{
	static const uint8_t stages[] = { 0 };
	struct cluster *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->options.device = device;
	cluster_init(c, 1, stages);
	return c;
}

TEST(test_heartbeats_carry_them)
{
	struct nvml_script *s = script();
	struct cluster *c = cluster_on("cuda");
	struct gpu_figures g;

	s->reasons.value = 0x8 | 0x40;
	cluster_until(c, has_figures, "figures of the GPU");
	g = c->nodes[0].beat.gpu;
	assert_int_equal(g.known, GPU_ALL);
	assert_int_equal(g.utilisation, 97);
	assert_int_equal(g.temperature_c, 71);
	assert_int_equal(g.throttling, GPU_HEAT);
	assert_int_equal(g.memory_used_mib, 1024);
	assert_int_equal(g.memory_mib, 2048);
	assert_int_equal(g.power_mw, 300000);
	assert_int_equal(g.power_limit_mw, 400000);
	cluster_unmake(c);
	assert_int_equal(s->open, 0);
}

/* The library is present. There are still no figures, because the agent does not compute on a
 * GPU. */
TEST(test_other_devices_have_none)
{
	static const char *const devices[] = { "cpu", "pretend" };
	struct nvml_script *s = script();

	for (int i = 0; i < 2; i++) {
		struct cluster *c = cluster_on(devices[i]);

		cluster_until(c, has_beaten, "heartbeats");
		assert_int_equal(c->nodes[0].beat.gpu.known, 0);
		assert_int_equal(s->started, 0);
		cluster_unmake(c);
	}
}
