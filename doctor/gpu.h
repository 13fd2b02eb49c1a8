/* gpu.h - checks the device that computes: the driver, and one microbatch. */
#ifndef DOCTOR_GPU_H
#define DOCTOR_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/finding.h"
#include "model/device_check.h"

/* The state of the parts of NVIDIA's driver, as far as the system's files show it. */
struct gpu_driver {
	char version[80]; /* first line of /proc/driver/nvidia/version; "": no module is loaded */
	unsigned cards;   /* number of NVIDIA's cards on the PCI bus */
	/* Results of opening /dev/nvidiactl (control) and /dev/nvidia-uvm (unified): 0 or a
	 * negative errno. */
	int control, unified;
	bool has_card_file; /* /dev/nvidia0 or the file of another card exists */
};

/* Result of computing a microbatch on a device, in a child process. */
struct gpu_trial {
	int rc; /* result of stage_device or device_check */
	struct error why;
	struct stage_device device;
	struct device_check check;
	double seconds;
};

void gpu_look_at_driver(struct gpu_driver *d, const char *root);
/* Computes a microbatch on the device in a child process, which may take a minute. The caller must
 * have no other thread, because this function forks. */
void gpu_try(struct gpu_trial *t, const char *device);

/* Checks the value of --device: names of devices with commas between them. The name cuda:all, or
 * cuda:all:bf16, stands for all GPUs. -EINVAL: the value is not valid. */
int gpu_check_names(const char *devices, struct error *err);

/* Adds the finding "driver". `is_asked`: the operator named a CUDA device. In this case a missing
 * driver is an error and not a warning. */
void gpu_check_driver(struct findings *f, const struct gpu_driver *d, bool is_asked);
/* Adds the finding "device" about the result of a trial. */
void gpu_check_trial(struct findings *f, const struct gpu_trial *t, const char *device);
/* Tries each device in the list, and adds a finding "device" for each. */
void gpu_check_all(struct findings *f, const char *devices);

#endif
