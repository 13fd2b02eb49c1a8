/* devices.h - the devices that computed a run, and the device of this machine that recomputes it.
 *
 * The bits of a contribution depend on the device: on a CPU's instruction set and its library of
 * products, or on the kind of a GPU. The agents report their device, and the record keeps it.
 * One device of this machine recomputes the whole run. Its bits equal those of the nodes that had
 * a device of the same kind. They do not equal those of the other nodes.
 */
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
	char text[STAGE_DEVICE_SIZE]; /* the same device as stage_device describes it */
	uint32_t n;
	struct recorded_device {
		/* The device's text, as the nodes reported it; "": the record names no device. */
		char text[STAGE_DEVICE_SIZE];
		uint32_t nodes;               /* number of nodes that computed with the device */
		bool matches;                 /* the device that recomputes is of this kind */
	/* (n) recorded devices, in descending order of nodes. */
	} list[DEVICES_MAX];
};

/* Reads the devices of the run and chooses the one that recomputes it. If `device` is NULL, this is
 * the best match: the device of most nodes that this machine has, or else the CPU. Returns 0, an
 * error of the store, an error of stage_device, or -E2BIG if the run had more than DEVICES_MAX
 * kinds of device. */
int devices_choose(struct devices *out, struct store *s, const char *device, struct error *err);

/* Returns true if the device that recomputes gives the same bits as a recorded device. recorded
 * NULL: the record names no device, so the function returns true. */
bool devices_match(const struct devices *d, const char *recorded);

#endif
