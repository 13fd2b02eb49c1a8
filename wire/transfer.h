/* transfer.h - carries files between controller and agents in parts: MSG_FILE_ASK and
 * MSG_FILE_PART.
 *
 * The receiver requests several parts ahead. The parts arrive in order, because all their
 * messages have the same class. A part is missing if the sender restarts, or drops an answer for
 * lack of room. If a part does not arrive in time, the receiver requests this part and all later
 * parts again. The caller sends the messages. The caller also checks the hash of the whole file,
 * which this module does not know.
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
	TRANSFER_FAILED /* the transfer has failed, for the reason in `reason` */
};

/* A file that is being received. A zeroed struct with fd -1 is idle. */
struct transfer {
	enum transfer_state state;
	struct msg_file_ask ask; /* the request; its fields identify the file */
	/* `aside`: temporary path, used until the file is complete. */
	char path[4096], aside[FILE_ASIDE];
	char reason[192];
	int fd; /* descriptor of the temporary file; -1: none */
	/* Bytes received so far, bytes requested so far, and size of the whole file (0:
	 * unknown). */
	uint64_t have, asked, total;
	int64_t modified_us;
	int64_t heard_us;
};

/* Begins to receive a file. When the received file is complete, it replaces the file at path.
 * After this call the state is TRANSFER_RUNNING, or TRANSFER_FAILED if the file cannot be
 * written. */
void transfer_begin(struct transfer *t, const struct msg_file_ask *ask, const char *path,
		    int64_t now_us);
/* Ends the transfer. Removes the temporary file if the file is incomplete. */
void transfer_cancel(struct transfer *t);
/* Gives the next request that the caller must send. Returns false if there is no request to send
 * now. */
bool transfer_next(struct transfer *t, struct msg_file_ask *ask, int64_t now_us);
/* Handles a MSG_FILE_PART with its body. Returns false if the part belongs to another file. */
bool transfer_take(struct transfer *t, const struct msg *m, int64_t now_us);
/* Returns the time at which to call transfer_next again. */
int64_t transfer_deadline_us(const struct transfer *t);

/* Fills *m with the answer to a request, from the file at path. body: room for MSG_FILE_BYTES
 * bytes. */
void transfer_answer(const struct msg_file_ask *ask, const char *path, struct msg *m, void *body);
/* Fills *m with the answer that the file cannot be sent, for the reason `why`. */
void transfer_refuse(const struct msg_file_ask *ask, const char *why, struct msg *m);

#endif
