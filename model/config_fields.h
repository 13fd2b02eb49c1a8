/* config_fields.h - a table with a row for each field of a model's config and hyperparameters, used
 * to check ranges, read and print. Private to model/. */
#ifndef MODEL_CONFIG_FIELDS_H
#define MODEL_CONFIG_FIELDS_H

#include "model/config.h"

/* Types of fields. KIND_LAYERS: struct stage_layers; field_value returns its number of stages. */
enum kind { KIND_U32, KIND_FLOAT, KIND_BOOL, KIND_NAME, KIND_LAYERS };

struct field {
	const char *name;
	enum kind kind;
	size_t offset;
	double low, high; /* range of allowed values, both ends included */
	bool optional;    /* if the key is missing, the value is 0; a value of 0 is not printed */
	/* KIND_NAME: the names of the values 0 .. high, which are stored as uint32_t. */
	const char *const *names;
};

struct fields {
	const struct field *of;
	size_t n;
};

extern const struct fields model_fields, hyper_fields;

/* Returns the last part of the field's name, without the name of the enclosing struct. */
const char *field_name(const struct field *f);
double field_value(const struct field *f, const void *object);
/* Returns the number with the fewest digits that reads back as the same float. */
double model_shortest(float v);

#endif
