/* tcp.h - checks the kernel's settings of TCP and UDP for long fat links. */
#ifndef DOCTOR_TCP_H
#define DOCTOR_TCP_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/finding.h"

enum { TCP_CONNECTIONS = 8 /* for bulk data, to each peer (agent/agent.c) */ };

/* UINT64_MAX: unknown. */
struct tcp {
	uint64_t receive[3], send[3]; /* least, first and largest buffer of a connection, bytes */
	uint64_t datagrams_most;      /* largest receive buffer of a UDP socket, bytes */
	bool scales;                  /* windows may be larger than 64 KiB */
	bool acknowledges_gaps;       /* SACK */
	bool slows_after_idle;
	bool has_bbr;                   /* this process may use the congestion control BBR */
	uint64_t port_first, port_last; /* of outgoing connections */
};

/* The longest link that is expected. */
struct tcp_link {
	double bytes_s, rtt_s;
};

void tcp_look(struct tcp *t, const char *root);
/* Adds the finding kernel, several times. */
void tcp_check(struct findings *f, const struct tcp *t, const struct tcp_link *link);

#endif
