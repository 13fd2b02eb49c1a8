/* journal.h - the journal: a line is told to consoles, stored, logged, and kept for consoles that come later. */
#ifndef CONTROLLER_OPERATOR_JOURNAL_H
#define CONTROLLER_OPERATOR_JOURNAL_H

#include <stdint.h>

#include "wire/msg.h"

struct controller;

/* A line of the journal: told, stored, kept. Returns its id. */
uint64_t note(struct controller *c, enum note_kind kind, int node, char mark,
	      const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
