/* picture.h - the members of a run and the links between them, from its record or its controller.
 */
#ifndef DOCTOR_RUN_PICTURE_H
#define DOCTOR_RUN_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

struct picture_node {
	char name[64], place[32], host[64];
	char device[128];
	char address[128]; /* address at which other nodes dial the node; "": unknown */
	char why[96];      /* reason for the node's state */
	unsigned state;    /* enum node_state (wire/names.h) */
	bool has_state;    /* the record or the controller has given the node a state */
};

struct picture_link {
	enum { LINK_UNKNOWN, LINK_WORKS, LINK_BROKEN } state;
	double latency_s; /* time in one direction */
	double bytes_s;   /* bandwidth; 0: not measured */
};

/* A warning, an alert, or a line of an agent's log. */
struct picture_note {
	int32_t node; /* node that the line is about; -1: none */
	bool is_alert;
	uint64_t iteration;
	char text[256];
};

struct picture {
	char version[32];     /* version of the program that started the run; "": unknown */
	uint64_t corpus_hash; /* hash of the corpus; 0: unknown */
	bool is_running;      /* a controller runs */
	/* The run emulates a network, so its links are not those of the machines */
	bool is_emulated;
	uint32_t n;
	struct picture_node *nodes; /* array of n */
	/* N x n links; the link between two nodes is at from * n + to */
	struct picture_link *links;
	LIST(struct picture_note) notes;
};

/* Makes room for n nodes without known properties, and drops all earlier nodes. */
void picture_size(struct picture *p, uint32_t n);
/* Adds a line of the journal. If there are too many lines, the oldest are dropped. */
void picture_add_note(struct picture *p, const struct picture_note *note);
void picture_free(struct picture *p);

/* Names a node: "n03 (gpu-3, eu-west)". Returns out. */
enum { PICTURE_LABEL = 112 };
char *picture_label(const struct picture *p, uint32_t node, char out[PICTURE_LABEL]);

#endif
