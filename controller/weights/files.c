/* files.c - sends agents the files that their machines lack.
 *
 * An agent requests a file in parts, one after another. A slow link therefore delays only its own
 * agent, and the controller stores no state of transfers. While a node requests parts, it does not
 * count as late. */
#include "controller/weights/files.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "controller/members/admission.h"
#include "controller/members/member.h"
#include "controller/weights/backups.h"
#include "model/files/checkpoint.h"
#include "wire/transfer.h"

enum {
	PATH = 4096,
	/* Limit of the bytes that the controller has sent to one agent and that are not
	 * acknowledged yet. An agent requests half as many bytes at once */
	UNDER_WAY_BYTES = 8 << 20
};

bool files_has_stage(const struct backups *backups, uint64_t iteration, int stage)
{
	char path[PATH];

	return checkpoint_stage_path(path, sizeof(path), backups->run->options.run_dir,
				     (uint32_t)stage, iteration) == 0 &&
	       (access(path, R_OK) == 0 || offsite_has_store(backups));
}

/* Writes the path of the requested file. Returns false if agents may not read this file. */
static bool find_path(const struct run *run, const struct msg_file_ask *ask, char path[PATH])
{
	const struct options_training *o = &run->options.training;

	if (ask->kind == FILE_STAGE)
		return ask->index < run->training.model.n_stages &&
		       checkpoint_stage_path(path, PATH, run->options.run_dir, ask->index,
					     ask->iteration) == 0;
	return ask->index < o->n_corpus &&
	       snprintf(path, PATH, "%s", o->corpus[ask->index]) < PATH;
}

/* Returns true if the controller is still fetching the file from the store. In that case the
 * agent will repeat its request. Otherwise fills in the answer. */
static bool fetch(struct backups *backups, struct member *m, const struct msg_file_ask *ask,
		  struct msg *part)
{
	const char *reason = "";

	if (offsite_fetch(backups, ask->iteration, ask->index, &reason) == -EAGAIN) {
		m->assigned.at_us = backups->run->now_us;
		backups->run->progress++;
		return true;
	}
	transfer_refuse(ask, reason, part);
	return false;
}

void files_asked(struct backups *backups, struct member *m, const struct msg_file_ask *ask)
{
	struct post_peer_info info = { .retained_bytes = 0 };
	char path[PATH];
	struct msg part;
	void *body;

	if (post_peer(backups->run->post, m->peer, &info) == 0 &&
	    info.retained_bytes > UNDER_WAY_BYTES) {
		admission_stray(backups->run, m, "requests more of a file than it receives");
		return;
	}
	body = alloc_new(MSG_FILE_BYTES);
	if (!find_path(backups->run, ask, path)) {
		transfer_refuse(ask, "the controller has no such file", &part);
	} else if (ask->kind == FILE_STAGE && ask->iteration > 0 && access(path, R_OK) != 0 &&
		   offsite_has_store(backups)) {
		if (fetch(backups, m, ask, &part)) {
			free(body);
			return;
		}
	} else {
		transfer_answer(ask, path, &part, body);
	}
	if (member_send(backups->run, m, &part) == 0 && part.body_size > 0) {
		m->assigned.at_us = backups->run->now_us;
		backups->run->progress++;
	}
	free(body);
}
