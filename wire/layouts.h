/* layouts.h - what each message looks like on the wire: for msg.c, which reads and writes by it.
 *
 * A table a struct names its fields in wire order. A new message is a struct (msg.h), a table and a line in
 * `messages` (layouts.c).
 *
 * Arrays: a u32 count field stands in the struct before its pointer; the count itself is written
 * once, as a field of the ARRAY kind. Two arrays may share a count (a route's nodes and stages).
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
	uint16_t offset;       /* in the struct */
	uint16_t count_offset; /* ARRAY, SHARED: of the u32 count */
	uint32_t most;         /* TEXT: the char array's size; RAW: bytes; ARRAY: elements; U8..U32: largest value, 0 any */
	enum kind of;          /* ARRAY, SHARED of scalars */
	const struct layout *sub; /* ARRAY of structs; NULL: scalars */
};

struct layout {
	const struct field *fields;
	uint16_t n;
	uint16_t size; /* sizeof the struct */
};

struct message {
	enum msg_type type;
	const char *name;
	const struct layout *layout;
	bool body; /* bytes follow the fields */
};

const struct message *layouts_find(enum msg_type type); /* NULL: there is no such */

#endif
