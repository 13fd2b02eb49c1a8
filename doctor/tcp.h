/* tcp.h - checks the kernel's settings of TCP and UDP for long fat links. */
#ifndef DOCTOR_TCP_H
#define DOCTOR_TCP_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/finding.h"

enum { TCP_CONNECTIONS = 8 /* that carry bulk data to each peer (agent/agent.c) */ };

/* UINT64_MAX in a field: the value is unknown. */
struct tcp {
	/* Smallest, initial and largest buffer of a connection, bytes */
	uint64_t receive[3], send[3];
	uint64_t datagrams_most;      /* largest receive buffer of a UDP socket, bytes */
	bool scales;                  /* windows may be larger than 64 KiB */
	bool acknowledges_gaps;       /* selective acknowledgements (SACK) are on */
	bool slows_after_idle;
	bool has_bbr;                   /* this process may use the congestion control BBR */
	uint64_t port_first, port_last; /* range of local ports of outgoing connections */
};

/* The longest link that the run is expected to have. */
struct tcp_link {
	double bytes_s, rtt_s;
};

void tcp_look(struct tcp *t, const char *root);
/* Adds findings named "kernel", one for each setting. */
void tcp_check(struct findings *f, const struct tcp *t, const struct tcp_link *link);

#endif
