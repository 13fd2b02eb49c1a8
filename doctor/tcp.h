/* tcp.h - checks the kernel's settings of TCP and UDP for links with a high bandwidth and a long
 * round trip. */
#ifndef DOCTOR_TCP_H
#define DOCTOR_TCP_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/finding.h"

/* Number of connections to each peer that carry bulk data (agent/agent.c). */
enum { TCP_CONNECTIONS = 8 };

/* In every number, UINT64_MAX means unknown. */
struct tcp {
	/* Smallest, initial and largest buffer of a connection, bytes */
	uint64_t receive[3], send[3];
	uint64_t datagrams_most;      /* largest receive buffer of a UDP socket, bytes */
	bool scales;                  /* window scaling is on, so that windows may exceed 64 KiB */
	bool acknowledges_gaps;       /* selective acknowledgements (SACK) are on */
	bool slows_after_idle;
	bool has_bbr;                   /* this process may use the congestion control BBR */
	uint64_t port_first, port_last; /* range of local ports of outgoing connections */
};

/* The link for which the buffers must suffice: the longest and fastest link that the run will
 * have. */
struct tcp_link {
	double bytes_s, rtt_s;
};

void tcp_look(struct tcp *t, const char *root);
/* Adds findings named "kernel", one for each setting. */
void tcp_check(struct findings *f, const struct tcp *t, const struct tcp_link *link);

#endif
