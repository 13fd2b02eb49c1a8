/* nvml.c - replaces NVIDIA's libnvidia-ml.so.1 in tests. It shows one GPU and answers as
 * nvml_script says. tests/nvml_old.c makes the library of an old driver from this file. */
#include <string.h>
#include <unistd.h>

#include "model/tests/nvml_script.h"

enum { NOT_SUPPORTED = 3, NOT_FOUND = 6, VERSION_MISMATCH = 25 };

struct nvml_script nvml_script;

struct utilisation {
	unsigned gpu, memory;
};
struct memory {
	unsigned long long total, free, used;
};
struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};

/* Gives an answer that is a number. */
static int answer(const struct nvml_answer *a, unsigned *value)
{
	*value = (unsigned)a->value;
	return a->code;
}

int nvmlInit_v2(void)
{
	nvml_script.started++;
	nvml_script.open += nvml_script.init == 0;
	return nvml_script.init;
}

int nvmlShutdown(void)
{
	nvml_script.open--;
	return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device)
{
	*device = &nvml_script;
	return strcmp(bus_id, NVML_TEST_BUS) == 0 ? nvml_script.find : NOT_FOUND;
}

int nvmlDeviceGetUtilizationRates(void *device, struct utilisation *value)
{
	(void)device;
	value->memory = 55;
	return answer(&nvml_script.utilisation, &value->gpu);
}

/* This function counts the driver's own memory as used; its second version does not. */
int nvmlDeviceGetMemoryInfo(void *device, struct memory *value)
{
	(void)device;
	value->total = nvml_script.total;
	value->used = nvml_script.used.value + nvml_script.reserved;
	value->free = value->total - value->used;
	return nvml_script.used.code;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *value)
{
	(void)device;
	nvml_script.calls++;
	while (nvml_script.hanging)
		usleep(1000);
	return sensor == 0 ? answer(&nvml_script.temperature, value) : NOT_SUPPORTED;
}

static int reasons(void *device, unsigned long long *value)
{
	(void)device;
	*value = nvml_script.reasons.value;
	return nvml_script.reasons.code;
}

#ifdef OLD
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *value)
{
	return reasons(device, value);
}
#else
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *value)
{
	return reasons(device, value);
}

int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *value)
{
	(void)device;
	if (value->version != (sizeof(*value) | 2u << 24))
		return VERSION_MISMATCH;
	value->total = nvml_script.total;
	value->reserved = nvml_script.reserved;
	value->used = nvml_script.used.value;
	value->free = value->total - value->reserved - value->used;
	return nvml_script.used.code;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *value)
{
	(void)device;
	return answer(&nvml_script.power, value);
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *value)
{
	(void)device;
	return answer(&nvml_script.limit, value);
}
#endif
