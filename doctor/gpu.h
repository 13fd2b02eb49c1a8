/* gpu.h - checks the device that computes: the driver, and one microbatch. */
#ifndef DOCTOR_GPU_H
#define DOCTOR_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/finding.h"
#include "model/device_check.h"

/* The parts of NVIDIA's driver that the system shows. */
struct gpu_driver {
	char version[80]; /* first line of /proc/driver/nvidia/version; "": no module is loaded */
	unsigned cards;   /* NVIDIA's cards on the PCI bus */
	int control, unified; /* opening /dev/nvidiactl, /dev/nvidia-uvm: 0 or a negative errno */
	bool has_card_file;   /* there is a /dev/nvidia0, or one with another number */
};

/* Result of a trial in a child process. */
struct gpu_trial {
	int rc; /* of stage_device and device_check */
	struct error why;
	struct stage_device device;
	struct device_check check;
	double seconds;
};

void gpu_look_at_driver(struct gpu_driver *d, const char *root);
/* Computes a microbatch on the device, in a child process and for two minutes at most. The program
 * must have no other thread. */
void gpu_try(struct gpu_trial *t, const char *device);

/* Adds the finding driver. is_asked: the run needs CUDA. */
void gpu_check_driver(struct findings *f, const struct gpu_driver *d, bool is_asked);
/* Adds the finding device. */
void gpu_check_trial(struct findings *f, const struct gpu_trial *t, const char *device);

#endif
