/* Records and plays a controller's messages. A recording shows again exactly the screens that an
 * operator saw, without a controller and at any speed. */
#include "tui/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "wire/msg.h"

enum { HEAD = 12 };

struct record_reader {
	const unsigned char *data;
	size_t size, at;
	bool mapped;
};

struct record_reader *record_open_memory(const void *data, size_t size)
{
	struct record_reader *r = alloc_new(sizeof(*r));

	r->data = data;
	r->size = size;
	return r;
}

void record_close(struct record_reader *r)
{
	if (r && r->mapped)
		munmap((void *)(uintptr_t)r->data, r->size);
	free(r);
}

static uint64_t read_little_endian(const unsigned char *from, int n)
{
	uint64_t v = 0;

	for (int i = n - 1; i >= 0; i--)
		v = v << 8 | from[i];
	return v;
}

/* Limits a time read from the file, so that sums and differences of times cannot overflow. */
static int64_t bounded_time(int64_t at_us)
{
	return at_us < -RECORD_MOST_US ? -RECORD_MOST_US
	       : at_us > RECORD_MOST_US ? RECORD_MOST_US
					: at_us;
}

int record_next_at(const struct record_reader *r, int64_t *at_us)
{
	uint64_t size;

	if (r->size - r->at < HEAD)
		return -ENODATA;
	size = read_little_endian(r->data + r->at, 4);
	if (size > RECORD_MESSAGE_MOST)
		return -EBADMSG;
	if (r->size - r->at - HEAD < size)
		return -ENODATA;
	*at_us = bounded_time((int64_t)read_little_endian(r->data + r->at + 4, 8));
	return 0;
}

int record_next(struct record_reader *r, int64_t *at_us, const void **data, size_t *size)
{
	int rc = record_next_at(r, at_us);

	if (rc != 0)
		return rc;
	*size = (size_t)read_little_endian(r->data + r->at, 4);
	*data = r->data + r->at + HEAD;
	r->at += HEAD + *size;
	return 0;
}

static int refuse_file(const char *path, struct error *err)
{
	return error_set(err, -EINVAL, "%s: not a recording (made by skippipe console --record)",
			 path);
}

/* Checks a recording: decodes the first message. Of each other message, checks only the length. If
 * a killed console left the last message incomplete, this is no error. */
static int check_messages(struct record_reader *r, const char *path, struct error *err)
{
	const void *data;
	struct msg m;
	size_t size;
	int64_t at;
	int rc = record_next(r, &at, &data, &size);

	if (rc == 0)
		rc = msg_decode(&m, data, size);
	if (rc == -EPROTONOSUPPORT)
		return error_set(err, -EINVAL, "%s: recorded by another version of skippipe", path);
	if (rc != 0)
		return refuse_file(path, err);
	msg_clear(&m);
	while ((rc = record_next(r, &at, &data, &size)) == 0)
		;
	if (rc == -EBADMSG)
		return error_set(err, -EINVAL,
				 "%s: damaged at byte %zu: its first %zu bytes can be played", path,
				 r->at, r->at);
	return 0;
}

int record_open(struct record_reader **out, const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), code;
	struct record_reader *r;
	struct stat st;
	void *data;

	if (fd < 0 || fstat(fd, &st) != 0) {
		code = errno;
		if (fd >= 0)
			close(fd);
		return error_set(err, -code, "%s: %s", path, strerror(code));
	}
	if (!S_ISREG(st.st_mode) || st.st_size < HEAD) {
		close(fd);
		return refuse_file(path, err);
	}
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	code = errno;
	close(fd);
	if (data == MAP_FAILED)
		return error_set(err, -code, "%s: %s", path, strerror(code));
	r = record_open_memory(data, (size_t)st.st_size);
	r->mapped = true;
	code = check_messages(r, path, err);
	if (code != 0) {
		record_close(r);
		return code;
	}
	r->at = 0;
	*out = r;
	return 0;
}

int record_write(FILE *to, int64_t at_us, const void *data, size_t size)
{
	unsigned char head[HEAD];

	for (int i = 0; i < 4; i++)
		head[i] = (unsigned char)(size >> 8 * i);
	for (int i = 0; i < 8; i++)
		head[4 + i] = (unsigned char)((uint64_t)at_us >> 8 * i);
	if (fwrite(head, 1, HEAD, to) != HEAD || fwrite(data, 1, size, to) != size)
		return -EIO;
	return 0;
}
