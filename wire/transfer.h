/* transfer.h - carries files between controller and agents in parts: MSG_FILE_ASK and
 * MSG_FILE_PART.
 *
 * The receiver requests some parts ahead and gets them in order, because both ends use one class of
 * messages. A new process at the other end, or an answer that was dropped for lack of room, leaves
 * a gap. A part that does not arrive within the patience is requested again, with all that follow.
 * The caller sends the messages. It compares the hash of the whole file, which this module does not
 * know.
 */
#ifndef WIRE_TRANSFER_H
#define WIRE_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"
#include "wire/msg.h"

enum transfer_state {
	TRANSFER_IDLE,
	TRANSFER_RUNNING,
	TRANSFER_DONE,  /* the file is complete at `path` */
	TRANSFER_FAILED /* the transfer has failed, for `reason` */
};

/* A file that is being received. A zeroed struct with fd -1 is idle. */
struct transfer {
	enum transfer_state state;
	struct msg_file_ask ask;        /* the request, which names the file */
	char path[4096], aside[FILE_ASIDE]; /* `aside`: temporary path until the file is complete */
	char reason[192];
	int fd; /* descriptor of the temporary file; -1: none */
	/* Bytes received, bytes requested, and bytes of the whole file; total 0: unknown. */
	uint64_t have, asked, total;
	int64_t modified_us;
	int64_t heard_us;
};

/* Begins to receive a file. When complete, it replaces the file at path. The state is RUNNING, or
 * FAILED if the file cannot be written. */
void transfer_begin(struct transfer *t, const struct msg_file_ask *ask, const char *path,
		    int64_t now_us);
/* Ends the transfer, and removes an incomplete file. */
void transfer_cancel(struct transfer *t);
/* Gives the next request to send. Returns false if there is none now. */
bool transfer_next(struct transfer *t, struct msg_file_ask *ask, int64_t now_us);
/* Takes a MSG_FILE_PART with its body. Returns false if the part is not of this file. */
bool transfer_take(struct transfer *t, const struct msg *m, int64_t now_us);
/* Returns when a request is next repeated. */
int64_t transfer_deadline_us(const struct transfer *t);

/* Fills the answer to a request from the file at path. body: room for MSG_FILE_BYTES. */
void transfer_answer(const struct msg_file_ask *ask, const char *path, struct msg *m, void *body);
/* Fills the answer that the file cannot be sent. */
void transfer_refuse(const struct msg_file_ask *ask, const char *why, struct msg *m);

#endif
