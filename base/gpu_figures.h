/* gpu_figures.h - what a GPU reports about itself: how busy, full and hot it is.
 *
 * An agent reads the figures (model/cuda/nvml.h), heartbeats carry them, consoles show them. A card
 * or its driver may lack any figure. wire/names.h names the reasons for throttling. Plain data
 * without padding, copied by value. A zeroed struct has no figures.
 */
#ifndef BASE_GPU_FIGURES_H
#define BASE_GPU_FIGURES_H

#include <stdint.h>

/* Bits of `known`: the figures that the GPU reported. */
enum gpu_known {
	GPU_UTILISATION = 1,
	GPU_MEMORY = 2, /* memory_used_mib and memory_mib */
	GPU_POWER = 4,
	GPU_POWER_LIMIT = 8,
	GPU_TEMPERATURE = 16,
	GPU_THROTTLING = 32,
	GPU_ALL = 63
};

/* Bits of `throttling`: why the clocks are lower than they could be. */
enum gpu_throttling {
	GPU_HEAT = 1,
	GPU_POWER_BRAKE = 2, /* the power supply has demanded lower clocks */
	/* The card does not say whether heat or the power supply lowers the clocks. */
	GPU_HARDWARE = 4,
	GPU_POWER_CAP = 8, /* the card's power is at its limit, which is normal for a busy card */
	GPU_THROTTLING_ALL = 15,
	/* The reasons that show a fault of the machine. */
	GPU_THROTTLING_FAULTS = GPU_HEAT | GPU_POWER_BRAKE | GPU_HARDWARE
};

/* Limits of plausible values. Larger figures are treated as missing, and refused in messages. */
enum {
	GPU_TEMPERATURE_MOST_C = 200,
	GPU_POWER_MOST_MW = 100000000,
	GPU_MEMORY_MOST_MIB = 1 << 30
};

struct gpu_figures {
	uint8_t known;         /* bits of enum gpu_known; a figure without its bit is 0 */
	uint8_t utilisation;   /* time in which a kernel ran, percent of the sampling period */
	uint8_t temperature_c; /* temperature in degrees Celsius */
	uint8_t throttling;    /* bits of enum gpu_throttling */
	uint32_t power_mw, power_limit_mw;
	/* Memory used by all processes, and the card's whole memory, MiB. */
	uint32_t memory_used_mib, memory_mib;
};

#endif
