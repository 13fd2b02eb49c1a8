/* device_record.h - the times of a node's device as JSON, in the record, the stream of events and
 * the status. */
#ifndef CONTROLLER_MEMBERS_DEVICE_RECORD_H
#define CONTROLLER_MEMBERS_DEVICE_RECORD_H

#include <jansson.h>

#include "base/error.h"
#include "wire/device_time.h"

/* Returns an object with the seconds that the device spent in each state, such as "busy_s". The
 * caller releases the object. */
json_t *device_record_pack(const struct device_time *t);
/* Reads the text of an object that device_record_pack made. -EINVAL: the text is not such an
 * object, or a time is impossible. After an error *out is unchanged. */
int device_record_read(struct device_time *out, const char *text, struct error *err);

#endif
