/* session.c - a link's table of sessions, and what it knows about keys (states in session.h). The
 * records of keys outlive the sessions. Without the records, a key's old process, or an attacker
 * with a recorded handshake, could replace the key's new process. */
#include "wire/sessions/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define SLOT_MASK 0xffffu
#define PER_KEY_MOST 16 /* limit of the sessions of a key that several processes may use */

struct session *session_find(const struct link *link, uint32_t id)
{
	uint32_t slot = id & SLOT_MASK;
	if (slot >= link->n_slots || link->slots[slot] == NULL || link->slots[slot]->id != id)
		return NULL;
	return link->slots[slot];
}

uint32_t session_reserve(struct link *link)
{
	for (uint32_t slot = 0; slot < link->n_slots; slot++) {
		if (link->slots[slot] != NULL)
			continue;
		link->uses[slot]++;
		uint32_t id = (link->uses[slot] << 16) | slot;
		return id != 0 ? id : session_reserve(link);
	}
	return 0;
}

struct session *session_new(struct link *link, uint32_t id)
{
	if (id == 0)
		id = session_reserve(link);
	if (id == 0 || link->slots[id & SLOT_MASK] != NULL)
		return NULL;
	/* sodium_malloc gives locked memory, outside core dumps. sodium_malloc places the struct
	 * at the end of a page. The struct is aligned nevertheless, because its size is a
	 * multiple of its alignment. */
	struct session *s = sodium_malloc(sizeof(*s));
	if (s == NULL)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->window = calloc(1, sizeof(*s->window));
	if (s->window == NULL) {
		sodium_free(s);
		return NULL;
	}
	s->id = id;
	link->slots[id & SLOT_MASK] = s;
	link->n_sessions++;
	link->counters->sessions++;
	return s;
}

void session_free(struct link *link, struct session *s)
{
	link_drop_transits(link, s->id);
	link->slots[s->id & SLOT_MASK] = NULL;
	link->n_sessions--;
	link->counters->sessions--;
	if (s->state == SESSION_ENDING)
		link->n_ending--;
	free(s->window);
	sodium_free(s); /* wipes the memory and frees it */
}

void session_end(struct link *link, struct session *s, enum link_reason reason)
{
	if (s->state == SESSION_PENDING) {
		session_free(link, s);
		return;
	}
	if (s->state == SESSION_ENDING)
		return;
	link_drop_transits(link, s->id);
	s->state = SESSION_ENDING;
	s->reason = reason;
	link->n_ending++;
	sodium_memzero(&s->send, sizeof(s->send));
	sodium_memzero(&s->receive, sizeof(s->receive));
}

bool session_may_send(const struct session *s)
{
	return s != NULL && s->state == SESSION_LIVE && s->counter < SEAL_FRAMES_MOST &&
	       s->sent_bytes < SEAL_BYTES_MOST;
}

void session_count_sent(struct link *link, struct session *s, size_t size, int64_t now_us)
{
	s->counter++;
	s->sent_bytes += size;
	s->last_sent_us = now_us;
	if (s->counter >= SEAL_FRAMES_MOST / 2 || s->sent_bytes >= SEAL_BYTES_MOST / 2)
		handshake_want(link, now_us);
}

static void describe_session(const struct session *s, enum link_kind kind, struct link_event *out)
{
	*out = (struct link_event){.kind = kind, .session = s->id, .tag = s->tag, .key = s->key,
		.role = s->role, .instance = s->instance, .own_instance = s->own_instance,
		.frame_most = s->frame_most, .reason = s->reason};
	memcpy(out->name, s->name, sizeof(out->name));
}

bool session_next_ending(struct link *link, struct link_event *out)
{
	for (uint32_t i = 0; link->n_ending > 0 && i < link->n_slots; i++) {
		struct session *s = link->slots[i];
		if (s == NULL || s->state != SESSION_ENDING)
			continue;
		describe_session(s, LINK_DOWN, out);
		session_free(link, s);
		return true;
	}
	return false;
}

static void supersede_session(struct link *link, struct session *old)
{
	struct admitted_key *record = admitted_key_of(link, &old->key);
	if (record != NULL) {
		record->superseded[record->next_superseded++ % ADMITTED_SUPERSEDED] = old->instance;
		session_end(link, old, LINK_SUPERSEDED);
	}
}

void session_live(struct link *link, struct session *s, int64_t now_us)
{
	struct session *oldest = NULL;
	unsigned same_key = 0;
	struct link_event up;

	for (uint32_t i = 0; i < link->n_slots; i++) {
		struct session *old = link->slots[i];
		if (old == NULL || old == s || old->state != SESSION_LIVE ||
		    !keys_equal(&old->key, &s->key))
			continue;
		if (old->instance == s->instance || !link->listens) {
			/* The peer is the same, so the new session keeps the tag. This holds even
			 * if the old session of a dialer was with the listener's previous
			 * process. */
			s->tag = old->tag;
			session_free(link, old);
		} else if ((link->options.shared_roles & KEYS_ROLE_BIT(s->role)) == 0) {
			supersede_session(link, old);
		} else {
			same_key++;
			if (oldest == NULL || old->last_received_us < oldest->last_received_us)
				oldest = old;
		}
	}
	if (same_key >= PER_KEY_MOST)
		session_end(link, oldest, LINK_TOO_MANY);
	s->state = SESSION_LIVE;
	s->since_us = s->last_received_us = s->last_sent_us = now_us;
	link->counters->handshakes++;
	describe_session(s, LINK_UP, &up);
	link_queue_event(link, &up);
}

/* A linear search suffices, because only handshakes need it, and there are at most KEYS_LIST_MOST
 * records. */
struct admitted_key *admitted_key_of(struct link *link, const struct keys_public *key)
{
	for (size_t i = 0; i < link->n_records; i++) {
		if (keys_equal(&link->records[i].key, key))
			return &link->records[i];
	}
	if (!array_grow(&link->records, &link->room_records, link->n_records + 1,
		    sizeof(*link->records)))
		return NULL;
	struct admitted_key *fresh = &link->records[link->n_records++];
	*fresh = (struct admitted_key){.key = *key};
	return fresh;
}

enum link_reason session_not_admitted(const struct link *link, const struct keys_public *key)
{
	return keys_list_barred(link->options.admitted, key) ? LINK_FLOOD : LINK_NOT_ADMITTED;
}

/* Ends the sessions of keys that were removed or barred, or that have another role now. Drops the
 * records of keys that were removed or barred. */
void session_check_admitted(struct link *link)
{
	if (!link->listens || keys_list_version(link->options.admitted) == link->admitted_version)
		return;
	link->admitted_version = keys_list_version(link->options.admitted);
	for (uint32_t i = 0; i < link->n_slots; i++) {
		struct session *s = link->slots[i];
		if (s == NULL)
			continue;
		const struct keys_entry *entry = keys_list_find(link->options.admitted, &s->key);
		if (entry == NULL || entry->role != s->role)
			session_end(link, s, session_not_admitted(link, &s->key));
		else
			memcpy(s->name, entry->name, sizeof(s->name));
	}
	size_t kept = 0;
	for (size_t i = 0; i < link->n_records; i++) {
		if (keys_list_find(link->options.admitted, &link->records[i].key) != NULL)
			link->records[kept++] = link->records[i];
	}
	link->n_records = kept;
}

bool bucket_take(struct bucket *b, int64_t now_us)
{
	b->tokens += (double)(now_us - b->at_us) * 1e-6 * b->per_s;
	b->at_us = now_us;
	if (b->tokens > b->per_s)
		b->tokens = b->per_s;
	if (b->tokens < 1.0)
		return false;
	b->tokens -= 1.0;
	return true;
}
