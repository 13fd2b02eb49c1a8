/* files.c - fetches files from the controller, and sends it files of this node's checkpoints. An
 * agent on an empty machine gets its first weights, its checkpoint and its corpus in this way. */
#include "agent/weights/files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/files/checkpoint.h"

struct files {
	struct tell *tell;
	const char *run_dir; /* folder of the agent's checkpoints; NULL: none */
	struct transfer transfer;
	char scratch[4096]; /* path of the temporary folder; "": no temporary folder was made */
};

struct files *files_new(struct tell *tell, const char *run_dir)
{
	struct files *f = alloc_new(sizeof(*f));

	f->tell = tell;
	f->run_dir = run_dir;
	f->transfer.fd = -1;
	return f;
}

void files_free(struct files *f)
{
	if (!f)
		return;
	transfer_cancel(&f->transfer);
	if (f->scratch[0])
		file_remove_folder(f->scratch);
	free(f);
}

const char *files_folder(struct files *f)
{
	const char *tmp = getenv("TMPDIR");

	if (f->run_dir)
		return f->run_dir;
	if (f->scratch[0])
		return f->scratch;
	snprintf(f->scratch, sizeof(f->scratch), "%s/skippipe-agent-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(f->scratch))
		f->scratch[0] = 0;
	return f->scratch[0] ? f->scratch : NULL;
}

void files_fetch(struct files *f, const struct msg_file_ask *ask, const char *path, int64_t now_us)
{
	log_line(f->tell->log, LOG_INFO, "fetching %s from the controller", path);
	transfer_begin(&f->transfer, ask, path, now_us);
}

const struct transfer *files_fetched(const struct files *f)
{
	return &f->transfer;
}

void files_cancel(struct files *f)
{
	transfer_cancel(&f->transfer);
}

void files_part_arrived(struct files *f, const struct msg *m, int64_t now_us)
{
	if (!transfer_take(&f->transfer, m, now_us))
		f->tell->tally.dropped++;
}

void files_turn(struct files *f, int64_t now_us)
{
	struct msg m = { .type = MSG_FILE_ASK };

	while (transfer_next(&f->transfer, &m.u.file_ask, now_us))
		tell_controller(f->tell, &m, POST_RELIABLE, now_us);
}

int64_t files_deadline_us(const struct files *f)
{
	return transfer_deadline_us(&f->transfer);
}

void files_asked(struct files *f, const struct msg_file_ask *ask, int64_t now_us)
{
	char path[4096];
	void *body = alloc_new(MSG_FILE_BYTES);
	struct msg m;

	if (ask->kind == FILE_STAGE && f->run_dir &&
	    checkpoint_stage_path(path, sizeof(path), f->run_dir, ask->index, ask->iteration) == 0)
		transfer_answer(ask, path, &m, body);
	else
		transfer_refuse(ask, "this node keeps no such file", &m);
	tell_controller(f->tell, &m, POST_WEIGHTS, now_us);
	free(body);
}
