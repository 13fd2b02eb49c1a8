/* picture.h - what the checks know of a run: its nodes, the links between them, and the journal.
 * This information comes from the record or from the controller of the run. */
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
	/* False: neither the record nor the controller gives a state of the node. */
	bool has_state;
};

struct picture_link {
	enum { LINK_UNKNOWN, LINK_WORKS, LINK_BROKEN } state;
	double latency_s; /* latency in one direction, s */
	double bytes_s;   /* bandwidth, bytes/s; 0: not measured */
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
	bool is_running;      /* true: a controller of the run is running now */
	/* The run emulates a slow network, so its links say nothing about the machines. */
	bool is_emulated;
	uint32_t n;
	struct picture_node *nodes; /* array of n */
	/* Array of n * n links. The link from node a to node b has the index a * n + b. */
	struct picture_link *links;
	LIST(struct picture_note) notes;
};

/* Makes room for n nodes, of which nothing is known yet. All former nodes are dropped. */
void picture_size(struct picture *p, uint32_t n);
/* Adds a line of the journal. If there are too many lines, drops the oldest line. */
void picture_add_note(struct picture *p, const struct picture_note *note);
void picture_free(struct picture *p);

/* Writes the label of a node, such as "n03 (gpu-3, eu-west)", to `out` and returns it. */
enum { PICTURE_LABEL = 112 };
char *picture_label(const struct picture *p, uint32_t node, char out[PICTURE_LABEL]);

#endif
