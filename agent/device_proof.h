/* device_proof.h - tests a GPU before the agent contacts the controller. */
#ifndef AGENT_DEVICE_PROOF_H
#define AGENT_DEVICE_PROOF_H

#include <stdbool.h>

#include "base/error.h"

/* Computes one microbatch of a small model on the device, in a child process, and compares the
 * numbers with the CPU's (model/device_check.h). The program must have no other thread. Returns 0
 * if the numbers agree. Also returns 0 if there is no such GPU, because the agent itself then
 * reports this or computes on the CPU. -EIO: the device fails or computes wrong numbers;
 * -ETIMEDOUT: the device hangs; -ENOMEM. The error's text says what to do. */
int device_proof(const char *device, struct error *err);
/* Returns true if the driver must first compile the program's code for the GPU. The test then
 * takes tens of seconds. This function, too, asks the driver in a child process. */
bool device_proof_compiles(const char *device);

#endif
