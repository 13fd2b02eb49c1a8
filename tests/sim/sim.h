/* sim.h - a whole run in one process, with a simulated clock and network that depend on a seed.
 *
 * The controller and the agents are the real ones, from their archives. The modules that tell the
 * time, carry messages or work in threads are replaced when the test is linked. The files here
 * define all functions of these modules, so the linker does not take the modules from their
 * archives.
 *
 *     clock.c    base/clock.h, and the system's sources of random numbers
 *     network.c  wire/post.h, in memory, with the promises of its contract (net.h, net_*.c)
 *     train.c    wire/bandwidth/packet_train.h
 *     flip.c     flipped bits in tensors
 *     threads.c  agent/shared/worker.h and controller/planning/planner.h: the work is done
 *                when it is taken or when its result is collected, as the seed decides
 *     world.c    processes, their turns and the main loop (world_private.h)
 *     arguments.c, mishaps.c, checks.c    the run's options, its failures, and its checks
 *     sim_test.c the loop over seeds
 *
 * The test never waits: the clock jumps to the next process that has something to do. All random
 * numbers come from one stream in the order of events. Therefore a seed always gives the same run
 * to the last message, and the hash of the trace proves it. "World" marks times of the simulation's
 * clock. Each process has a clock of its own with an offset, as real machines do.
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
	int64_t clock_offset_us; /* its clock minus the world's */
	int64_t wake_us;         /* world: its next turn; INT64_MAX: it does not run */
	int64_t asleep_us;       /* world: it does nothing until then */
	uint64_t life;           /* how often it was started */
};

struct sim {
	struct rng rng;
	int64_t now_us;  /* world */
	/* In a job: its time minus now_us, and the time that each look at the clock adds. */
	int64_t ahead_us, step_us;
	uint32_t self;      /* the process whose turn it is */
	uint64_t hash;      /* hash of the trace */
	uint64_t delivered; /* messages */
	bool prints;        /* the trace */
	bool has_machines;  /* each process has a machine of its own; false: all share one */
	struct sim_process processes[SIM_PROCESSES];
};

/* The current run. It is global because the functions that replace real modules get no argument for
 * it. */
extern struct sim sim;

/* Returns a uniform number in [min, max]. */
static inline int64_t sim_draw(int64_t min, int64_t max)
{
	return min + (int64_t)(rng_uniform(&sim.rng) * (double)(max - min + 1));
}

/* Returns true with this probability. */
static inline bool sim_chance(double probability)
{
	return rng_uniform(&sim.rng) < probability;
}

/* Draws a delay around `usual_us`, and sometimes a much longer one, as a queue, a lost packet or a
 * busy machine causes. */
int64_t sim_delay(int64_t usual_us);
/* Adds a line to the trace: to its hash, and to the output if the trace is printed. */
void sim_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sim_mix(const void *data, size_t size); /* adds data to the hash only */
/* Gives process i a turn at this time at the latest. */
void sim_wake(uint32_t i, int64_t at_us);
const char *sim_name(uint32_t process); /* "n03", "controller" */

/* ---- checks.c ---- */
/* Checks a message that a process sends. */
void sim_sends(uint32_t process, const void *data, size_t size);

/* ---- flip.c ---- */
/* Flips a bit in a sum, or in a piece of a stage's weights, whose hash it corrects. Returns false
 * if the message is neither. */
bool flip_tensor(void *data, size_t size);

/* ---- network.c ---- */
/* Starts an empty network with a usual delay in one direction and a loss of LOSSY messages. */
void network_begin(int64_t usual_us, double loss);
/* Lets nothing pass between two processes until then. Reliable messages arrive later. */
void network_cut(uint32_t a, uint32_t b, int64_t until_us);
/* Lets only small messages pass from a process to another until then: those of class CONTROL, and
 * small probes. */
void network_narrow(uint32_t from, uint32_t to, int64_t until_us);
/* Ends all connections between two processes. They connect again. */
void network_reset(uint32_t a, uint32_t b);
/* Says how a process dies whose posts are closed next: silently with its machine, or with an end of
 * its connections that the others notice at once. */
void network_dies(uint32_t process, bool silently);
/* Flips a bit in the next sum or piece of a stage that arrives at the process. The message is
 * otherwise correct, as if the bit had flipped in the sender's memory. */
void network_flip(uint32_t process);

/* ---- threads.c ---- */
void threads_begin(void);
/* Returns the time in the simulated world at which a process finishes its next job or plan;
 * INT64_MAX: no process has one. */
int64_t threads_due_us(uint32_t process);
/* Sets the function that gives the usual length of a job that a worker of the process sim.self
 * begins. It is asked when the job begins, because an agent's next job is not known before. */
struct worker;
void threads_pace(int64_t (*job_us)(void *context, const struct worker *w, const void *job),
		  void *context);

#endif
