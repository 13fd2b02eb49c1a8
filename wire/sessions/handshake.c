/* handshake.c - makes sessions: the two ends prove their keys and agree on new keys for the
 * session. link.h draws the exchange; session.h lists the states. The listener stores nothing for a
 * HELLO, so strangers cannot fill its memory. */
#include <errno.h>
#include <string.h>

#include "wire/sessions/session.h"

#define COOKIE_LIFE_US   INT64_C(10000000)
#define ANSWER_WAIT_US INT64_C(1000000) /* first wait for a COOKIE or RESPONSE */
/* Longest wait for a COOKIE or RESPONSE. The wait doubles each time that neither arrives. */
#define ANSWER_MOST_US INT64_C(16000000)
/* First pause of the dialer after a refusal or a missing answer. */
#define BACKOFF_US       INT64_C(250000)
/* Longest pause of the dialer. The pause doubles after each refusal or missing answer. */
#define BACKOFF_MOST_US INT64_C(4000000)
#define KEEP_ALIVE_LEAST_US INT64_C(25000)
/* Limit of the PENDING sessions of one key, if several processes may use the key. */
#define PENDING_SHARED 16
/* Least time from the beginning of one handshake to the next. */
#define RETRY_LEAST_US INT64_C(100000)

static void send_small(struct link *link, const struct socket_route *route, const uint8_t *bytes,
	size_t size)
{
	uint8_t *frame = socket_frame(size);
	if (frame == NULL)
		return;
	memcpy(frame, bytes, size);
	(void)link_transmit(link, 0, route, frame, size);
}

/* ---- the listener ---- */

void handshake_refuse(struct link *link, enum link_reason reason, const uint8_t *echo,
	const struct socket_route *route, int64_t now_us)
{
	uint8_t bytes[FRAME_REFUSE_SIZE];
	link_refused(link, reason);
	if (!link->listens || !bucket_take(&link->refusals, now_us))
		return;
	size_t size = frame_put_refuse(bytes, reason, echo);
	send_small(link, route, bytes, size);
}

/* Makes a cookie: an issue number, and a keyed hash of this number and the connection. No two
 * cookies have the same number. The number is the greater of two numbers: the present time in
 * microseconds, and the previous cookie's number plus 1. The listener can recognise its cookie
 * without storing it. */
static void cookie_seal(const struct link *link, uint64_t issue, const struct socket_route *route,
	uint8_t out[FRAME_COOKIE])
{
	uint8_t text[8 + sizeof(route->bytes)];
	frame_put_u64(text, issue);
	memcpy(text + 8, route->bytes, sizeof(route->bytes));
	frame_put_u64(out, issue);
	crypto_generichash(out + 8, FRAME_COOKIE - 8, text, sizeof(text), link->cookie_key,
		sizeof(link->cookie_key));
}

void handshake_on_hello(struct link *link, const struct frame *f,
	const struct socket_route *route, int64_t now_us)
{
	uint8_t cookie[FRAME_COOKIE], bytes[FRAME_COOKIE_SIZE];
	uint64_t issue = (uint64_t)now_us;
	if (issue <= link->last_issue)
		issue = link->last_issue + 1;
	link->last_issue = issue;
	cookie_seal(link, issue, route, cookie);
	size_t size = frame_put_cookie(bytes, f->nonce, cookie);
	send_small(link, route, bytes, size);
}

/* Returns true if this listener made the cookie for this connection, at most COOKIE_LIFE_US ago. */
static bool cookie_good(const struct link *link, const uint8_t *cookie,
	const struct socket_route *route, int64_t now_us)
{
	uint8_t expected[FRAME_COOKIE];
	uint64_t issue = frame_get_u64(cookie);
	cookie_seal(link, issue, route, expected);
	if (sodium_memcmp(expected, cookie, FRAME_COOKIE) != 0)
		return false;
	return issue + (uint64_t)COOKIE_LIFE_US >= (uint64_t)now_us;
}

static bool is_shared(const struct link *link, enum keys_role role)
{
	return (link->options.shared_roles & KEYS_ROLE_BIT(role)) != 0;
}

/* Records that the cookie with this issue number was used. Returns false if the cookie was used
 * before. Also returns false if the cookie is older than all recorded cookies, because a record
 * of the cookie may have been replaced. */
static bool take_issue(struct admitted_key *record, uint64_t issue, bool shared)
{
	const unsigned n = shared ? ADMITTED_ISSUES : 1;
	unsigned oldest = 0;
	for (unsigned i = 0; i < n; i++) {
		if (record->issues[i] == issue)
			return false;
		if (record->issues[i] < record->issues[oldest])
			oldest = i;
	}
	if (issue < record->issues[oldest])
		return false;
	record->issues[oldest] = issue;
	return true;
}

/* Checks an INIT: identifies the sender's key, and reads its offer. Returns LINK_REASON_NONE, or
 * the reason why the INIT is refused. */
static enum link_reason examine_init(struct link *link, const struct frame *f, struct noise *noise,
	const struct keys_entry **entry, struct frame_offer *offer)
{
	uint8_t payload[FRAME_OFFER];
	uint64_t issue = frame_get_u64(f->cookie);

	noise_init(noise, false, link->options.identity, NULL, f->cookie - 8, FRAME_INIT_HEAD);
	if (noise_read_first_key(noise, f->body, f->body_size) < 0)
		return LINK_BAD_SEAL;
	*entry = keys_list_find(link->options.admitted, &noise->peer);
	if (*entry == NULL)
		return session_not_admitted(link, &noise->peer);
	if (link->options.roles != 0 && (link->options.roles & KEYS_ROLE_BIT((*entry)->role)) == 0)
		return LINK_ROLE;
	if (noise_read_first_payload(noise, f->body, f->body_size, payload) < 0)
		return LINK_BAD_SEAL;
	struct admitted_key *record = admitted_key_of(link, &noise->peer);
	if (record == NULL)
		return LINK_TOO_MANY;
	if (!take_issue(record, issue, is_shared(link, (*entry)->role)))
		return LINK_REPLAY;
	if (frame_get_offer(payload, offer) < 0)
		return LINK_MALFORMED;
	if ((offer->ciphers & (1u << SEAL_XCHACHA20)) == 0)
		return LINK_MALFORMED;
	for (size_t i = 0; i < ADMITTED_SUPERSEDED; i++) {
		if (record->superseded[i] == offer->instance)
			return LINK_SUPERSEDED;
	}
	return LINK_REASON_NONE;
}

/* Returns the number by which this process identifies itself to the dialer's process. The number
 * must stay the same as long as both processes live. Therefore the number is taken from an
 * existing session. If there is no session, the caller's callback `known` gives the number. If
 * the callback has no number either, the number is new. PENDING sessions count too, because the
 * dialer may have received their RESPONSE. */
static uint64_t instance_for(struct link *link, const struct keys_public *key, uint64_t instance)
{
	uint64_t own = 0;
	for (uint32_t i = 0; i < link->n_slots; i++) {
		const struct session *s = link->slots[i];
		if (s != NULL && s->instance == instance && keys_equal(&s->key, key))
			return s->own_instance;
	}
	if (link->options.known != NULL)
		own = link->options.known(link->options.known_context, key, instance);
	while (own == 0)
		randombytes_buf(&own, sizeof(own));
	return own;
}

/* Makes room for a new PENDING session of the key. If the key is not shared, frees the key's old
 * PENDING session. If the key is shared, frees the PENDING session of the same process. If
 * PENDING_SHARED or more sessions of the key are still PENDING then, also frees the oldest of
 * these sessions. */
static void end_pending(struct link *link, const struct keys_public *key, uint64_t instance,
			bool shared)
{
	struct session *oldest = NULL;
	unsigned n = 0;
	for (uint32_t i = 0; i < link->n_slots; i++) {
		struct session *s = link->slots[i];
		if (s == NULL || s->state != SESSION_PENDING || !keys_equal(&s->key, key))
			continue;
		if (!shared || s->instance == instance) {
			session_free(link, s);
			continue;
		}
		n++;
		if (oldest == NULL || s->since_us < oldest->since_us)
			oldest = s;
	}
	if (n >= PENDING_SHARED)
		session_free(link, oldest);
}

static void set_keys(struct session *s, const struct noise *noise, enum seal_cipher cipher)
{
	uint8_t send[NOISE_KEY], receive[NOISE_KEY];
	noise_split(noise, send, receive);
	seal_key_init(&s->send, cipher, send);
	seal_key_init(&s->receive, cipher, receive);
	sodium_memzero(send, sizeof(send));
	sodium_memzero(receive, sizeof(receive));
}

static uint32_t smaller_count(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t own_silence_ms(const struct link *link)
{
	int64_t ms = link->options.silence_us / 1000;
	return ms < 1 ? 1 : ms > INT32_MAX ? INT32_MAX : (uint32_t)ms;
}

/* Returns the time without a sent frame after which a keep-alive frame is due. It is a quarter of
 * the silence that the other end accepts, but at least KEEP_ALIVE_LEAST_US. */
static int64_t keep_alive_of(const struct frame_offer *offer)
{
	int64_t us = (int64_t)offer->silence_ms * 1000 / 4;
	return us < KEEP_ALIVE_LEAST_US ? KEEP_ALIVE_LEAST_US : us;
}

/* Answers an INIT: makes a PENDING session and sends its RESPONSE. Returns LINK_REASON_NONE, or
 * the reason why the INIT is refused. */
static enum link_reason answer_init(struct link *link, const struct frame *f, struct noise *noise,
	const struct keys_entry *entry, const struct frame_offer *offer,
	const struct socket_route *route, int64_t now_us)
{
	uint8_t bytes[FRAME_RESPONSE_SIZE], payload[FRAME_OFFER], ephemeral[KEYS_BYTES];
	bool aes = link->aes && (offer->ciphers & (1u << SEAL_AES256_GCM)) != 0;
	enum seal_cipher cipher = aes ? SEAL_AES256_GCM : SEAL_XCHACHA20;

	uint64_t own_instance = instance_for(link, &noise->peer, offer->instance);
	end_pending(link, &noise->peer, offer->instance, is_shared(link, entry->role));
	struct session *s = session_new(link, 0);
	if (s == NULL)
		return LINK_TOO_MANY;
	s->state = SESSION_PENDING;
	s->remote_id = f->session;
	s->key = noise->peer;
	s->role = entry->role;
	memcpy(s->name, entry->name, sizeof(s->name));
	s->instance = offer->instance;
	s->own_instance = own_instance;
	s->frame_most = smaller_count(offer->frame_most, link->options.frame_most);
	s->keep_alive_us = keep_alive_of(offer);
	s->route = *route;
	s->since_us = now_us;

	frame_put_offer(payload, &(struct frame_offer){.instance = s->own_instance,
		.frame_most = link->options.frame_most, .ciphers = 1u << cipher, .session = s->id,
		.silence_ms = own_silence_ms(link)});
	size_t head = frame_put_response_head(bytes, f->session);
	randombytes_buf(ephemeral, sizeof(ephemeral));
	int rc = noise_write_second(noise, ephemeral, payload, sizeof(payload), bytes + head);
	sodium_memzero(ephemeral, sizeof(ephemeral));
	if (rc < 0) {
		session_free(link, s);
		return LINK_BAD_SEAL;
	}
	set_keys(s, noise, cipher);
	send_small(link, route, bytes, sizeof(bytes));
	return LINK_REASON_NONE;
}

void handshake_on_init(struct link *link, const struct frame *f, const struct socket_route *route,
	int64_t now_us)
{
	static const uint8_t nothing[FRAME_NONCE];
	struct noise noise;
	const struct keys_entry *entry = NULL;
	struct frame_offer offer;

	if (!cookie_good(link, f->cookie, route, now_us)) {
		handshake_refuse(link, LINK_REPLAY, nothing, route, now_us);
		return;
	}
	if (!bucket_take(&link->inits, now_us)) {
		link_refused(link, LINK_TOO_MANY);
		return;
	}
	enum link_reason reason = examine_init(link, f, &noise, &entry, &offer);
	if (reason == LINK_REASON_NONE)
		reason = answer_init(link, f, &noise, entry, &offer, route, now_us);
	if (reason != LINK_REASON_NONE)
		handshake_refuse(link, reason, nothing, route, now_us);
	noise_wipe(&noise);
}

/* ---- the dialer ---- */

static void drop_waiting(struct dial *d)
{
	socket_frame_free(d->waiting);
	d->waiting = NULL;
}

/* Sends a frame of the handshake, or keeps it until trunk 0 has room. If the frame were dropped,
 * tensors on the same trunk could prevent the replacement of an old session. Returns false, and
 * frees the frame, if the trunk has no connection yet. */
static bool send_or_keep(struct link *link, uint8_t *frame, size_t size)
{
	struct dial *d = &link->dial;
	drop_waiting(d);
	if (link_is_writable(link, 0) || !link->connected[0])
		return link_transmit(link, 0, NULL, frame, size) == 0;
	d->waiting = frame;
	d->waiting_size = size;
	return true;
}

void handshake_send_waiting(struct link *link)
{
	uint8_t *frame = link->dial.waiting;
	if (frame == NULL || !link_is_writable(link, 0))
		return;
	link->dial.waiting = NULL;
	(void)link_transmit(link, 0, NULL, frame, link->dial.waiting_size);
}

static void rest_before_retry(struct link *link, int64_t now_us)
{
	struct dial *d = &link->dial;
	drop_waiting(d);
	noise_wipe(&d->noise);
	d->state = DIAL_REST;
	d->deadline_us = now_us + d->backoff_us;
	d->backoff_us = d->backoff_us * 2 > BACKOFF_MOST_US ? BACKOFF_MOST_US : d->backoff_us * 2;
}

static int64_t answer_wait(const struct dial *d)
{
	return d->answer_wait_us > 0 ? d->answer_wait_us : ANSWER_WAIT_US;
}

static void begin_handshake(struct link *link, int64_t now_us)
{
	struct dial *d = &link->dial;
	uint8_t bytes[FRAME_HELLO_SIZE];
	uint8_t *frame = socket_frame(sizeof(bytes));
	if (frame == NULL) {
		d->deadline_us = now_us + BACKOFF_US;
		return;
	}
	randombytes_buf(d->nonce, sizeof(d->nonce));
	frame_put_hello(frame, d->nonce);
	if (!send_or_keep(link, frame, FRAME_HELLO_SIZE)) {
		/* The trunk has no connection. handshake_tick tries again when the trunk can
		 * send. */
		d->state = DIAL_REST;
		d->deadline_us = INT64_MAX;
		return;
	}
	d->state = DIAL_HELLO;
	d->began_us = now_us;
	d->deadline_us = now_us + answer_wait(d);
}

void handshake_want(struct link *link, int64_t now_us)
{
	struct dial *d = &link->dial;
	if (link->listens || d->handshake_wanted)
		return;
	d->handshake_wanted = true;
	d->state = DIAL_REST;
	d->backoff_us = BACKOFF_US;
	d->deadline_us = now_us;
	if (now_us - d->began_us < RETRY_LEAST_US)
		d->deadline_us = d->began_us + RETRY_LEAST_US;
}

/* Answers a COOKIE with an INIT, which returns the cookie and contains the dialer's key,
 * encrypted. Before the INIT, neither end computes on an elliptic curve. */
void handshake_on_cookie(struct link *link, const struct frame *f, int64_t now_us)
{
	struct dial *d = &link->dial;
	uint8_t payload[FRAME_OFFER], ephemeral[KEYS_BYTES];

	if (d->state != DIAL_HELLO || sodium_memcmp(f->nonce, d->nonce, FRAME_NONCE) != 0) {
		link_refused(link, LINK_REPLAY);
		return;
	}
	d->answered_us = now_us;
	uint8_t *frame = socket_frame(FRAME_INIT_SIZE);
	d->reserved_id = session_reserve(link);
	if (frame == NULL || d->reserved_id == 0) {
		socket_frame_free(frame);
		rest_before_retry(link, now_us);
		return;
	}
	size_t head = frame_put_init_head(frame, d->reserved_id, f->cookie);
	frame_put_offer(payload, &(struct frame_offer){.instance = d->instance,
		.frame_most = link->options.frame_most,
		.ciphers = 1u << SEAL_XCHACHA20 | (link->aes ? 1u << SEAL_AES256_GCM : 0u),
		.silence_ms = own_silence_ms(link)});
	noise_init(&d->noise, true, link->options.identity, &d->key, frame, head);
	randombytes_buf(ephemeral, sizeof(ephemeral));
	int rc = noise_write_first(&d->noise, ephemeral, payload, sizeof(payload), frame + head);
	sodium_memzero(ephemeral, sizeof(ephemeral));
	if (rc < 0) {
		socket_frame_free(frame);
		rest_before_retry(link, now_us);
		return;
	}
	if (!send_or_keep(link, frame, FRAME_INIT_SIZE)) {
		rest_before_retry(link, now_us);
		return;
	}
	d->state = DIAL_INIT;
	d->deadline_us = now_us + answer_wait(d);
}

void handshake_on_response(struct link *link, const struct frame *f, int64_t now_us)
{
	struct dial *d = &link->dial;
	uint8_t payload[FRAME_OFFER];
	struct frame_offer offer;
	struct session *s = NULL;

	if (d->state != DIAL_INIT || f->session != d->reserved_id) {
		link_refused(link, LINK_REPLAY);
		return;
	}
	if (noise_read_second(&d->noise, f->body, f->body_size, payload) < 0) {
		link_refused(link, LINK_BAD_SEAL);
		return;
	}
	bool aes = false;
	int rc = frame_get_offer(payload, &offer);
	if (rc == 0) {
		aes = offer.ciphers == 1u << SEAL_AES256_GCM;
		if (aes ? !link->aes : offer.ciphers != 1u << SEAL_XCHACHA20)
			rc = -EBADMSG;
	}
	if (rc == 0)
		s = session_new(link, d->reserved_id);
	if (s == NULL) {
		link_refused(link, rc < 0 ? LINK_MALFORMED : LINK_TOO_MANY);
		rest_before_retry(link, now_us);
		return;
	}
	s->remote_id = offer.session;
	s->key = d->key;
	s->instance = offer.instance;
	s->own_instance = d->instance;
	s->frame_most = smaller_count(offer.frame_most, link->options.frame_most);
	s->keep_alive_us = keep_alive_of(&offer);
	set_keys(s, &d->noise, aes ? SEAL_AES256_GCM : SEAL_XCHACHA20);
	noise_wipe(&d->noise);
	d->handshake_wanted = false;
	d->answer_wait_us = 0;
	d->state = DIAL_REST;
	d->deadline_us = INT64_MAX;
	session_live(link, s, now_us);
	/* Sends an empty DATA frame, because the listener's session becomes LIVE only with the
	 * first DATA frame. */
	uint8_t *hello = link_buffer(0);
	if (hello != NULL)
		(void)link_send(link, s->id, 0, hello, 0, now_us);
}

void handshake_on_refuse(struct link *link, const struct frame *f, int64_t now_us)
{
	static const uint8_t nothing[FRAME_NONCE];
	struct dial *d = &link->dial;

	if (f->reason == LINK_UNKNOWN_SESSION) {
		for (uint32_t i = 0; i < link->n_slots; i++) {
			struct session *s = link->slots[i];
			if (s != NULL && s->remote_id == frame_get_u32(f->nonce) &&
			    frame_get_u64(f->nonce + 4) < s->counter)
				handshake_want(link, now_us);
		}
		return;
	}
	bool ours = (d->state == DIAL_HELLO && memcmp(f->nonce, d->nonce, FRAME_NONCE) == 0) ||
		    (d->state == DIAL_INIT && memcmp(f->nonce, nothing, FRAME_NONCE) == 0);
	if (!ours)
		return;
	d->answered_us = now_us;
	link_queue_event(link, &(struct link_event){.kind = LINK_REFUSAL, .reason = f->reason,
		.key = d->key});
	rest_before_retry(link, now_us);
}

int64_t handshake_deadline_us(const struct link *link)
{
	const struct dial *d = &link->dial;
	if (link->listens || !d->handshake_wanted)
		return INT64_MAX;
	return d->state == DIAL_REST && d->deadline_us == INT64_MAX && !link->blocked[0]
		       ? 0
		       : d->deadline_us;
}

void handshake_tick(struct link *link, int64_t now_us)
{
	struct dial *d = &link->dial;
	if (link->listens || !d->handshake_wanted)
		return;
	if (d->state != DIAL_REST) {
		if (now_us >= d->deadline_us) {
			d->answer_wait_us = 2 * answer_wait(d);
			if (d->answer_wait_us > ANSWER_MOST_US)
				d->answer_wait_us = ANSWER_MOST_US;
			rest_before_retry(link, now_us);
		}
		return;
	}
	if (now_us >= d->deadline_us || (d->deadline_us == INT64_MAX && !link->blocked[0]))
		begin_handshake(link, now_us);
}
