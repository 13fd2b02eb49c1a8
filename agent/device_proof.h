/* device_proof.h - proves a GPU before the agent announces itself. */
#ifndef AGENT_DEVICE_PROOF_H
#define AGENT_DEVICE_PROOF_H

#include <stdbool.h>

#include "base/error.h"

/* Computes one microbatch of a small model on the device in a child process, and compares it with
 * the CPU's (model/device_check.h). The program must have no other thread. Returns 0 if the numbers
 * agree, and also if there is no such GPU: the agent itself then reports what is missing, or
 * computes on the CPU. -EIO: the device fails or computes wrong numbers; -ETIMEDOUT: it hangs;
 * -ENOMEM. The message says what to do. */
int device_proof(const char *device, struct error *err);
/* Returns true if the driver will first compile the program's code for the GPU, during which the
 * proof takes tens of seconds. Asks in a child process, too. */
bool device_proof_compiles(const char *device);

#endif
