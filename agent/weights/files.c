/* files.c - fetches files from the controller, and sends it files of this node's checkpoints. An
 * agent on an empty machine gets its first weights, its checkpoint and its corpus in this way. */
#include "agent/weights/files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "base/alloc.h"
#include "base/file.h"
#include "model/files/checkpoint.h"

struct files {
	struct transfer transfer;
	char scratch[4096]; /* path of the temporary folder; "": none was made */
};

struct files *files_new(void)
{
	struct files *f = alloc_new(sizeof(*f));

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

const char *files_folder(struct agent *a)
{
	struct files *f = a->modules.files;
	const char *tmp = getenv("TMPDIR");

	if (a->options.run_dir)
		return a->options.run_dir;
	if (f->scratch[0])
		return f->scratch;
	snprintf(f->scratch, sizeof(f->scratch), "%s/skippipe-agent-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(f->scratch))
		f->scratch[0] = 0;
	return f->scratch[0] ? f->scratch : NULL;
}

void files_fetch(struct agent *a, const struct msg_file_ask *ask, const char *path, int64_t now_us)
{
	log_line(a->tell.log, LOG_INFO, "fetching %s from the controller", path);
	transfer_begin(&a->modules.files->transfer, ask, path, now_us);
}

const struct transfer *files_fetched(const struct agent *a)
{
	return &a->modules.files->transfer;
}

void files_cancel(struct agent *a)
{
	transfer_cancel(&a->modules.files->transfer);
}

void files_part_arrived(struct agent *a, const struct msg *m, int64_t now_us)
{
	if (!transfer_take(&a->modules.files->transfer, m, now_us))
		a->tell.tally.dropped++;
}

void files_turn(struct agent *a, int64_t now_us)
{
	struct msg m = { .type = MSG_FILE_ASK };

	while (transfer_next(&a->modules.files->transfer, &m.u.file_ask, now_us))
		tell_controller(&a->tell, &m, POST_RELIABLE, now_us);
}

int64_t files_deadline_us(const struct agent *a)
{
	return transfer_deadline_us(&a->modules.files->transfer);
}

void files_asked(struct agent *a, const struct msg_file_ask *ask, int64_t now_us)
{
	char path[4096];
	void *body = alloc_new(MSG_FILE_BYTES);
	struct msg m;

	if (ask->kind == FILE_STAGE && a->options.run_dir &&
	    checkpoint_stage_path(path, sizeof(path), a->options.run_dir, ask->index,
				  ask->iteration) == 0)
		transfer_answer(ask, path, &m, body);
	else
		transfer_refuse(ask, "this node keeps no such file", &m);
	tell_controller(&a->tell, &m, POST_WEIGHTS, now_us);
	free(body);
}
