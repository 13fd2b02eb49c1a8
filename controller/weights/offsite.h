/* offsite.h - brings the agents' files of a checkpoint to this machine, and from here to a store
 * off the machine (--checkpoint-to). Fetches them from the store for agents that lack them.
 *
 * Training never waits for this: files are collected part by part, and a thread hashes them and
 * runs the store's command. */
#ifndef CONTROLLER_WEIGHTS_OFFSITE_H
#define CONTROLLER_WEIGHTS_OFFSITE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct backups;
struct member;
struct offsite; /* opaque */

struct offsite *offsite_new(void);    /* offsite_free */
void offsite_free(struct offsite *o); /* ends the store's command; NULL is allowed */

/* Collects, hashes and stores the newest complete checkpoint if --checkpoint-to is set, by small
 * steps. It also looks for the request of
 * `skippipe export`, the file RUN-DIR/collect, and collects the newest checkpoint for it. */
void offsite_turn(struct backups *backups);
void offsite_part(struct backups *backups, struct member *m, const struct msg *part);
/* Collects the newest complete checkpoint, of the last commit. To be called again while the answer
 * is OFFSITE_COMING. */
enum offsite_files { OFFSITE_HERE, OFFSITE_COMING, OFFSITE_MISSING };
enum offsite_files offsite_bring(struct backups *backups);
/* Returns true while the end of the run should wait for the last checkpoint to be stored, and says
 * so in the journal once. */
bool offsite_awaited(struct backups *backups);
/* Returns true while skippipe export waits for a checkpoint, which is then not removed. */
bool offsite_asked(const struct backups *backups);
/* Returns true if there is a store, which may have files that no machine has. */
bool offsite_has_store(const struct backups *backups);
/* Fetches a stage's file of a recorded checkpoint from the store to the run folder. -EAGAIN: it is
 * under way. -ENOENT: it failed, for *reason; the next call tries again. */
int offsite_fetch(struct backups *backups, uint64_t iteration, uint32_t stage,
		  const char **reason);

#endif
