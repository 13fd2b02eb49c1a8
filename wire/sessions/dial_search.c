/* dial_search.c - finds the address that a dialing link dials, and replaces it if it cannot be
 * reached.
 *
 * A search (search.h) finds an address that accepts connections. A search runs before the first
 * connection to a name. A search also runs when nothing was received for a while, because a
 * healthy peer sends keep-alive frames. The silence can have two causes. The peer's name may have
 * a new address. Or the address can be reached and only the present connections are dead, for
 * example because this machine's own address has changed. In both cases the link redials, and the
 * session continues over the new connections. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "wire/sessions/session.h"

/* If there is no session this long after dialing, a search begins. */
#define FIRST_US INT64_C(800000)
/* If no frame arrives for this long, a search begins. A healthy peer sends at least every 1.25
 * s. */
#define SILENT_US INT64_C(3000000)
/* first pause between two searches; the pause doubles each time */
#define PAUSE_US INT64_C(2000000)
#define PAUSE_MOST_US INT64_C(16000000)
#define LOOK_US       INT64_C(20000)

static int64_t last_heard_us(const struct link *link)
{
	int64_t at = link->dial.dialed_us;
	for (uint32_t i = 0; i < link->n_slots; i++) {
		const struct session *s = link->slots[i];
		if (s != NULL && s->state == SESSION_LIVE && s->last_received_us > at)
			at = s->last_received_us;
	}
	return at;
}

static int64_t due_us(const struct link *link)
{
	const struct dial *d = &link->dial;
	int64_t at = d->dialed_us + FIRST_US;
	if (strncmp(d->target, "tcp://", 6) != 0)
		return INT64_MAX;
	if (link->address[0] == 0)
		return d->search_us;
	if (link->n_sessions > 0)
		at = last_heard_us(link) + SILENT_US;
	return at > d->search_us ? at : d->search_us;
}

static void redirect(struct link *link, const char *address, int64_t now_us)
{
	if (address != link->address)
		memcpy(link->address, address, strlen(address) + 1);
	link->dial.dialed_us = now_us;
	for (unsigned i = 0; i < LINK_TRUNKS; i++) {
		if (!link_has_trunk(link, i))
			continue;
		socket_redirect(&link->sockets[i], link->address);
		link_trunk_dialed(link, i);
	}
}

/* Handles the result of a search. If the target is a name and the search has found a new address,
 * dials this address. Otherwise, if the connections are silent, redials the present address. For
 * a target in numbers, the present address is the target as given, which may have a zone. */
static void on_found(struct link *link, const char *address, int64_t now_us)
{
	const bool is_name = search_is_name(link->dial.target);
	const bool silent = now_us - last_heard_us(link) >= SILENT_US;
	link->dial.trouble.text[0] = 0;
	if (silent && link->n_sessions == 0 && link->dial.answered_us < link->dial.dialed_us)
		(void)error_set(&link->dial.trouble, -EPROTO,
			"%.80s: something accepts connections and does not answer: another "
			"program, or a tunnel or proxy without its other end?", address);
	if (is_name && strcmp(address, link->address) != 0)
		redirect(link, address, now_us);
	else if (silent)
		redirect(link, link->address, now_us);
}

static void pause_search(struct dial *d, int64_t now_us)
{
	d->search_pause_us = d->search_pause_us == 0 ? PAUSE_US : 2 * d->search_pause_us;
	if (d->search_pause_us > PAUSE_MOST_US)
		d->search_pause_us = PAUSE_MOST_US;
	d->search_us = now_us + d->search_pause_us;
}

/* Begins a search. If the link has no session, the search tries the present address last. */
static void begin_search(struct link *link, int64_t now_us)
{
	struct dial *d = &link->dial;
	d->search = search_new(d->target, link->n_sessions == 0 ? link->address : "");
	if (d->search != NULL)
		return;
	(void)error_set(&d->trouble, -EAGAIN, "%.80s: no memory for a thread to find the address",
		d->target);
	pause_search(d, now_us);
}

void dial_search_tick(struct link *link, int64_t now_us)
{
	struct dial *d = &link->dial;
	char address[LINK_ADDRESS_SIZE];
	if (link->listens)
		return;
	if (d->dialed_us == 0)
		d->dialed_us = now_us;
	if (d->search == NULL) {
		if (now_us >= due_us(link))
			begin_search(link, now_us);
		return;
	}
	int rc = search_result(d->search, address, &d->trouble);
	if (rc == -EAGAIN)
		return;
	search_free(d->search);
	d->search = NULL;
	if (now_us - last_heard_us(link) < SILENT_US && link->n_sessions > 0)
		d->search_pause_us = 0;
	pause_search(d, now_us);
	if (rc == 0)
		on_found(link, address, now_us);
}

int64_t dial_search_deadline_us(const struct link *link)
{
	if (link->listens || strncmp(link->dial.target, "tcp://", 6) != 0)
		return INT64_MAX;
	return link->dial.search != NULL ? clock_monotonic_us() + LOOK_US : due_us(link);
}
