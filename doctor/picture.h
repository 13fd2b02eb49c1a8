/* picture.h - the members of a run and the links between them, from its record or its controller.
 */
#ifndef DOCTOR_PICTURE_H
#define DOCTOR_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

struct picture_node {
	char name[64], place[32], host[64];
	char device[128];
	char address[128]; /* where other nodes dial it; "": unknown */
	char why[96];      /* reason for its state */
	unsigned state;    /* enum node_state (wire/names.h) */
	bool has_state;    /* the run has begun to use the node */
};

struct picture_link {
	enum { LINK_UNKNOWN, LINK_WORKS, LINK_BROKEN } state;
	double latency_s; /* one way */
	double bytes_s;   /* 0: not measured */
};

/* A warning, an alert, or a line of an agent's log. */
struct picture_note {
	int32_t node; /* -1: none */
	bool is_alert;
	uint64_t iteration;
	char text[256];
};

struct picture {
	char version[32];     /* of the program that started the run; "": unknown */
	uint64_t corpus_hash; /* 0: unknown */
	bool is_running;      /* a controller runs */
	bool is_emulated;     /* its network is not the machines' */
	uint32_t n;
	struct picture_node *nodes; /* (n) */
	struct picture_link *links; /* (n, n), from * n + to */
	LIST(struct picture_note) notes;
};

/* Makes room for n nodes, all unknown, and drops those that were there. */
void picture_size(struct picture *p, uint32_t n);
void picture_free(struct picture *p);

/* Names a node: "n03 (gpu-3, eu-west)". Returns out. */
enum { PICTURE_LABEL = 112 };
char *picture_label(const struct picture *p, uint32_t node, char out[PICTURE_LABEL]);

#endif
