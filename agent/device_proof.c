/* device_proof.c - tests a GPU with one microbatch.
 *
 * Without this test, a driver that hangs or a card that computes wrong numbers would be found
 * only after the node got a stage. The test runs in a child process. Therefore the agent survives
 * a crash in the driver's library and can report it.
 */
#include "agent/device_proof.h"

#include <errno.h>
#include <stdint.h>

#include "base/process/trial.h"
#include "model/device_check.h"
#include "model/device_name.h"
#include "model/stage.h"

enum { LIMIT_S = 120 };

static int prove(void *context, void *result, struct error *err)
{
	return device_check(result, context, err);
}

static int ask_compiles(void *context, void *result, struct error *err)
{
	(void)err;
	*(bool *)result = stage_device_compiles(context);
	return 0;
}

bool device_proof_compiles(const char *device)
{
	struct device_name name;
	struct error err;
	bool compiles = false;

	return device_name_parse(&name, device, NULL) == 0 && name.cuda &&
	       trial_run(ask_compiles, (void *)(uintptr_t)device, &compiles, sizeof(compiles),
			 LIMIT_S, device, &err) == 0 &&
	       compiles;
}

int device_proof(const char *device, struct error *err)
{
	struct device_check result;
	struct device_name name;
	struct error why = { "" };
	int rc;

	if (device_name_parse(&name, device, NULL) != 0 || !name.cuda)
		return 0;
	rc = trial_run(prove, (void *)(uintptr_t)device, &result, sizeof(result), LIMIT_S, device,
		       &why);
	if (rc == 0 || rc == -ENODEV || rc == -EINVAL || rc == -ENOTSUP)
		return 0;
	return error_set(err, rc,
			 "%s; this agent did not join. skippipe doctor --device %s says more, and "
			 "--device cpu needs no GPU",
			 why.text, device);
}
