/* device_record.h - the times of a node's device as JSON, in the record, the stream of events and
 * the status. */
#ifndef CONTROLLER_MEMBERS_DEVICE_RECORD_H
#define CONTROLLER_MEMBERS_DEVICE_RECORD_H

#include <jansson.h>

#include "base/error.h"
#include "wire/device_time.h"

/* Returns an object with a number of seconds for each state, such as "busy_s", for the caller to
 * release. */
json_t *device_record_pack(const struct device_time *t);
/* Reads the text of such an object. -EINVAL: the text is no such object, or a time cannot be; *out
 * is unchanged then. */
int device_record_read(struct device_time *out, const char *text, struct error *err);

#endif
