/* outside.h - checks the addresses at which other machines could reach an agent of this machine. */
#ifndef DOCTOR_OUTSIDE_H
#define DOCTOR_OUTSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/finding.h"
#include "wire/reach.h"

enum { OUTSIDE_OWN = 16, OUTSIDE_PORT = 7701 /* default port of an agent (agent/main.c) */ };

struct outside {
	uint16_t port; /* port at which an agent would listen */
	/* True: the router forwards connections for mapping.outside to this port. */
	bool mapped;
	struct reach_mapping mapping;
	unsigned n_own;
	/* the n_own addresses of this machine's interfaces */
	char own[OUTSIDE_OWN][LINK_ADDRESS_SIZE];
	/* 0: an agent can listen at the port. A negative errno: the reason why an agent cannot
	 * listen there. */
	int bind_error;
};

void outside_look(struct outside *o);
/* Adds the finding "address". */
void outside_check(struct findings *f, const struct outside *o);

#endif
