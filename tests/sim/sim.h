/* sim.h - a whole run in one process, with a clock and a network that a seed draws.
 *
 * The controller and its agents are the real ones, from their archives. What tells the time, carries messages or
 * works in a thread is replaced when the test is linked: an archive's member that nothing asks for is not pulled
 * in, and the files here define all of what these define.
 *
 *     clock.c    base/clock.h, and the system's sources of chance
 *     network.c  wire/post.h: in memory, with post's own promises (net.h, net_*.c)
 *     train.c    wire/train.h
 *     flip.c     bits that are not as they were meant
 *     threads.c  agent/execution/worker.h and controller/planning/planner.h: done at once, told later
 *     world.c    processes, their turns, what befalls them
 *     sim_test.c seeds, and what must hold after each
 *
 * Nothing is ever waited for: the clock jumps to whoever has something to do next. Every draw comes from one stream,
 * in the order in which things happen; so a seed gives the same run to the last message, and the trace's hash says so.
 * Times called "world" are of the one clock behind all; each process has its own, with an offset, as machines have.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "wire/keys.h"

enum { SIM_AGENTS = 8, SIM_PROCESSES = SIM_AGENTS + 1 /* the controller is the last */ };

/* A process as clock and network see it. */
struct sim_process {
	int64_t clock_offset_us; /* its clock - the world's */
	int64_t wake_us;         /* world: its next turn; INT64_MAX: it is not there */
	int64_t asleep_us;       /* world: it does nothing until then */
	uint64_t life;           /* how often it was started */
};

struct sim {
	struct rng rng;
	int64_t now_us;  /* world */
	int64_t ahead_us, step_us; /* of a job: what the clock has gone on within it, and goes on at each look */
	uint32_t self;   /* the process whose turn it is */
	uint64_t hash;   /* of all that has happened */
	uint64_t delivered; /* messages */
	bool tells;      /* prints what happens */
	struct sim_process processes[SIM_PROCESSES];
};

extern struct sim sim; /* of the run under way: link-time replacements have no other way to it */

static inline int64_t sim_draw(int64_t least, int64_t most) /* uniform in [least, most] */
{
	return least + (int64_t)(rng_uniform(&sim.rng) * (double)(most - least + 1));
}

static inline bool sim_chance(double of)
{
	return rng_uniform(&sim.rng) < of;
}

/* Of the order of `usual`, now and then many times as much: a queue, a lost packet, a busy machine. */
int64_t sim_delay(int64_t usual_us);
/* A line of the trace: into the hash, and printed where that is wanted. */
void sim_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sim_mix(const void *data, size_t size); /* into the hash alone */
/* Process i has something to do at that time. */
void sim_wake(uint32_t i, int64_t at_us);
const char *sim_name(uint32_t process); /* "n03", "controller" */

/* ---- world.c ---- */
/* A process sends a message: what must hold when it does. */
void sim_sends(uint32_t process, const void *data, size_t size);

/* ---- flip.c ---- */
/* Changes a float of a sum, or of a piece of a stage's weights with its hash. False: the message is none. */
bool flip_tensor(void *data, size_t size);

/* ---- network.c ---- */
void network_begin(int64_t usual_us, double loss); /* one way; of messages that may be lost */
/* Nothing goes between two processes until then; what is reliable comes later. */
void network_cut(uint32_t a, uint32_t b, int64_t until_us);
/* All connections between two processes end; they are made anew. */
void network_reset(uint32_t a, uint32_t b);
/* The process is gone, its posts are yet to be closed: silently (the machine), or its connections end at once. */
void network_dies(uint32_t process, bool silently);
/* In the next sum or piece of a stage that comes to the process a bit is another than was meant, and nothing on the way
 * shows it: the sender's memory had it so. */
void network_flip(uint32_t process);

/* ---- threads.c ---- */
void threads_begin(void);
int64_t threads_due_us(uint32_t process); /* world: a job or a plan of its is done; INT64_MAX none */
void threads_pace(uint32_t process, int64_t task_us); /* what a job takes there */

#endif
