/* Reads the file of hosts. A host's target (USER@HOST) becomes a word of ssh's command line.
 * Therefore a target must not begin with '-' or contain characters that a shell interprets. */
#include "cli/fleet/hosts.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

enum { FILE_MOST = 1 << 20, LINE_MOST = 2048 };

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* Returns true if the text is not empty, does not begin with '-', and consists of letters, digits
 * and the characters in `others`. */
static bool has_only(const char *text, const char *others)
{
	for (const char *c = text; *c; c++)
		if (!strchr(letters, *c) && !strchr(others, *c))
			return false;
	return *text && *text != '-';
}

static int take_port(struct host *out, const char *text, struct error *err)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || port < 1 || port > 65535)
		return error_set(err, -EINVAL, "\"%s\" is not a port", text);
	snprintf(out->port, sizeof(out->port), "%lu", port);
	return 0;
}

/* An IPv6 address before a port needs brackets. A text with several colons but without brackets is
 * an IPv6 address without a port. */
int hosts_parse_target(struct host *out, const char *text, struct error *err)
{
	const char *at = strrchr(text, '@'), *host = at ? at + 1 : text;
	const char *end = *host == '[' ? strchr(host, ']') : NULL;
	const char *colon = end ? (end[1] == ':' ? end + 1 : NULL) : strchr(host, ':');
	size_t user = (size_t)(host - text), n;

	if (!end && colon && strchr(colon + 1, ':'))
		colon = NULL;
	n = colon ? (size_t)(colon - host) : strlen(host);
	if (end) {
		if (end[1] && end[1] != ':')
			return error_set(err, -EINVAL, "\"%s\": expected [ADDRESS]:PORT", text);
		host++;
		n = (size_t)(end - host);
	}
	if (user + n >= sizeof(out->target))
		return error_set(err, -EINVAL, "the host is too long");
	snprintf(out->target, sizeof(out->target), "%.*s%.*s", (int)user, text, (int)n, host);
	if (!has_only(out->target, "@._-:%+") || !has_only(out->target + user, "._-:%"))
		return error_set(err, -EINVAL, "\"%s\": expected USER@HOST:PORT", text);
	return colon ? take_port(out, colon + 1, err) : 0;
}

/* Parses an option KEY=VALUE and copies the value to the host's field of that name. */
static int take_word(struct host *out, const char *word, struct error *err)
{
	const struct {
		const char *key, *others;
		char *to;
		size_t room;
	} keys[] = {
		{ "name=", "._-", out->name, sizeof(out->name) },
		{ "place=", "._-/", out->place, sizeof(out->place) },
		{ "device=", "._-:,", out->device, sizeof(out->device) },
		{ "listen=", "._-:/[]", out->listen, sizeof(out->listen) },
		{ "advertise=", "._-:/[]", out->advertise, sizeof(out->advertise) },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t n = strlen(keys[i].key);

		if (strncmp(word, keys[i].key, n) != 0)
			continue;
		if (!has_only(word + n, keys[i].others) || strlen(word + n) >= keys[i].room)
			return error_set(err, -EINVAL,
					 "%s: expected a value of letters, digits and \"%s\"", word,
					 keys[i].others);
		snprintf(keys[i].to, keys[i].room, "%s", word + n);
		return 0;
	}
	return error_set(err, -EINVAL,
			 "\"%s\": expected name=, place=, device=, listen= or advertise=", word);
}

/* If the line has no option name=, makes the name from HOST in USER@HOST. Colons and % become
 * '-'. */
static int choose_name(struct host *h, struct error *err)
{
	const char *at = strrchr(h->target, '@'), *host = at ? at + 1 : h->target;

	if (h->name[0])
		return 0;
	if (strlen(host) >= sizeof(h->name))
		return error_set(err, -EINVAL, "%s: too long for a name; give name=", host);
	snprintf(h->name, sizeof(h->name), "%s", host);
	for (char *c = h->name; *c; c++)
		if (*c == ':' || *c == '%')
			*c = '-';
	return 0;
}

/* Parses a line, and changes its text. A line without a host, such as a comment, gives a host with
 * an empty name. */
static int parse_line(struct host *h, char *line, struct error *err)
{
	char *rest = NULL, *word;
	int rc;

	*h = (struct host){ 0 };
	line[strcspn(line, "#")] = '\0';
	word = strtok_r(line, " \t\r\v\f", &rest);
	if (!word)
		return 0;
	rc = hosts_parse_target(h, word, err);
	while (rc == 0 && (word = strtok_r(NULL, " \t\r\v\f", &rest)))
		rc = take_word(h, word, err);
	return rc == 0 ? choose_name(h, err) : rc;
}

static int add_host(struct hosts *out, const struct host *h, struct error *err)
{
	if (!h->name[0])
		return 0;
	if (out->n == HOSTS_MOST)
		return error_set(err, -E2BIG, "more than %d hosts", HOSTS_MOST);
	if (hosts_find(out, h->name))
		return error_set(err, -EINVAL,
				 "another host is named %s; give each a name=", h->name);
	out->list = alloc_resize(out->list, out->n + 1, sizeof(*out->list));
	out->list[out->n++] = *h;
	return 0;
}

int hosts_parse(struct hosts *out, const char *text, const char *path, struct error *err)
{
	struct hosts hosts = { 0 };
	char line[LINE_MOST];
	int rc = 0, number = 0;

	while (rc == 0 && *text) {
		size_t n = strcspn(text, "\n");
		struct host h;

		number++;
		if (n < sizeof(line)) {
			memcpy(line, text, n);
			line[n] = '\0';
			rc = parse_line(&h, line, err);
			if (rc == 0)
				rc = add_host(&hosts, &h, err);
		} else {
			rc = error_set(err, -EINVAL, "the line is too long");
		}
		text += n + (text[n] == '\n');
	}
	if (rc != 0)
		error_prefix(err, rc, "%s, line %d", path, number);
	else if (hosts.n == 0)
		rc = error_set(err, -EINVAL, "%s: no host; expected lines like user@host:22", path);
	if (rc != 0)
		hosts_free(&hosts);
	else
		*out = hosts;
	return rc;
}

int hosts_read(struct hosts *out, const char *path, struct error *err)
{
	char *text;
	size_t size;
	int rc = file_read_text(path, FILE_MOST, &text, &size, err);

	if (rc != 0)
		return rc;
	rc = strlen(text) == size ? hosts_parse(out, text, path, err)
				  : error_set(err, -EINVAL, "%s: is not a text", path);
	free(text);
	return rc;
}

const struct host *hosts_find(const struct hosts *hosts, const char *name)
{
	for (size_t i = 0; i < hosts->n; i++)
		if (strcmp(hosts->list[i].name, name) == 0)
			return &hosts->list[i];
	return NULL;
}

void hosts_free(struct hosts *hosts)
{
	free(hosts->list);
	*hosts = (struct hosts){ 0 };
}
