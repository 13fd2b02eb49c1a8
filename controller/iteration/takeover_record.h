/* takeover_record.h - the routes of the iteration under way, for a controller that takes the run over: written before
 * agents are told, and read again.
 */
#ifndef CONTROLLER_ITERATION_TAKEOVER_RECORD_H
#define CONTROLLER_ITERATION_TAKEOVER_RECORD_H

#include <stdbool.h>
#include <stdint.h>

struct controller;
struct planned;

struct takeover {
	char *text;              /* as the store has it; NULL */
	uint32_t recorded_first; /* the first attempt that stands there */
	struct planned *plan;    /* the predecessor's; NULL none */
	uint32_t first;          /* its first attempt */
};

/* What a successor must know of the iteration's routes; before agents are told. */
void takeover_record(struct controller *c);
void takeover_read(struct controller *c); /* what the predecessor left; stages and commits are known */
bool takeover_recalls(const struct controller *c); /* not everybody has told it yet what happened */

#endif
