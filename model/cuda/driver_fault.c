/* Turns the CUDA runtime's error codes into errors: whether the caller may use the CPU instead, and
 * what the operator can do. Plain C, so that tests reach it without a GPU. */
#include "model/cuda/driver_fault.h"

#include <errno.h>
#include <stddef.h>

#define CANNOT_START                                                                       \
	"CUDA cannot start: see that nvidia-smi works, that the module nvidia_uvm is loaded " \
	"and that /dev/nvidia* may be opened"

static const struct {
	int code, rc;
	const char *remedy;
} faults[] = {
	{ DRIVER_STUB, -ENODEV,
	  "the toolkit's stub was found in place of the driver's library: take the folder "
	  "\"stubs\" out of LD_LIBRARY_PATH, or install the driver" },
	{ DRIVER_CANNOT_START, -EIO, CANNOT_START },
	{ DRIVER_UNKNOWN, -EIO, CANNOT_START },
	{ DRIVER_DEVICE_BUSY, -EIO,
	  "another process uses it alone: end that process, or set its compute mode to Default "
	  "(nvidia-smi -c 0)" },
	{ DRIVER_NOT_READY, -EIO,
	  "NVSwitch is not ready: start the service nvidia-fabricmanager, in the driver's "
	  "version" },
	{ DRIVER_MISMATCH, -EIO,
	  "the driver's library and its kernel module have different versions: restart the "
	  "machine, or reload the module" },
	{ DRIVER_NO_COMPATIBILITY, -EIO,
	  "the package cuda-compat does not work with this card: take it out of "
	  "LD_LIBRARY_PATH, or install a newer driver" },
};

int driver_fault(int code, const char *text, int driver, int program, uint32_t number,
		 struct error *err)
{
	if (code == DRIVER_OK || code == DRIVER_NO_DEVICE ||
	    (code == DRIVER_TOO_OLD && driver == 0))
		return error_set(err, -ENODEV, "device cuda:%u: there is no GPU%s", number,
				 driver > 0 ? "" : ", or no driver");
	if (code == DRIVER_TOO_OLD)
		return error_set(err, -EIO,
				 "device cuda:%u: its driver knows CUDA %d.%d, and this program is "
				 "for %d.%d: install a newer driver",
				 number, driver / 1000, driver % 1000 / 10, program / 1000,
				 program % 1000 / 10);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (faults[i].code == code)
			return error_set(err, faults[i].rc, "device cuda:%u: %s (%s)", number,
					 faults[i].remedy, text);
	return error_set(err, -EIO, "device cuda:%u: %s", number, text);
}
