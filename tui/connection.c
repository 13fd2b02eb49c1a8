/* The connection to the controller. It handles keys, dialing and reattaching. The console sees only
 * messages and changes of the connection's state. */
#include "tui/connection.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "wire/keys.h"
#include "wire/post.h"

enum { ATTACH_EVERY_US = 1000000 };

struct connection {
	struct keys_identity *identity;
	struct post *post;
	post_peer_id peer;
	char name[64];
	bool readonly, up;
	int64_t attached_us;
	/* Last reported reason why the controller cannot be reached. */
	char trouble[160];
};

/* Reads the controller's key. `text` has the key's digits, or the name of a file that begins with
 * the digits. */
static int read_controller_key(const char *text, struct keys_public *out, struct error *err)
{
	char *file, digits[KEYS_TEXT_SIZE];
	size_t size, n = 0;
	int rc;

	if (strlen(text) == KEYS_TEXT_SIZE - 1 &&
	    strspn(text, "0123456789abcdefABCDEF") == strlen(text))
		return keys_parse(text, out, err);
	rc = file_read_text(text, 4096, &file, &size, err);
	if (rc != 0)
		return error_prefix(err, rc, "--controller-key");
	while (n < size && n + 1 < sizeof(digits) && isxdigit((unsigned char)file[n])) {
		digits[n] = file[n];
		n++;
	}
	digits[n] = '\0';
	free(file);
	rc = keys_parse(digits, out, err);
	return rc == 0 ? 0 : error_prefix(err, rc, "--controller-key %s", text);
}

int connection_open(struct connection **out, const struct connection_options *o,
		    struct error *err)
{
	struct post_options options = { .peers_most = 1,
					.message_most_bytes = 256u << 20,
					.silence_us = 2000000 };
	struct connection *c = alloc_new(sizeof(*c));
	struct keys_public controller;
	int rc;

	snprintf(c->name, sizeof(c->name), "%s", o->name);
	c->readonly = o->readonly;
	rc = read_controller_key(o->controller_key, &controller, err);
	if (rc == 0)
		rc = keys_load_or_make(&c->identity, o->key, err);
	options.identity = c->identity;
	if (rc == 0)
		rc = post_open(&c->post, &options, err);
	if (rc == 0)
		rc = post_dial(c->post, o->address, &controller, &c->peer, err);
	if (rc != 0) {
		connection_close(c);
		return rc;
	}
	*out = c;
	return 0;
}

void connection_close(struct connection *c)
{
	if (!c)
		return;
	post_close(c->post);
	keys_free(c->identity);
	free(c);
}

int connection_fd(const struct connection *c)
{
	return post_fd(c->post);
}

int64_t connection_deadline_us(const struct connection *c)
{
	return post_deadline_us(c->post);
}

static int send_message(struct connection *c, const struct msg *m, int64_t now_us)
{
	unsigned char data[2048];
	long size = msg_encode(m, data, sizeof(data));
	struct post_part part = { data, (size_t)size };

	return size < 0 ? (int)size
			: post_send(c->post, c->peer, &part, 1, POST_RELIABLE, now_us);
}

static void attach_channel(struct connection *c, int64_t now_us)
{
	struct msg m = { .type = MSG_ATTACH };

	m.u.attach.protocol = MSG_VERSION;
	m.u.attach.readonly = c->readonly;
	snprintf(m.u.attach.name, sizeof(m.u.attach.name), "%s", c->name);
	c->attached_us = now_us;
	send_message(c, &m, now_us);
}

void connection_attach(struct connection *c, int64_t now_us)
{
	if (c->up && now_us - c->attached_us >= ATTACH_EVERY_US)
		attach_channel(c, now_us);
}

int connection_command(struct connection *c, const struct msg_command *command, int64_t now_us)
{
	struct msg m = { .type = MSG_COMMAND };

	if (!c->up)
		return -ENOTCONN;
	m.u.command = *command;
	return send_message(c, &m, now_us);
}

bool connection_idle(const struct connection *c)
{
	return !c->up || post_idle(c->post, c->peer);
}

static void explain_refusal(const struct connection *c, enum link_reason reason, char why[160])
{
	char key[KEYS_TEXT_SIZE];

	if (reason == LINK_NOT_ADMITTED || reason == LINK_ROLE) {
		keys_text(keys_public_of(c->identity), key);
		snprintf(why, 160,
			 "not admitted; on the controller's machine: skippipe admit LIST %s "
			 "--role console --name NAME",
			 key);
	} else {
		snprintf(why, 160, "%s", link_reason_text(reason));
	}
}

/* Returns true if the controller cannot be reached for a reason that was not reported yet. */
static bool is_unreached(struct connection *c, char why[160])
{
	struct post_peer_info info;

	if (c->up || post_peer(c->post, c->peer, &info) != 0 ||
	    strncmp(info.trouble, c->trouble, sizeof(c->trouble) - 1) == 0)
		return false;
	snprintf(c->trouble, sizeof(c->trouble), "%s", info.trouble);
	snprintf(why, 160, "%s", c->trouble);
	return c->trouble[0] != 0;
}

void connection_next(struct connection *c, int64_t now_us, struct connection_notice *out)
{
	struct post_message m;

	memset(out, 0, sizeof(*out));
	while (post_receive(c->post, now_us, &m) == 0) {
		switch (m.kind) {
		case POST_DATA:
			out->event = CONNECTION_MESSAGE;
			out->data = m.data;
			out->size = m.size;
			if (msg_is_foreign(m.data, m.size)) {
				out->event = CONNECTION_REFUSED;
				snprintf(out->why, sizeof(out->why),
					 "the controller is of another version of skippipe; this "
					 "is " SKIPPIPE_VERSION);
			}
			return;
		case POST_UP:
			c->up = true;
			attach_channel(c, now_us);
			out->event = CONNECTION_UP;
			return;
		case POST_DOWN:
		case POST_REFUSED:
			c->up = c->up && m.kind == POST_REFUSED;
			out->event = m.kind == POST_DOWN ? CONNECTION_DOWN : CONNECTION_REFUSED;
			explain_refusal(c, m.reason, out->why);
			return;
		default: /* Messages to a former controller were lost; nobody waits for them. */
			break;
		}
	}
	post_tick(c->post, now_us);
	if (is_unreached(c, out->why))
		out->event = CONNECTION_UNREACHED;
}
