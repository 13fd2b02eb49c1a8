/* layouts.h - the layout of each message on the wire. msg.c reads and writes messages by it.
 *
 * Each struct of msg.h has a table of its fields in wire order (layouts.c). The struct of an array
 * has a u32 count before its pointer or elements. On the wire the count precedes the elements. Two
 * arrays may share a count (a route's nodes and stages): the first is ARRAY, the second SHARED.
 */
#ifndef WIRE_LAYOUTS_H
#define WIRE_LAYOUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

enum kind { U8, U16, U32, U64, F32, F64, TEXT, RAW, ARRAY, SHARED };

struct layout;

struct field {
	enum kind kind;
	uint16_t offset;       /* offset of the field in its struct */
	uint16_t count_offset; /* ARRAY, SHARED: offset of the array's u32 count */
	/* TEXT: size of the char array; RAW: bytes; ARRAY: limit of elements; U8..U32: largest
	 * value, 0: any. */
	uint32_t most;
	enum kind of; /* ARRAY, SHARED of scalars: kind of the elements */
	/* ARRAY of structs: layout of the elements; NULL: the elements are scalars, of kind
	 * `of`. */
	const struct layout *sub;
	bool inside;           /* ARRAY, SHARED: true: the struct itself contains room for `most`
				* elements; false: the struct has a pointer to the elements */
};

struct layout {
	const struct field *fields;
	uint16_t n;
	uint16_t size; /* sizeof the message's struct */
};

struct message {
	enum msg_type type;
	const char *name;
	const struct layout *layout;
	bool body; /* bytes of a body follow the fields */
};

const struct message *layouts_find(enum msg_type type); /* returns NULL if the type is unknown */

#endif
