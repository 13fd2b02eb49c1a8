/* names.h - the words that stand in the store and in JSON lines for the wire's numbers. */
#ifndef CONTROLLER_NAMES_H
#define CONTROLLER_NAMES_H

#include "wire/msg.h"

/* The number must be one of the enum's. */
const char *phase_name(enum run_phase p);       /* "gathering" */
const char *node_state_name(enum node_state s); /* "absent" */
const char *fault_name(enum fault_kind k);      /* "slow-node" */
const char *note_name(enum note_kind k);        /* "log" */

/* Back again; -1: no such word. */
int phase_named(const char *name);
int node_state_named(const char *name);
int fault_named(const char *name);
int note_named(const char *name);

#endif
