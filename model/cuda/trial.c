/* Names of the options that are off until they have been measured on a card. */
#include "model/cuda/trial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int trial_read(unsigned *out, struct error *err)
{
	static const char *const names[] = { "logits", "attention" };
	const char *text = getenv("SKIPPIPE_GPU_TRY");
	unsigned set = 0;

	for (size_t n; text && *text; text += n + (text[n] == ',')) {
		size_t i = 0, count = sizeof(names) / sizeof(names[0]);

		n = strcspn(text, ",");
		while (i < count && (strlen(names[i]) != n || strncmp(text, names[i], n) != 0))
			i++;
		if (i == count)
			return error_set(err, -EINVAL,
					 "SKIPPIPE_GPU_TRY: expected logits or attention, got "
					 "\"%.*s\"",
					 (int)(n < 40 ? n : 40), text);
		set |= 1u << i;
	}
	*out = set;
	return 0;
}
