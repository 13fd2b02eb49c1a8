/* hostile.h - an admitted key in other hands: a whole agent, and beside it somebody who uses its sessions.
 *
 * The agent joins and does its work as any other, so that it is given a place; from a signal on a mode's function is
 * called in every turn as well, and sends what it likes, properly sealed. A mode is a line of the table in main.c.
 */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;
struct post;
struct msg;

struct hostile {
	struct agent *agent; /* its inside: agent/state.h */
	uint64_t turns;      /* since the attack began, this one counted */
	uint64_t iteration;  /* for the modes: of what was counted last, */
	uint32_t done;       /* and how much */
	uint64_t next;       /* a number that no message has had yet */
};

struct mode {
	const char *name, *what;
	void (*act)(struct hostile *h, int64_t now_us);
};

/* To the controller, and to another node: with a body of so many floats of one value. Whether it was taken. */
bool hostile_tell(struct hostile *h, struct msg *m, int64_t now_us);
bool hostile_send(struct hostile *h, uint16_t to, const struct msg *m, float value, size_t floats, int64_t now_us);
/* The stage of another, as the plans say; -1 not known. */
int hostile_stage_of(const struct hostile *h, uint16_t node);

/* tensors.c */
void numbers(struct hostile *h, int64_t now_us);
void evaluations(struct hostile *h, int64_t now_us);
void early(struct hostile *h, int64_t now_us);
void announce(struct hostile *h, int64_t now_us);

/* control.c: to the controller. The watcher's key is read from the file that HOSTILE_WATCHER names. */
void contradict(struct hostile *h, int64_t now_us);
void forge(struct hostile *h, int64_t now_us);
void repeat(struct hostile *h, int64_t now_us);
void watch(struct hostile *h, int64_t now_us);

/* announce.c: a message of so many bytes to a peer of the post, of which one chunk comes. Whether it left. */
bool announce_one(struct post *p, uint32_t peer, uint64_t number, uint64_t total, uint32_t chunks, int64_t now_us);

#endif
