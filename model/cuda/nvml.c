/* Opens NVML at run time and translates its figures. The library's functions are declared here,
 * according to its reference manual, so NVIDIA's header is not needed. */
#include "model/cuda/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"

/* Functions of NVML return an nvmlReturn_t; 0: success. */
typedef int nvml_call(void);
typedef int nvml_find(const char *bus_id, void **device);
typedef int nvml_number(void *device, unsigned *value);
typedef int nvml_sensor(void *device, int sensor, unsigned *value);

struct nvml_utilisation {
	unsigned gpu, memory; /* utilisation in percent */
};
typedef int nvml_utilisation(void *device, struct nvml_utilisation *value);

struct nvml_memory {
	unsigned long long total, free, used; /* bytes of memory */
};
typedef int nvml_memory(void *device, struct nvml_memory *value);

/* Answer of the second version of the call, which counts the driver's own memory separately, as
 * nvidia-smi does. */
struct nvml_memory_v2 {
	/* Size of this struct, and in the highest byte the number of the version. */
	unsigned version;
	unsigned long long total, reserved, free, used;
};
typedef int nvml_memory_v2(void *device, struct nvml_memory_v2 *value);
typedef int nvml_reasons(void *device, unsigned long long *bits);

enum {
	SENSOR_GPU = 0, /* value of NVML_TEMPERATURE_GPU */
	/* Values of nvmlClocksEventReason..., earlier nvmlClocksThrottleReason... */
	SOFTWARE_POWER_CAP = 0x4,
	HARDWARE_SLOWDOWN = 0x8,
	SOFTWARE_THERMAL = 0x20,
	HARDWARE_THERMAL = 0x40,
	HARDWARE_POWER_BRAKE = 0x80
};

struct nvml {
	void *library;
	void *device;
	/* NVML's functions. All except the first three may be NULL. */
	nvml_call *init, *shutdown;
	nvml_find *find;
	nvml_utilisation *utilisation;
	nvml_memory *memory;
	nvml_memory_v2 *memory_v2;
	nvml_number *power, *power_limit;
	nvml_sensor *temperature;
	nvml_reasons *reasons;
};

/* Sets *function, a pointer to a function, to the library's symbol of this name, or to NULL.
 * Returns true if the library has the symbol. */
static bool look_up(const struct nvml *n, void *function, const char *name)
{
	return (*(void **)function = dlsym(n->library, name)) != NULL;
}

static bool find_functions(struct nvml *n)
{
	look_up(n, &n->utilisation, "nvmlDeviceGetUtilizationRates");
	look_up(n, &n->memory, "nvmlDeviceGetMemoryInfo");
	look_up(n, &n->memory_v2, "nvmlDeviceGetMemoryInfo_v2");
	look_up(n, &n->power, "nvmlDeviceGetPowerUsage");
	look_up(n, &n->power_limit, "nvmlDeviceGetEnforcedPowerLimit");
	look_up(n, &n->temperature, "nvmlDeviceGetTemperature");
	/* Tries the newer name, then the name in drivers before 535. */
	if (!look_up(n, &n->reasons, "nvmlDeviceGetCurrentClocksEventReasons"))
		look_up(n, &n->reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
	return look_up(n, &n->init, "nvmlInit_v2") && look_up(n, &n->shutdown, "nvmlShutdown") &&
	       look_up(n, &n->find, "nvmlDeviceGetHandleByPciBusId_v2");
}

int nvml_open(struct nvml **out, const char *library, const char *bus_id, struct error *err)
{
	struct nvml *n = alloc_new(sizeof(*n));
	int code;

	n->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!n->library) {
		error_set(err, -ENODEV, "%s", dlerror());
	} else if (!find_functions(n)) {
		error_set(err, -ENODEV, "%s is too old", library);
	} else if ((code = n->init()) != 0) {
		error_set(err, -ENODEV, "%s does not start: NVML error %d", library, code);
	} else if ((code = n->find(bus_id, &n->device)) != 0) {
		n->shutdown();
		error_set(err, -ENODEV, "%s does not know the GPU %s: NVML error %d", library,
			  bus_id, code);
	} else {
		*out = n;
		return 0;
	}
	if (n->library)
		dlclose(n->library);
	free(n);
	return -ENODEV;
}

void nvml_close(struct nvml *n)
{
	if (!n)
		return;
	n->shutdown();
	dlclose(n->library);
	free(n);
}

static void read_utilisation(const struct nvml *n, struct gpu_figures *out)
{
	struct nvml_utilisation u = { 0 };

	if (!n->utilisation || n->utilisation(n->device, &u) != 0 || u.gpu > 100)
		return;
	out->utilisation = (uint8_t)u.gpu;
	out->known |= GPU_UTILISATION;
}

static void read_memory(const struct nvml *n, struct gpu_figures *out)
{
	struct nvml_memory_v2 m = { .version = sizeof(m) | 2u << 24 };
	struct nvml_memory first = { 0 };

	if (!n->memory_v2 || n->memory_v2(n->device, &m) != 0) {
		if (!n->memory || n->memory(n->device, &first) != 0)
			return;
		m.total = first.total;
		m.used = first.used;
	}
	if (m.total == 0 || m.total >> 20 > GPU_MEMORY_MOST_MIB || m.used > m.total)
		return;
	out->memory_mib = (uint32_t)(m.total >> 20);
	out->memory_used_mib = (uint32_t)(m.used >> 20);
	out->known |= GPU_MEMORY;
}

static void read_power(const struct nvml *n, struct gpu_figures *out)
{
	unsigned mw;

	if (n->power && n->power(n->device, &mw) == 0 && mw <= GPU_POWER_MOST_MW) {
		out->power_mw = mw;
		out->known |= GPU_POWER;
	}
	if (n->power_limit && n->power_limit(n->device, &mw) == 0 && mw <= GPU_POWER_MOST_MW) {
		out->power_limit_mw = mw;
		out->known |= GPU_POWER_LIMIT;
	}
}

static void read_temperature(const struct nvml *n, struct gpu_figures *out)
{
	unsigned c;

	if (!n->temperature || n->temperature(n->device, SENSOR_GPU, &c) != 0 ||
	    c > GPU_TEMPERATURE_MOST_C)
		return;
	out->temperature_c = (uint8_t)c;
	out->known |= GPU_TEMPERATURE;
}

/* An idle GPU, and a GPU whose clocks a person has set, count as not throttled. */
static void read_throttling(const struct nvml *n, struct gpu_figures *out)
{
	unsigned long long bits;

	if (!n->reasons || n->reasons(n->device, &bits) != 0)
		return;
	out->known |= GPU_THROTTLING;
	if (bits & (SOFTWARE_THERMAL | HARDWARE_THERMAL))
		out->throttling |= GPU_HEAT;
	if (bits & HARDWARE_POWER_BRAKE)
		out->throttling |= GPU_POWER_BRAKE;
	/* In addition to this bit, newer drivers set another bit for the cause. */
	if (bits & HARDWARE_SLOWDOWN && !(bits & (HARDWARE_THERMAL | HARDWARE_POWER_BRAKE)))
		out->throttling |= GPU_HARDWARE;
	if (bits & SOFTWARE_POWER_CAP)
		out->throttling |= GPU_POWER_CAP;
}

void nvml_read(struct nvml *n, struct gpu_figures *out)
{
	*out = (struct gpu_figures){ 0 };
	read_utilisation(n, out);
	read_memory(n, out);
	read_power(n, out);
	read_temperature(n, out);
	read_throttling(n, out);
}
