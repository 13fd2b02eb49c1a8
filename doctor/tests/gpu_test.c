/* Tests the checks of a GPU's driver and device with made-up systems and results. */
#include "doctor/gpu.h"

#include <errno.h>
#include <string.h>

#include "base/tests/test.h"
#include "doctor/tests/system_tree.h"

#define VERSION "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.1"

/* Checks the driver of a made-up system for a run that needs a GPU. Then removes the system's
 * files. */
static void examine(struct findings *f, struct system_tree *t)
{
	struct gpu_driver d;

	gpu_look_at_driver(&d, t->root);
	gpu_check_driver(f, &d, true);
	tree_remove(t);
}

TEST(each_part_of_a_driver_can_be_missing)
{
	struct findings f = { .all.n = 0 };
	struct system_tree t;

	tree_make(&t);
	examine(&f, &t);
	must_find(&f, "driver", FINDING_ERROR, "no NVIDIA card", "--device cpu");
	findings_free(&f);
	tree_make(&t);
	tree_put(&t, "/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
	tree_put(&t, "/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
	examine(&f, &t);
	must_find(&f, "driver", FINDING_ERROR, "is not loaded", "modprobe nvidia");
	findings_free(&f);
	tree_make(&t);
	tree_put(&t, "/proc/driver/nvidia/version", VERSION "\n");
	tree_put(&t, "/dev/nvidiactl", "");
	examine(&f, &t);
	must_find(&f, "driver", FINDING_ERROR, "the container got none", "nvidia.com/gpu");
	findings_free(&f);
	tree_make(&t);
	tree_put(&t, "/proc/driver/nvidia/version", VERSION "\n");
	tree_put(&t, "/dev/nvidiactl", "");
	tree_put(&t, "/dev/nvidia1", "");
	examine(&f, &t);
	must_find(&f, "driver", FINDING_ERROR, "/dev/nvidia-uvm", "modprobe nvidia_uvm");
	findings_free(&f);
	tree_make(&t);
	tree_put(&t, "/proc/driver/nvidia/version", VERSION "\n");
	tree_put(&t, "/dev/nvidiactl", "");
	tree_put(&t, "/dev/nvidia1", "");
	tree_put(&t, "/dev/nvidia-uvm", "");
	examine(&f, &t);
	must_find(&f, "driver", FINDING_OK, "570.1", "");
	findings_free(&f);
}

TEST(a_right_that_is_missing_has_its_own_remedy)
{
	struct gpu_driver d = { .version = VERSION, .cards = 1, .has_card_file = true };
	struct findings f = { .all.n = 0 };

	d.control = -EPERM;
	d.unified = -EACCES;
	gpu_check_driver(&f, &d, true);
	must_find(&f, "driver", FINDING_ERROR, "/dev/nvidiactl", "control group");
	must_find(&f, "driver", FINDING_ERROR, "/dev/nvidia-uvm", "group");
	findings_free(&f);
	gpu_check_driver(&f, &d, false);
	must_be(&f, "driver", FINDING_WARNING);
	findings_free(&f);
}

TEST(a_machine_without_a_gpu_needs_none)
{
	struct findings f = { .all.n = 0 };
	const struct gpu_driver none = { .cards = 0 };

	gpu_check_driver(&f, &none, false);
	assert_int_equal(f.all.n, 0);
	findings_free(&f);
}

TEST(a_devices_failure_has_a_remedy)
{
	struct findings f = { .all.n = 0 };
	struct gpu_trial t = { .rc = -EIO };

	strcpy(t.why.text, "device cuda:0: it computes wrong numbers");
	gpu_check_trial(&f, &t, "cuda");
	must_find(&f, "device", FINDING_ERROR, "wrong numbers", "nvidia-smi");
	findings_free(&f);
	t.rc = -ETIMEDOUT;
	gpu_check_trial(&f, &t, "cuda");
	must_find(&f, "device", FINDING_ERROR, "", "hangs");
	findings_free(&f);
	t.rc = -ENODEV;
	strcpy(t.why.text, "device cuda:0: this program was built without CUDA");
	gpu_check_trial(&f, &t, "cuda");
	must_find(&f, "device", FINDING_ERROR, "", "make bundle");
	findings_free(&f);
	t = (struct gpu_trial){ .device.free_bytes = 1 << 20 };
	strcpy(t.device.name, "cuda:0");
	gpu_check_trial(&f, &t, "cuda:0");
	must_find(&f, "device", FINDING_WARNING, "0.0 GiB", "nvidia-smi");
	findings_free(&f);
	t.device.free_bytes = UINT64_C(80) << 30;
	gpu_check_trial(&f, &t, "cuda:0");
	must_be(&f, "device", FINDING_OK);
	findings_free(&f);
}

TEST(this_machines_cpu_passes)
{
	struct findings f = { .all.n = 0 };
	struct gpu_trial t;

	gpu_try(&t, "cpu");
	gpu_check_trial(&f, &t, "cpu");
	must_find(&f, "device", findings_worst(&f), t.rc == 0 ? "cpu" : "none", "");
	assert_int_equal(t.rc, 0);
	findings_free(&f);
	gpu_try(&t, "cuda:99");
	gpu_check_trial(&f, &t, "cuda:99");
	must_be(&f, "device", FINDING_ERROR);
	findings_free(&f);
}
