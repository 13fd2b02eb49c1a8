/* device_check.h - computes one microbatch of a small model on a device, and compares the results
 * with those of the CPU. The comparison shows that the driver, the kernels and the library of
 * products work together. */
#ifndef MODEL_DEVICE_CHECK_H
#define MODEL_DEVICE_CHECK_H

#include <stdint.h>

#include "base/error.h"
#include "model/stage.h"
#include "model/trainer.h"

struct device_check {
	double loss, loss_on_cpu;
	double gradient_error; /* largest relative error of any tensor's gradient; 0 on a CPU */
};

/* Limits of the relative errors of gradients, compared with the CPU in fp32. The limits for losses
 * are a tenth of these. */
#define DEVICE_CHECK_FP32 1e-4
#define DEVICE_CHECK_BF16 3e-2

/* Runs the microbatch. If the device is a CPU, only the loss is compared, with the logarithm of the
 * vocabulary's size, which is the loss of an untrained model. Errors are those of trainer_new, and
 * -EIO: the device failed or its numbers are wrong. The message says what to do. The call may hang
 * if the driver does. */
int device_check(struct device_check *out, const char *device, struct error *err);

/* Compares every tensor of two trainers that have the same model. `device` computes on a device,
 * `cpu` on the CPU. stages: number of stages of the model. Returns the largest relative error of a
 * tensor. array: function that returns the array to compare, such as stage_gradient. */
double device_check_furthest(struct trainer *device, struct trainer *cpu, uint32_t stages,
			     float *(*array)(struct stage *));

#endif
