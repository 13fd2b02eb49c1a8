/* clock.c - the simulated clock and the source of random numbers. They replace base/clock.c and
 * functions of the system, so that a run depends only on its seed. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/network/processor_time.h"
#include "base/clock.h"
#include "tests/sim/sim.h"

struct sim sim;

enum { WALL_US = 1700000000 };

/* During a job each call advances the clock, so that the job seems to take time. */
int64_t clock_monotonic_us(void)
{
	int64_t at_us = sim.now_us + sim.ahead_us + sim.processes[sim.self].clock_offset_us;

	sim.ahead_us += sim.step_us;
	return at_us;
}

int64_t clock_wall_us(void)
{
	return (int64_t)WALL_US * 1000000 + sim.now_us;
}

/* Returns 0, so that this machine's quota does not change simulated measurements. */
int64_t clock_process_us(void)
{
	return 0;
}

/* Returns zeros: all agents share one process, and real processor times would differ on each
 * machine. */
struct processor_time processor_time_read(const char *tasks)
{
	(void)tasks;
	return (struct processor_time){ 0, 0 };
}

ssize_t getrandom(void *to, size_t size, unsigned flags)
{
	uint8_t *bytes = to;

	(void)flags;
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)rng_below(&sim.rng, 256);
	return (ssize_t)size;
}

int gethostname(char *name, size_t size)
{
	snprintf(name, size, "%s", sim.has_machines ? sim_name(sim.self) : "machine");
	return 0;
}

/* Returns an id that differs for each start of a process. */
pid_t getpid(void)
{
	return (pid_t)(1000 + sim.self + 100 * sim.processes[sim.self].life);
}

int64_t sim_delay(int64_t usual_us)
{
	int64_t us = sim_draw(usual_us / 2, usual_us * 3 / 2);

	if (sim_chance(0.02))
		us += sim_draw(usual_us, usual_us * 20);
	return us;
}

static void mix_word(uint64_t word)
{
	sim.hash = (sim.hash ^ word) * UINT64_C(1099511628211);
	sim.hash ^= sim.hash >> 32;
}

/* Hashes with FNV-1a over words of eight bytes. The low bits of a product do not depend on the high
 * bits of its factors. Therefore the high bits are folded into the low bits after each word. */
void sim_mix(const void *data, size_t size)
{
	const uint8_t *bytes = data;
	uint64_t word;

	for (; size >= sizeof(word); size -= sizeof(word), bytes += sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		mix_word(word);
	}
	word = 0;
	memcpy(&word, bytes, size);
	if (size > 0)
		mix_word(word);
}

void sim_note(const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	sim_mix(&sim.now_us, sizeof(sim.now_us));
	sim_mix(text, strlen(text));
	if (sim.prints)
		printf("%12.6f %04x %s\n", (double)sim.now_us * 1e-6,
		       (unsigned)(sim.hash & 0xffff), text);
}

void sim_wake(uint32_t i, int64_t at_us)
{
	struct sim_process *p = &sim.processes[i];

	if (p->wake_us != INT64_MAX && at_us < p->wake_us)
		p->wake_us = at_us;
}

const char *sim_name(uint32_t process)
{
	static const char *const names[SIM_PROCESSES] = { "n00", "n01", "n02", "n03", "n04",
							  "n05", "n06", "n07", "controller" };

	return names[process];
}
