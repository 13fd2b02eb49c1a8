/* device_name.h - names of devices, as options request them and as reports print them.
 *
 *     cpu[:SET][:bf16]    SET is the instruction set: plain (x86-64), v3 (AVX2), v4 (AVX-512), amx
 *                         (for bf16); without it the best that the machine has
 *     cuda[:N][:bf16]     the GPU's number; without it 0
 *     pretend             computes nothing: for rehearsals
 */
#ifndef MODEL_DEVICE_NAME_H
#define MODEL_DEVICE_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { DEVICE_NAME_SIZE = 32 };

struct device_name {
	bool cuda, bf16, pretend;
	uint32_t number; /* number of a GPU */
	char set[8];     /* instruction set of a CPU; "": the best that the machine has */
};

/* Reads a name; NULL is "cpu". -EINVAL: the text is not a name. */
int device_name_parse(struct device_name *out, const char *text, struct error *err);
/* Prints the name in the form that reports use. */
void device_name_print(const struct device_name *n, char text[DEVICE_NAME_SIZE]);
/* Compares the text of two devices (struct stage_device, stage.h). Returns true if they are equal,
 * apart from the number of a GPU. */
bool device_texts_alike(const char *a, const char *b);

#endif
