/* list.h - arrays that grow. */
#ifndef CONTROLLER_LIST_H
#define CONTROLLER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for one more element of `size` bytes in an array that holds n of *room. list: the address of
 * the array's pointer. False when memory is out: then nothing changed. */
bool list_grow(void *list, uint32_t n, uint32_t *room, size_t size);

#endif
