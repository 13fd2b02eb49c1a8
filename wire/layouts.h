/* layouts.h - the layout of each message on the wire. msg.c reads and writes messages by this
 * layout.
 *
 * Each struct of msg.h has a table of its fields in the order on the wire (layouts.c). A struct
 * with an array also has a u32 field with the number of elements. On the wire this count precedes
 * the elements. Two arrays may share a count, as the nodes and stages of a route do. In this case
 * the first array is of kind ARRAY, and the second is of kind SHARED.
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
	/* Limit of the field. For TEXT, the size of the char array; for RAW, the number of bytes;
	 * for ARRAY, the largest number of elements. For U8, U16 and U32, the largest value; 0:
	 * any value. */
	uint32_t most;
	enum kind of; /* kind of the elements, if they are scalars */
	/* Layout of the elements, if they are structs; NULL: they are scalars. */
	const struct layout *sub;
	/* ARRAY, SHARED. true: the elements lie in the struct itself, which has room for `most`.
	 * false: the struct has a pointer to them. */
	bool inside;
};

struct layout {
	const struct field *fields;
	uint16_t n;
	uint16_t size; /* size of the message's struct in bytes */
};

struct message {
	enum msg_type type;
	const char *name;
	const struct layout *layout;
	bool body; /* a body of any length follows the fields */
};

const struct message *layouts_find(enum msg_type type); /* returns NULL if the type is unknown */

#endif
