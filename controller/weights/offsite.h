/* offsite.h - collects the agents' files of a checkpoint on this machine, and copies them from this
 * machine to a store on another machine (--checkpoint-to). Fetches files from the store for agents
 * that lack them.
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

struct offsite *offsite_new(void);    /* freed with offsite_free */
void offsite_free(struct offsite *o); /* ends the store's command, and frees o, which may be NULL */

/* If --checkpoint-to is set, collects, hashes and stores the newest complete checkpoint in small
 * steps. Also collects the checkpoint that `skippipe export` requests with the file
 * RUN-DIR/collect. */
void offsite_turn(struct backups *backups);
void offsite_part(struct backups *backups, struct member *m, const struct msg *part);
/* Collects the newest complete checkpoint, which must be of the last commit. Must be called again
 * as long as it returns OFFSITE_COMING. */
enum offsite_files { OFFSITE_HERE, OFFSITE_COMING, OFFSITE_MISSING };
enum offsite_files offsite_bring(struct backups *backups);
/* Returns true while the end of the run should wait until the last checkpoint is stored. Reports
 * this in the journal once. */
bool offsite_awaited(struct backups *backups);
/* Returns true while skippipe export waits for a checkpoint. During this time no agent may remove
 * the checkpoint. */
bool offsite_asked(const struct backups *backups);
/* Returns true if the run has a store (--checkpoint-to). The store may have files that no machine
 * has. */
bool offsite_has_store(const struct backups *backups);
/* Fetches a stage's file of a recorded checkpoint from the store to the run folder. -EAGAIN: the
 * fetch is under way. -ENOENT: the fetch failed, and *reason says why; the next call tries
 * again. */
int offsite_fetch(struct backups *backups, uint64_t iteration, uint32_t stage,
		  const char **reason);

#endif
