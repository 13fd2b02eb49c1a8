/* Compares the bytes that a stage needs with the free memory, and allocates them in one piece. */
#include "model/cpu/stage_memory.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/cgroup.h"

int stage_memory_new(void **out, size_t size, size_t most, struct error *err)
{
	size_t room = (size + STAGE_ALIGN - 1) / STAGE_ALIGN * STAGE_ALIGN;
	size_t left = most ? most : memory_usable();
	void *arena = room <= left ? aligned_alloc(STAGE_ALIGN, room) : NULL;

	if (!arena && room <= left)
		return error_set(err, -ENOMEM, "needs %.1f MiB, which the system does not give",
				 (double)room / 0x1p20);
	if (!arena)
		return error_set(err, -ENOMEM, "needs %.1f MiB, but only %.1f MiB are free",
				 (double)room / 0x1p20, (double)left / 0x1p20);
	memset(arena, 0, room);
	*out = arena;
	return 0;
}

void stage_memory_free(void *arena)
{
	free(arena);
}
