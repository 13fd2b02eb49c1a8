/* gpu.c - checks the device that computes.
 *
 * NVIDIA's driver has several parts: the kernel's module, the files in /dev and the library. A
 * container can lack any of these parts, or the permission to open the files. The CUDA runtime
 * reports all of these problems with the same few codes, so this module examines the parts one by
 * one. Computing a microbatch then shows that the parts work together.
 */
#include "doctor/gpu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/process/trial.h"
#include "doctor/system_file.h"

enum { LIMIT_S = 60, NVIDIA = 0x10de };
static const char every[] = "cuda:all";
#define FREE_LITTLE (UINT64_C(2) << 30)

/* ---- the figures ---- */

static int try_to_open(const char *root, const char *name)
{
	char *path = alloc_format("%s%s", root, name);
	const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	const int rc = fd < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	free(path);
	return rc;
}

/* Calls `counts` for each entry of a folder. Returns the number of entries for which `counts`
 * returned true. */
static unsigned count_entries(const char *root, const char *name,
			      bool (*counts)(const char *folder, const char *entry))
{
	char *path = alloc_format("%s%s", root, name);
	DIR *folder = opendir(path);
	struct dirent *e;
	unsigned n = 0;

	while (folder && (e = readdir(folder)))
		n += e->d_name[0] != '.' && counts(path, e->d_name);
	if (folder)
		closedir(folder);
	free(path);
	return n;
}

static bool is_display_or_accelerator(const char *folder, const char *entry)
{
	char *path = alloc_format("%s/%s", folder, entry);
	char vendor[16], class[16];

	system_line(path, "/vendor", vendor, sizeof(vendor));
	system_line(path, "/class", class, sizeof(class));
	free(path);
	return strtoul(vendor, NULL, 16) == NVIDIA && strtoul(class, NULL, 16) >> 16 == 3;
}

static bool is_card_file(const char *folder, const char *entry)
{
	(void)folder;
	return strncmp(entry, "nvidia", 6) == 0 && entry[6] >= '0' && entry[6] <= '9';
}

void gpu_look_at_driver(struct gpu_driver *d, const char *root)
{
	*d = (struct gpu_driver){ .cards = count_entries(root, "/sys/bus/pci/devices",
							 is_display_or_accelerator) };
	system_line(root, "/proc/driver/nvidia/version", d->version, sizeof(d->version));
	d->control = try_to_open(root, "/dev/nvidiactl");
	d->unified = try_to_open(root, "/dev/nvidia-uvm");
	d->has_card_file = count_entries(root, "/dev", is_card_file) > 0;
}

static int run_trial(void *context, void *result, struct error *err)
{
	struct gpu_trial *t = result;
	const int64_t began_us = clock_monotonic_us();
	int rc = stage_device(&t->device, context, err);

	if (rc == 0)
		rc = device_check(&t->check, context, err);
	t->seconds = (double)(clock_monotonic_us() - began_us) * 1e-6;
	return rc;
}

void gpu_try(struct gpu_trial *t, const char *device)
{
	struct error why = { "" };

	memset(t, 0, sizeof(*t));
	const int rc = trial_run(run_trial, (void *)(uintptr_t)device, t, sizeof(*t), LIMIT_S,
				 device, &why);

	t->rc = rc;
	t->why = why;
}

/* ---- the findings ---- */

/* If a file of the driver could not be opened, adds a finding. rc: the result of opening the
 * file. `missing` is the remedy if the file does not exist. */
static void check_file(struct findings *f, const char *name, int rc, enum finding_level level,
		       const char *missing)
{
	if (rc == 0)
		return;
	finding_add(f, "driver", level, "%s cannot be opened: %s", name, strerror(-rc));
	if (rc == -EPERM)
		finding_remedy(f,
			       "the container's control group forbids it, as after a reload of "
			       "systemd: start the container again, with --device %s",
			       name);
	else if (rc == -EACCES)
		finding_remedy(f, "give this user the right to open it: add the user to the group "
				  "of the file (video, render)");
	else
		finding_remedy(f, "%s", missing);
}

void gpu_check_driver(struct findings *f, const struct gpu_driver *d, bool is_asked)
{
	const enum finding_level level = is_asked ? FINDING_ERROR : FINDING_WARNING;
	const size_t before = f->all.n;

	if (!d->version[0]) {
		if (!is_asked && d->cards == 0)
			return;
		finding_add(f, "driver", level, "%s",
			    d->cards > 0 ? "the machine has an NVIDIA card, and the module nvidia "
					   "is not loaded"
					 : "the machine shows no NVIDIA card and no driver");
		finding_remedy(f, "%s",
			       d->cards > 0 ? "install the driver or load its module (modprobe "
					      "nvidia); after an update of the kernel, build the "
					      "module again (dkms autoinstall)"
					    : "take a machine with a GPU, or --device cpu");
		return;
	}
	if (!d->has_card_file) {
		finding_add(f, "driver", level,
			    "the driver is loaded, and /dev has no card: the container got none");
		finding_remedy(f, "start the container with its GPUs (podman run --device "
				  "nvidia.com/gpu=all, docker run --gpus all)");
		return;
	}
	check_file(f, "/dev/nvidiactl", d->control, level,
		   "start the container with its GPUs, or run nvidia-modprobe on the host");
	check_file(f, "/dev/nvidia-uvm", d->unified, level,
		   "run on the host: modprobe nvidia_uvm, nvidia-modprobe -u -c=0");
	if (f->all.n == before)
		finding_add(f, "driver", FINDING_OK, "%s", d->version);
}

static void explain_failure(struct findings *f, const struct gpu_trial *t, const char *device)
{
	const char *at = t->why.text;

	finding_add(f, "device", FINDING_ERROR, "%s", t->why.text);
	if (t->rc == -ETIMEDOUT)
		finding_remedy(f, "the driver hangs: see the kernel's messages (dmesg), restart "
				  "the machine, or return it");
	else if (strstr(at, "without CUDA"))
		finding_remedy(f, "use a build with CUDA (make with nvcc in PATH, make bundle), or "
				  "--device cpu");
	else if (strncmp(device, "cuda", 4) == 0)
		finding_remedy(f, "see that nvidia-smi works and shows no errors, then what is "
				  "written above; or take --device cpu or another machine");
	else
		finding_remedy(f, "take another device (skippipe agent --devices), or another "
				  "machine");
}

void gpu_check_trial(struct findings *f, const struct gpu_trial *t, const char *device)
{
	const bool cuda = strncmp(device, "cuda", 4) == 0;

	if (t->rc != 0) {
		explain_failure(f, t, device);
		return;
	}
	if (strncmp(t->device.name, "cpu:plain", 9) == 0) {
		finding_add(f, "device", FINDING_WARNING,
			    "the processor shows no AVX2, so this CPU computes slowly");
		finding_remedy(f, "let the virtual machine pass the host's processor (cpu "
				  "host-passthrough), or take another machine");
	} else if (cuda && t->device.free_bytes < FREE_LITTLE) {
		finding_add(f, "device", FINDING_WARNING, "%.60s: %.1f GiB of its memory are free",
			    t->device.text, (double)t->device.free_bytes / 0x1p30);
		finding_remedy(f, "end the processes that nvidia-smi lists");
	} else if (cuda) {
		finding_add(f, "device", FINDING_OK,
			    "%.100s, %.1f GiB free: a microbatch agrees with the CPU's (gradients "
			    "to %.1g), after %.1f s",
			    t->device.text, (double)t->device.free_bytes / 0x1p30,
			    t->check.gradient_error, t->seconds);
	} else {
		finding_add(f, "device", FINDING_OK, "%.100s: a microbatch has the loss %.3f",
			    t->device.text, t->check.loss);
	}
}

/* ---- several devices ---- */

/* Copies the next name of a list, in which commas separate the names. Moves *at behind the name
 * and its comma. Returns false at the end of the list. */
static bool next_name(const char **at, char name[DEVICE_NAME_SIZE])
{
	const size_t n = strcspn(*at, ",");

	if (!**at)
		return false;
	snprintf(name, DEVICE_NAME_SIZE, "%.*s", (int)n, *at);
	*at += n + ((*at)[n] == ',');
	return true;
}

static bool is_every_gpu(const char *name)
{
	const char *rest = name + sizeof(every) - 1;

	return strncmp(name, every, sizeof(every) - 1) == 0 &&
	       (!*rest || strcmp(rest, ":bf16") == 0);
}

int gpu_check_names(const char *devices, struct error *err)
{
	char name[DEVICE_NAME_SIZE];
	struct device_name ignored;
	int rc = 0;

	while (rc == 0 && next_name(&devices, name))
		rc = is_every_gpu(name) ? 0 : device_name_parse(&ignored, name, err);
	return rc;
}

static int count_gpus(void *context, void *result, struct error *err)
{
	(void)context;
	(void)err;
	*(uint32_t *)result = stage_gpus();
	return 0;
}

static void check_one(struct findings *f, const char *device)
{
	struct gpu_trial trial;

	gpu_try(&trial, device);
	gpu_check_trial(f, &trial, device);
}

/* Tries every GPU. If there is no GPU, tries GPU 0, because the error of this trial says why
 * there is none. */
static void check_every_gpu(struct findings *f, const char *suffix)
{
	char name[DEVICE_NAME_SIZE];
	uint32_t n = 0;

	trial_run(count_gpus, NULL, &n, sizeof(n), LIMIT_S, every, NULL);
	for (uint32_t i = 0; i < (n > 0 ? n : 1); i++) {
		snprintf(name, sizeof(name), "cuda:%u%.8s", i, suffix);
		check_one(f, name);
	}
}

void gpu_check_all(struct findings *f, const char *devices)
{
	char name[DEVICE_NAME_SIZE];

	while (next_name(&devices, name)) {
		if (is_every_gpu(name))
			check_every_gpu(f, name + sizeof(every) - 1);
		else
			check_one(f, name);
	}
}
