/* nvml.h - reads a GPU's utilisation, memory, power, temperature and throttling through NVML, the
 * library behind nvidia-smi.
 *
 * The library is part of the driver and is opened at run time. It is not needed to build, and a
 * machine without the library has no figures. A call may take tens of milliseconds, and hangs if
 * the driver hangs. Threads that must not block must therefore never call these functions. Plain C,
 * so that tests reach it without a GPU.
 */
#ifndef MODEL_CUDA_NVML_H
#define MODEL_CUDA_NVML_H

#include "base/error.h"
#include "base/gpu_figures.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"

struct nvml; /* opaque: a GPU */

/* Opens the library and finds the GPU by its PCI bus, as "0000:65:00.0" (stage_device). NVML counts
 * GPUs in another order than CUDA does, and knows nothing of CUDA_VISIBLE_DEVICES. For a GPU that
 * is divided into instances (MIG), NVML gives the figures of the whole card, if it gives any. Gives
 * *out (nvml_close). -ENODEV: there is no such library, driver or GPU; *err has the cause. */
int nvml_open(struct nvml **out, const char *library, const char *bus_id, struct error *err);
void nvml_close(struct nvml *n); /* NULL is allowed */

/* Reads all figures. A figure is absent if the library lacks its function, if the card does not
 * have the figure, if the call fails, or if the value is impossible. */
void nvml_read(struct nvml *n, struct gpu_figures *out);

#endif
