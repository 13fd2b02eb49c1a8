/* devices.h - the devices that computed a run, and the device of this machine that recomputes it.
 *
 * The bits of a gradient depend on the device: on a CPU's instruction set and its matrix library,
 * or on the kind of a GPU. The agents report their device, and the record keeps it. One device of
 * this machine recomputes the whole run. The results of this device equal those of nodes with the
 * same kind of device bit for bit. They differ slightly from the results of other nodes. */
#ifndef VERIFY_DEVICES_H
#define VERIFY_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/device_name.h"
#include "model/stage.h"
#include "store/store.h"

enum { DEVICES_MAX = 32 };

struct devices {
	char name[DEVICE_NAME_SIZE];  /* name of the device that recomputes (model/device_name.h) */
	char text[STAGE_DEVICE_SIZE]; /* description of this device by stage_device */
	uint32_t n;
	struct recorded_device {
		/* Description of the device as the nodes reported it; "": the record names no
		 * device. */
		char text[STAGE_DEVICE_SIZE];
		uint32_t nodes; /* number of nodes that computed on the device */
		/* True if the device that recomputes is of the same kind as this device. */
		bool matches;
		/* the n recorded devices; the device with the largest number of nodes comes
		 * first */
	} list[DEVICES_MAX];
};

/* Reads the devices of the run from the record and chooses the device that recomputes the run. If
 * `device` is NULL, chooses among the recorded devices that this machine has, and takes the
 * device with the largest number of nodes. If this machine has none of the recorded devices,
 * chooses the CPU. Returns 0, an error of the store, or an error of stage_device. -E2BIG: the run
 * had more than DEVICES_MAX kinds of device. */
int devices_choose(struct devices *out, struct store *s, const char *device, struct error *err);

/* Returns true if the device that recomputes gives the same bits as the recorded device. Also
 * returns true if `recorded` is NULL or "", because the record then names no device. */
bool devices_match(const struct devices *d, const char *recorded);

#endif
