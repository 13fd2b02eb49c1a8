/* out.c - checks the place to which a verb writes. */
#include "model/program/out.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"

static const char index_name[] = "model.safetensors.index.json";

/* ---- folders of models ---- */

/* Locks the folder itself, so that no lock file stays there. On a file system without such locks,
 * no lock is taken. */
static int lock_folder(struct out_place *p, const char *folder, struct error *err)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return error_set(err, -errno, "%s: %s", folder, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		close(fd);
		return error_set(err, -EBUSY,
				 "%s: another process is writing a model there: choose another "
				 "folder",
				 folder);
	}
	p->lock = fd;
	return 0;
}

static int check_room(struct out_place *p, const struct options *o, enum model_kind kind,
		      struct error *err)
{
	bool ours = kind == MODEL_CHECKPOINT;
	enum model_kind there;
	int rc = model_folder_kind(&there, o->out, err);

	if (rc)
		return rc;
	if (there != MODEL_NONE && there != kind)
		return error_set(err, -EEXIST,
				 "%s: there is a %s already, and a folder holds one model: choose "
				 "another folder",
				 o->out,
				 ours ? "Hugging Face model (config.json)"
				      : "checkpoint (manifest.json)");
	if (!ours && file_exists(o->out, index_name))
		return error_set(err, -EEXIST,
				 "%s: %s there names the weights of another model: choose another "
				 "folder",
				 o->out, index_name);
	if (!ours && file_exists(o->out, "model.safetensors"))
		there = kind;
	if (there == MODEL_NONE || (o->from && file_is_same(o->from, o->out)))
		return 0;
	p->replaces = o->force;
	if (o->force)
		return 0;
	return error_set(err, -EEXIST,
			 "%s: there is a %s already: choose another folder, or --force to replace "
			 "it",
			 o->out, ours ? "checkpoint" : "model");
}

int out_claim(struct out_place *p, const struct options *o, enum model_kind kind, struct error *err)
{
	int rc;

	*p = OUT_PLACE_NONE;
	rc = file_make_writable_folder(o->out, err);
	if (!rc)
		rc = lock_folder(p, o->out, err);
	return rc ? rc : check_room(p, o, kind, err);
}

void out_release(struct out_place *p)
{
	if (p->lock >= 0)
		close(p->lock);
}

/* ---- files ---- */

int out_refuse_existing(const struct options *o, struct error *err)
{
	if (o->force || !file_would_replace(o->out))
		return 0;
	return error_set(err, -EEXIST,
			 "%s: there is a file already: choose another name, or --force to replace "
			 "it",
			 o->out);
}
