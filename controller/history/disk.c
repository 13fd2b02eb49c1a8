/* disk.c - a disk that others have filled: the run waits, and goes on by itself.
 *
 * The store holds some of the disk back (store_reserve). What must be written while there is no
 * room goes there: an iteration under way is committed, what agents, operators and the journal say
 * is kept. The next iteration does not begin before there is room for the reserve again. Where
 * others have taken that room too a commit waits, and is tried again until it can be written:
 * nothing was announced, and agents wait for it with their sums.
 */
#include "controller/history/disk.h"

#include <errno.h>

#include "controller/controller.h"
#include "controller/history/record.h"
#include "controller/operator/journal.h"

enum { LOOK_EVERY_US = 1000000, SAY_EVERY_US = 60000000 };

bool disk_full(const struct controller *c)
{
	return c->disk.full;
}

static void say_full(struct controller *c)
{
	c->disk.next_said_us = c->now_us + SAY_EVERY_US;
	note(c, NOTE_ALERT, -1, 0, "the disk is full: the run waits for %d MiB in %.110s",
	     STORE_RESERVE >> 20, c->options.run_dir);
	record_disk(c);
}

static void now_full(struct controller *c)
{
	if (c->disk.full)
		return;
	c->disk.full = true;
	c->disk.since_us = c->now_us;
	say_full(c);
}

void disk_refused(struct controller *c)
{
	c->disk.commit_waits = true;
	now_full(c);
}

void disk_turn(struct controller *c)
{
	struct error err = { "" };
	int rc;

	c->disk.room = false;
	if ((store_reserved(c->store) && !c->disk.full) || c->now_us < c->disk.next_look_us)
		return;
	c->disk.next_look_us = c->now_us + LOOK_EVERY_US;
	rc = store_reserve(c->store, &err);
	if (rc == -ENOSPC) {
		now_full(c);
		if (c->now_us >= c->disk.next_said_us)
			say_full(c);
	} else if (rc != 0 && !c->disk.warned) { /* it is done without */
		c->disk.warned = true;
		note(c, NOTE_WARNING, -1, 0, "%.180s", err.text);
	}
	c->disk.room = rc != -ENOSPC;
	c->requests.look_at_sums = c->requests.look_at_sums || c->disk.commit_waits;
	c->disk.commit_waits = false;
}

void disk_go_on(struct controller *c)
{
	if (!c->disk.full || !c->disk.room || c->disk.commit_waits)
		return;
	c->disk.full = false;
	note(c, NOTE_EVENT, -1, 0, "there is room on the disk again: the run goes on after %.0f s",
	     (double)(c->now_us - c->disk.since_us) * 1e-6);
	record_disk(c);
}
