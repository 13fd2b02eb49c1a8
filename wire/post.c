/* post.c - see post.h.
 *
 * A post owns links (link.h): one for each address it listens at, one for each peer it dials. Every
 * peer has a channel (channel.h), which decides what goes when; the post carries chunks from
 * channels to links and back, and acknowledges. Acknowledgements ride on whatever goes to the
 * peer; on their own they go once the socket is empty, or after ACK_FRAMES, whichever is first.
 */
#include "wire/post.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <sodium.h>

#include "wire/channel.h"
#include "wire/post_frame.h"

#define MIB           ((size_t)1 << 20)
#define CHUNK_MOST    (4 * MIB)
#define SLOT_MASK     0xffffu
#define LINKS_MOST    500      /* nanomsg has 512 sockets a process */
#define ACK_FRAMES    32
#define ACK_BYTES     (4 * MIB)
#define TURNS_PER_CALL 256     /* frames without a message for the caller, at most */
#define SWEEP_US      INT64_C(5000) /* timeouts of all peers are looked at no more often */
/* Towards a listener nanomsg pushes back; towards a dialer what does not fit the socket's buffer
 * is lost, so chunks and window stay below the least one a system gives. */
#define DIALED_WINDOW      (16 * MIB)
#define DIALED_WINDOW_MOST (64 * MIB)
#define TAKEN_CHUNK        ((size_t)65536)
#define TAKEN_WINDOW       ((size_t)131072)
#define TAKEN_WINDOW_MOST  MIB

struct peer {
	post_peer_id id;
	struct line *line;
	uint32_t session;      /* 0: down */
	bool known;            /* was up once */
	bool ephemeral;        /* forgotten after its POST_DOWN */
	bool ack_due, gap;
	unsigned unacked_frames;
	size_t unacked_bytes;
	size_t lossy_most;     /* bytes a LOSSY message may have */
	uint64_t own_instance;
	struct channel *channel;
	struct peer *next_ack; /* list of those with ack_due */
	struct post_peer_info info;
};

/* A link and its place in the poll set. */
struct line {
	struct link *link;
	struct peer *peer;  /* of a dialing link; NULL for a listening one */
	bool ready;         /* may have something to receive */
	bool polls_write;
	uint32_t index;
};

#define POST_QUEUE 4

struct post {
	struct post_options options;
	int epoll;
	struct line *lines[LINKS_MOST];
	uint32_t n_lines, turn;
	struct peer **slots; /* (peers_most) */
	uint16_t *uses;      /* (peers_most) */
	struct peer *acks;
	struct post_message queue[POST_QUEUE];
	unsigned n_queue;
	void *lent;          /* what the last message's data lies in */
	post_peer_id leaving; /* forgotten at the next post_receive */
	int64_t sweep_us;    /* when timeouts are next looked at */
	size_t assembling_bytes;
	struct post_counters counters;
};

static void flush_acks(struct post *p, int64_t now_us);

/* ---- opening and closing ---- */

static void fill(size_t *value, size_t otherwise)
{
	if (*value == 0)
		*value = otherwise;
}

static int check_options(struct post_options *o, struct error *err)
{
	if (o->identity == NULL)
		return error_set(err, -EINVAL, "a post needs an identity");
	fill(&o->chunk_bytes, MIB);
	fill(&o->message_most_bytes, 256 * MIB);
	fill(&o->retained_most_bytes, 256 * MIB);
	fill(&o->assembling_most_bytes, 1024 * MIB);
	if (o->peers_most == 0)
		o->peers_most = 1100;
	if (o->silence_us == 0)
		o->silence_us = 5000000;
	if (o->rekey_us == 0)
		o->rekey_us = INT64_C(3600000000);
	if (o->chunk_bytes < LINK_CHUNK_LEAST || o->chunk_bytes > CHUNK_MOST)
		return error_set(err, -EINVAL, "chunk_bytes is %zu: expected %d to %zu", o->chunk_bytes,
			LINK_CHUNK_LEAST, CHUNK_MOST);
	if (o->peers_most > 60000)
		return error_set(err, -EINVAL, "peers_most is %u: expected at most 60000",
			o->peers_most);
	if (o->silence_us < 1000)
		return error_set(err, -EINVAL, "silence_us is %lld: expected at least 1000",
			(long long)o->silence_us);
	return 0;
}

int post_open(struct post **out, const struct post_options *options, struct error *err)
{
	struct post_options o = *options;
	int rc = check_options(&o, err);
	if (rc < 0)
		return rc;
	if (sodium_init() < 0)
		return error_set(err, -EIO, "the system gives no randomness");
	struct post *p = calloc(1, sizeof(*p));
	if (p == NULL)
		return error_set(err, -ENOMEM, "out of memory");
	p->options = o;
	p->sweep_us = INT64_MAX;
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll < 0) {
		rc = error_set(err, -errno, "epoll: %s", strerror(errno));
		goto free_post;
	}
	p->slots = calloc(o.peers_most, sizeof(struct peer *));
	p->uses = malloc(o.peers_most * sizeof(*p->uses));
	if (p->slots == NULL || p->uses == NULL) {
		rc = error_set(err, -ENOMEM, "out of memory");
		goto free_slots;
	}
	randombytes_buf(p->uses, o.peers_most * sizeof(*p->uses));
	*out = p;
	return 0;

free_slots:
	free(p->slots);
	free(p->uses);
	close(p->epoll);
free_post:
	free(p);
	return rc;
}

static void peer_free(struct post *p, struct peer *peer)
{
	for (struct peer **at = &p->acks; *at != NULL; at = &(*at)->next_ack) {
		if (*at == peer) {
			*at = peer->next_ack;
			break;
		}
	}
	if (peer->session != 0)
		p->counters.peers_up--;
	p->counters.retained_bytes -= channel_retained(peer->channel);
	p->counters.peers--;
	channel_free(peer->channel);
	p->slots[peer->id & SLOT_MASK] = NULL;
	free(peer);
}

static void line_close(struct post *p, struct line *line)
{
	p->n_lines--;
	p->lines[line->index] = p->lines[p->n_lines];
	p->lines[line->index]->index = line->index;
	link_close(line->link); /* its descriptors leave the epoll set as they close */
	free(line);
}

void post_close(struct post *p)
{
	if (p == NULL)
		return;
	flush_acks(p, 0); /* as far as they leave at once */
	link_release(p->lent);
	for (uint32_t i = 0; i < p->options.peers_most; i++) {
		if (p->slots[i] != NULL)
			peer_free(p, p->slots[i]);
	}
	while (p->n_lines > 0)
		line_close(p, p->lines[0]);
	close(p->epoll);
	free(p->slots);
	free(p->uses);
	free(p);
}

/* ---- peers ---- */

static struct peer *peer_find(const struct post *p, post_peer_id id)
{
	uint32_t slot = id & SLOT_MASK;
	if (id == 0 || slot >= p->options.peers_most || p->slots[slot] == NULL ||
	    p->slots[slot]->id != id)
		return NULL;
	return p->slots[slot];
}

static uint8_t *allocate_message(size_t size)
{
	return link_buffer(size);
}

static void release_message(void *memory)
{
	link_buffer_free(memory);
}

static struct peer *peer_new(struct post *p, struct line *line, bool dialed)
{
	uint32_t slot = 0;
	while (slot < p->options.peers_most && p->slots[slot] != NULL)
		slot++;
	if (slot == p->options.peers_most)
		return NULL;
	struct peer *peer = calloc(1, sizeof(*peer));
	if (peer == NULL)
		return NULL;
	const struct channel_options options = {
		.message_most_bytes = p->options.message_most_bytes,
		.retained_most_bytes = p->options.retained_most_bytes,
		.window_bytes = dialed ? DIALED_WINDOW : TAKEN_WINDOW,
		.window_most_bytes = dialed ? DIALED_WINDOW_MOST : TAKEN_WINDOW_MOST,
		.assembling_bytes = &p->assembling_bytes,
		.assembling_most_bytes = p->options.assembling_most_bytes,
		.alloc = allocate_message,
		.release = release_message,
	};
	if (channel_new(&peer->channel, &options) < 0) {
		free(peer);
		return NULL;
	}
	p->uses[slot]++;
	if (p->uses[slot] == 0)
		p->uses[slot] = 1; /* so that no number is 0 */
	peer->id = (uint32_t)p->uses[slot] << 16 | slot;
	peer->line = line;
	peer->info.dialed = dialed;
	p->slots[slot] = peer;
	p->counters.peers++;
	return peer;
}

static struct peer *peer_of_key(const struct post *p, const struct keys_public *key,
	uint64_t instance)
{
	for (uint32_t i = 0; i < p->options.peers_most; i++) {
		struct peer *peer = p->slots[i];
		if (peer != NULL && !peer->info.dialed && keys_equal(&peer->info.key, key) &&
		    (instance == 0 || peer->info.incarnation == instance))
			return peer;
	}
	return NULL;
}

/* link.h: what we are called by that process already. */
static uint64_t known_instance(void *context, const struct keys_public *key, uint64_t instance)
{
	const struct peer *peer = peer_of_key(context, key, instance);
	return peer == NULL ? 0 : peer->own_instance;
}

/* ---- links ---- */

static int watch(struct post *p, struct line *line, int fd, int operation)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = line};
	return epoll_ctl(p->epoll, operation, fd, &event) < 0 ? -errno : 0;
}

static struct link_options link_options_of(struct post *p)
{
	return (struct link_options){
		.identity = p->options.identity,
		.admitted = p->options.admitted,
		.roles = p->options.roles,
		.sessions_most = p->options.peers_most + 128,
		.frame_most = (uint32_t)(p->options.chunk_bytes + POST_FRAME_HEAD + LINK_OVERHEAD),
		.silence_us = p->options.silence_us,
		.rekey_us = p->options.rekey_us,
		.no_aes = p->options.no_aes,
		.hook = p->options.hook,
		.known = known_instance,
		.known_context = p,
		.counters = &p->counters.link,
	};
}

static int line_new(struct post *p, struct line **out, struct error *err)
{
	if (p->n_lines == LINKS_MOST)
		return error_set(err, -ENOSPC, "a process may have %d sockets", LINKS_MOST);
	*out = calloc(1, sizeof(**out));
	return *out == NULL ? error_set(err, -ENOMEM, "out of memory") : 0;
}

static int line_add(struct post *p, struct line *line, struct error *err)
{
	int rc = watch(p, line, link_read_fd(line->link), EPOLL_CTL_ADD);
	if (rc < 0)
		return error_set(err, rc, "epoll: %s", strerror(-rc));
	line->index = p->n_lines;
	line->ready = true;
	p->lines[p->n_lines++] = line;
	return 0;
}

int post_listen(struct post *p, const char *address, char *bound, struct error *err)
{
	struct line *line;
	struct link_options options = link_options_of(p);
	if (p->options.admitted == NULL)
		return error_set(err, -EINVAL, "to listen, a post needs a list of the admitted");
	int rc = line_new(p, &line, err);
	if (rc < 0)
		return rc;
	rc = link_listen(&line->link, &options, address, bound, err);
	if (rc == 0)
		rc = line_add(p, line, err);
	if (rc < 0) {
		link_close(line->link);
		free(line);
	}
	return rc;
}

int post_dial(struct post *p, const char *address, const struct keys_public *key,
	post_peer_id *out, struct error *err)
{
	struct line *line;
	struct link_options options = link_options_of(p);
	int rc = line_new(p, &line, err);
	if (rc < 0)
		return rc;
	line->peer = peer_new(p, line, true);
	if (line->peer == NULL) {
		free(line);
		return error_set(err, -ENOSPC, "no room for another peer (peers_most is %u)",
			p->options.peers_most);
	}
	line->peer->info.key = *key;
	while (line->peer->own_instance == 0)
		randombytes_buf(&line->peer->own_instance, sizeof(uint64_t));
	rc = link_dial(&line->link, &options, address, key, line->peer->own_instance, err);
	if (rc == 0)
		rc = line_add(p, line, err);
	if (rc < 0) {
		link_close(line->link);
		peer_free(p, line->peer);
		free(line);
		return rc;
	}
	*out = line->peer->id;
	return 0;
}

/* Wakes the poll when a full buffer has room again. */
static void watch_write(struct post *p, struct line *line)
{
	bool wanted = link_blocked(line->link);
	int fd = link_write_fd(line->link);
	if (fd < 0 || wanted == line->polls_write)
		return;
	if (watch(p, line, fd, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL) == 0)
		line->polls_write = wanted;
}

/* ---- sending ---- */

static int send_frame(struct post *p, struct peer *peer, const struct post_frame *f,
	int64_t now_us)
{
	uint8_t *content = link_buffer(POST_FRAME_HEAD + f->chunk.size);
	if (content == NULL)
		return -ENOMEM;
	post_frame_put_head(content, f);
	if (f->chunk.size > 0)
		memcpy(content + POST_FRAME_HEAD, f->chunk.data, f->chunk.size);
	int rc = link_send(peer->line->link, peer->session, content,
		POST_FRAME_HEAD + f->chunk.size, now_us);
	watch_write(p, peer->line);
	if (rc == 0) {
		peer->unacked_frames = 0;
		peer->unacked_bytes = 0;
		peer->gap = false;
	}
	return rc;
}

static void note_deadline(struct post *p, const struct peer *peer, int64_t now_us)
{
	int64_t at = channel_deadline_us(peer->channel);
	if (at < now_us + SWEEP_US)
		at = now_us + SWEEP_US;
	if (channel_deadline_us(peer->channel) != INT64_MAX && at < p->sweep_us)
		p->sweep_us = at;
}

/* Sends what the channel lets go. */
static void pump(struct post *p, struct peer *peer, int64_t now_us)
{
	struct post_frame f = {.kind = POST_FRAME_CHUNK};
	uint64_t resent = channel_resent(peer->channel);
	if (peer->session == 0)
		return;
	while (channel_next(peer->channel, &f.chunk)) {
		f.ack = channel_expected(peer->channel);
		f.gap = peer->gap;
		if (send_frame(p, peer, &f, now_us) < 0)
			break;
		channel_sent(peer->channel, &f.chunk, now_us);
	}
	p->counters.resent_frames += channel_resent(peer->channel) - resent;
	note_deadline(p, peer, now_us);
}

static int send_lossy(struct post *p, struct peer *peer, const struct post_part *parts,
	size_t n, size_t total, int64_t now_us)
{
	struct post_frame f = {.kind = POST_FRAME_LOSSY, .gap = peer->gap,
		.ack = channel_expected(peer->channel), .chunk = {.total = total}};
	if (peer->session == 0) {
		p->counters.lossy_dropped++;
		return -ENOTCONN;
	}
	if (total > peer->lossy_most)
		return -EMSGSIZE;
	uint8_t *content = link_buffer(POST_FRAME_HEAD + total);
	if (content == NULL)
		return -ENOMEM;
	post_frame_put_head(content, &f);
	size_t filled = POST_FRAME_HEAD;
	for (size_t i = 0; i < n; i++) {
		if (parts[i].size > 0)
			memcpy(content + filled, parts[i].data, parts[i].size);
		filled += parts[i].size;
	}
	int rc = link_send(peer->line->link, peer->session, content, filled, now_us);
	watch_write(p, peer->line);
	if (rc < 0)
		p->counters.lossy_dropped++;
	return rc;
}

static int send_reliable(struct post *p, struct peer *peer, const struct post_part *parts,
	size_t n, int64_t now_us)
{
	struct channel_part small[8], *copy = small;
	if (n > sizeof(small) / sizeof(small[0])) {
		copy = malloc(n * sizeof(*copy));
		if (copy == NULL)
			return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		copy[i] = (struct channel_part){parts[i].data, parts[i].size};
	size_t before = channel_retained(peer->channel);
	int rc = channel_queue(peer->channel, copy, n);
	if (copy != small)
		free(copy);
	if (rc < 0)
		return rc;
	p->counters.retained_bytes += channel_retained(peer->channel) - before;
	pump(p, peer, now_us);
	return 0;
}

int post_send(struct post *p, post_peer_id id, const struct post_part *parts, size_t n,
	enum post_flags flags, int64_t now_us)
{
	struct peer *peer = peer_find(p, id);
	size_t total = 0;
	if (peer == NULL)
		return -ENOENT;
	for (size_t i = 0; i < n; i++) {
		if (parts[i].size > p->options.message_most_bytes - total)
			return -EMSGSIZE;
		total += parts[i].size;
	}
	int rc = (flags & POST_LOSSY) != 0 ? send_lossy(p, peer, parts, n, total, now_us)
					   : send_reliable(p, peer, parts, n, now_us);
	if (rc < 0)
		return rc;
	peer->info.sent_messages++;
	peer->info.sent_bytes += total;
	p->counters.sent_messages++;
	p->counters.sent_bytes += total;
	return 0;
}

size_t post_room(const struct post *p, post_peer_id id)
{
	const struct peer *peer = peer_find(p, id);
	return peer == NULL ? 0 : channel_room(peer->channel);
}

bool post_idle(const struct post *p, post_peer_id id)
{
	if (id != 0) {
		const struct peer *peer = peer_find(p, id);
		return peer == NULL || channel_empty(peer->channel);
	}
	for (uint32_t i = 0; i < p->options.peers_most; i++) {
		if (p->slots[i] != NULL && !channel_empty(p->slots[i]->channel))
			return false;
	}
	return true;
}

/* ---- acknowledging ---- */

static void send_ack(struct post *p, struct peer *peer, int64_t now_us)
{
	const struct post_frame f = {.kind = POST_FRAME_ACK, .gap = peer->gap,
		.ack = channel_expected(peer->channel)};
	if (peer->session != 0)
		(void)send_frame(p, peer, &f, now_us);
	peer->unacked_frames = 0;
}

/* Those that something was sent to meanwhile have their acknowledgement already. */
static void flush_acks(struct post *p, int64_t now_us)
{
	while (p->acks != NULL) {
		struct peer *peer = p->acks;
		p->acks = peer->next_ack;
		peer->ack_due = false;
		peer->next_ack = NULL;
		if (peer->unacked_frames > 0)
			send_ack(p, peer, now_us);
	}
}

static void owe_ack(struct post *p, struct peer *peer, size_t size, int64_t now_us)
{
	peer->unacked_frames++;
	peer->unacked_bytes += size;
	if (peer->unacked_frames >= ACK_FRAMES || peer->unacked_bytes >= ACK_BYTES) {
		send_ack(p, peer, now_us);
	} else if (!peer->ack_due) {
		peer->ack_due = true;
		peer->next_ack = p->acks;
		p->acks = peer;
	}
}

/* ---- events ---- */

static void tell(struct post *p, const struct post_message *m)
{
	if (p->n_queue < POST_QUEUE)
		p->queue[p->n_queue++] = *m;
}

static bool next_queued(struct post *p, struct post_message *out)
{
	if (p->n_queue == 0)
		return false;
	*out = p->queue[0];
	p->n_queue--;
	memmove(&p->queue[0], &p->queue[1], p->n_queue * sizeof(p->queue[0]));
	return true;
}

/* The peer a new session belongs to. A key with one process at a time keeps its peer when the
 * process is a new one; each process of a console's key is a peer of its own. */
static struct peer *peer_for(struct post *p, struct line *line, const struct link_event *e)
{
	if (line->peer != NULL)
		return line->peer;
	bool many = e->role == KEYS_CONSOLE || e->role == KEYS_WATCHER;
	struct peer *peer = peer_of_key(p, &e->key, many ? e->instance : 0);
	if (peer == NULL) {
		peer = peer_new(p, line, false);
		if (peer != NULL)
			peer->ephemeral = many;
	}
	return peer;
}

static void drop_retained(struct post *p, struct peer *peer)
{
	p->counters.retained_bytes -= channel_retained(peer->channel);
	uint64_t lost = channel_drop(peer->channel);
	p->counters.lost_messages += lost;
	if (lost > 0)
		tell(p, &(struct post_message){.kind = POST_LOST, .peer = peer->id, .lost = lost});
}

static void on_up(struct post *p, struct line *line, const struct link_event *e, int64_t now_us)
{
	struct peer *peer = peer_for(p, line, e);
	if (peer == NULL) {
		p->counters.link.refused[LINK_TOO_MANY]++;
		link_drop(line->link, e->session);
		return;
	}
	bool same = peer->known && peer->info.incarnation == e->instance &&
		    peer->own_instance == e->own_instance;
	bool restarted = peer->known && !same, was_up = peer->session != 0;
	size_t room = e->frame_most - POST_FRAME_HEAD - LINK_OVERHEAD;

	if (peer->line != line && was_up)
		link_drop(peer->line->link, peer->session);
	peer->line = line;
	peer->session = e->session;
	peer->own_instance = e->own_instance;
	peer->info.key = e->key;
	peer->info.role = e->role;
	memcpy(peer->info.name, e->name, sizeof(peer->info.name));
	peer->info.incarnation = e->instance;
	peer->info.heard_us = now_us;
	peer->lossy_most = room;
	peer->known = true;
	link_set_tag(line->link, e->session, peer->id);
	if (restarted)
		drop_retained(p, peer);
	if (same)
		channel_resume(peer->channel);
	else
		channel_start(peer->channel, peer->info.dialed || room < TAKEN_CHUNK ? room : TAKEN_CHUNK);
	if (!was_up)
		p->counters.peers_up++;
	if (!was_up || restarted)
		tell(p, &(struct post_message){.kind = POST_UP, .peer = peer->id,
			.restarted = restarted});
	pump(p, peer, now_us);
}

static struct peer *peer_of_session(struct post *p, struct line *line, const struct link_event *e)
{
	struct peer *peer = line->peer != NULL ? line->peer : peer_find(p, (post_peer_id)e->tag);
	/* The frame that made a session live was queued before its tag was set. */
	for (uint32_t i = 0; peer == NULL && i < p->options.peers_most; i++) {
		struct peer *other = p->slots[i];
		if (other != NULL && other->line == line && other->session == e->session)
			peer = other;
	}
	return peer != NULL && peer->line == line && peer->session == e->session ? peer : NULL;
}

static void on_down(struct post *p, struct line *line, const struct link_event *e)
{
	struct peer *peer = peer_of_session(p, line, e);
	if (peer == NULL)
		return; /* it has another session already */
	peer->session = 0;
	p->counters.peers_up--;
	channel_pause(peer->channel);
	tell(p, &(struct post_message){.kind = POST_DOWN, .peer = peer->id, .reason = e->reason});
}

/* What the frame's data becomes: a message for the caller, or nothing yet. */
static bool on_content(struct post *p, struct peer *peer, const struct post_frame *f,
	struct link_event *e, int64_t now_us, struct post_message *out)
{
	uint8_t *message = NULL;
	*out = (struct post_message){.kind = POST_DATA, .peer = peer->id, .data = f->chunk.data,
		.size = f->chunk.size, .owner = e->owner};
	if (f->kind == POST_FRAME_ACK)
		return false;
	if (f->kind == POST_FRAME_LOSSY) {
		out->lossy = true;
		e->owner = NULL;
		return true;
	}
	enum channel_taken taken = channel_take(peer->channel, &f->chunk, &message);
	peer->gap = peer->gap || taken == CHANNEL_GAP;
	if (taken == CHANNEL_BAD)
		p->counters.link.refused[LINK_MALFORMED]++;
	else
		owe_ack(p, peer, f->chunk.size, now_us);
	p->counters.gap_frames += taken == CHANNEL_GAP;
	p->counters.duplicate_frames += taken == CHANNEL_DUPLICATE;
	peer->info.duplicate_frames += taken == CHANNEL_DUPLICATE;
	p->counters.deferred_frames += taken == CHANNEL_DEFERRED;
	if (taken == CHANNEL_COMPLETE) {
		out->data = message;
		out->size = (size_t)f->chunk.total;
		out->owner = message - LINK_BUFFER_HEAD;
		return true;
	}
	if (taken != CHANNEL_WHOLE)
		return false;
	e->owner = NULL;
	return true;
}

/* True when *out is to be told. */
static bool on_data(struct post *p, struct line *line, struct link_event *e, int64_t now_us,
	struct post_message *out)
{
	struct peer *peer = peer_of_session(p, line, e);
	struct post_frame f;
	bool told = false;
	if (peer == NULL)
		goto release;
	if (post_frame_parse(e->data, e->size, &f) < 0) {
		p->counters.link.refused[LINK_MALFORMED]++;
		goto release;
	}
	peer->info.heard_us = now_us;
	size_t retained = channel_retained(peer->channel);
	channel_acked(peer->channel, f.ack, f.gap, now_us);
	p->counters.retained_bytes -= retained - channel_retained(peer->channel);
	told = on_content(p, peer, &f, e, now_us, out);
	pump(p, peer, now_us);
	if (told) {
		peer->info.received_messages++;
		peer->info.received_bytes += out->size;
		p->counters.received_messages++;
		p->counters.received_bytes += out->size;
	}
release:
	link_release(e->owner);
	return told;
}

/* ---- the loop's calls ---- */

int post_fd(const struct post *p)
{
	return p->epoll;
}

static void look(struct post *p)
{
	struct epoll_event events[64];
	int n = epoll_wait(p->epoll, events, 64, 0);
	for (int i = 0; i < n; i++)
		((struct line *)events[i].data.ptr)->ready = true;
}

/* One event of one link. True when *out is to be told. */
static bool receive_from(struct post *p, struct line *line, int64_t now_us,
	struct post_message *out)
{
	struct link_event e;
	if (link_receive(line->link, now_us, &e) < 0) {
		line->ready = false;
		watch_write(p, line);
		return false;
	}
	switch (e.kind) {
	case LINK_UP:
		on_up(p, line, &e, now_us);
		break;
	case LINK_DOWN:
		on_down(p, line, &e);
		break;
	case LINK_DATA:
		if (!on_data(p, line, &e, now_us, out))
			return false;
		p->lent = out->owner;
		return true;
	case LINK_NO:
		if (line->peer != NULL)
			tell(p, &(struct post_message){.kind = POST_REFUSED, .peer = line->peer->id,
				.reason = e.reason});
		break;
	}
	return false;
}

static struct line *next_ready(struct post *p)
{
	for (uint32_t i = 0; i < p->n_lines; i++) {
		struct line *line = p->lines[(p->turn + i) % p->n_lines];
		if (line->ready) {
			p->turn = (line->index + 1) % p->n_lines;
			return line;
		}
	}
	return NULL;
}

static void tidy_up(struct post *p)
{
	link_release(p->lent);
	p->lent = NULL;
	if (p->leaving != 0) {
		const struct peer *peer = peer_find(p, p->leaving);
		if (peer != NULL && peer->session == 0)
			(void)post_forget(p, p->leaving);
		p->leaving = 0;
	}
}

int post_receive(struct post *p, int64_t now_us, struct post_message *out)
{
	bool looked = false;
	tidy_up(p);
	for (unsigned turn = 0; turn < TURNS_PER_CALL; turn++) {
		if (next_queued(p, out)) {
			const struct peer *peer = peer_find(p, out->peer);
			if (out->kind == POST_DOWN && peer != NULL && peer->ephemeral)
				p->leaving = out->peer;
			return 0;
		}
		struct line *line = next_ready(p);
		if (line != NULL) {
			if (receive_from(p, line, now_us, out))
				return 0;
		} else if (!looked) {
			looked = true;
			look(p);
		} else {
			break;
		}
	}
	flush_acks(p, now_us);
	return -EAGAIN;
}

void post_keep(struct post *p, struct post_message *m)
{
	if (p->lent != NULL && p->lent == m->owner)
		p->lent = NULL;
}

void post_release(struct post_message *m)
{
	link_release(m->owner);
	m->owner = NULL;
	m->data = NULL;
	m->size = 0;
}

/* Timeouts of all peers, at most every SWEEP_US. */
static void sweep(struct post *p, int64_t now_us)
{
	p->sweep_us = INT64_MAX;
	for (uint32_t i = 0; i < p->options.peers_most; i++) {
		struct peer *peer = p->slots[i];
		if (peer == NULL || peer->session == 0)
			continue;
		if (channel_deadline_us(peer->channel) <= now_us) {
			channel_tick(peer->channel, now_us);
			pump(p, peer, now_us);
		} else {
			note_deadline(p, peer, now_us);
		}
	}
}

void post_tick(struct post *p, int64_t now_us)
{
	for (uint32_t i = 0; i < p->n_lines; i++) {
		struct line *line = p->lines[i];
		bool blocked = link_blocked(line->link);
		link_tick(line->link, now_us);
		if (link_deadline_us(line->link) == INT64_MIN)
			line->ready = true; /* it has an event that no descriptor tells of */
		watch_write(p, line);
		if (blocked && !link_blocked(line->link) && line->peer != NULL)
			pump(p, line->peer, now_us);
	}
	if (now_us >= p->sweep_us)
		sweep(p, now_us);
}

int64_t post_deadline_us(const struct post *p)
{
	int64_t at = p->sweep_us;
	if (p->n_queue > 0 || p->acks != NULL)
		return INT64_MIN;
	for (uint32_t i = 0; i < p->n_lines; i++) {
		int64_t theirs = link_deadline_us(p->lines[i]->link);
		if (p->lines[i]->ready)
			return INT64_MIN;
		if (theirs < at)
			at = theirs;
	}
	return at;
}

int post_forget(struct post *p, post_peer_id id)
{
	struct peer *peer = peer_find(p, id);
	if (peer == NULL)
		return -ENOENT;
	struct line *line = peer->line;
	if (peer->info.dialed)
		line_close(p, line);
	else
		link_drop(line->link, peer->session);
	unsigned kept = 0;
	for (unsigned i = 0; i < p->n_queue; i++) {
		if (p->queue[i].peer != id)
			p->queue[kept++] = p->queue[i];
	}
	p->n_queue = kept;
	peer_free(p, peer);
	return 0;
}

/* ---- looking ---- */

int post_peer(const struct post *p, post_peer_id id, struct post_peer_info *out)
{
	const struct peer *peer = peer_find(p, id);
	if (peer == NULL)
		return -ENOENT;
	*out = peer->info;
	out->up = peer->session != 0;
	out->round_trip_us = channel_round_trip_us(peer->channel);
	out->retained_bytes = channel_retained(peer->channel);
	out->resent_frames = channel_resent(peer->channel);
	return 0;
}

post_peer_id post_next_peer(const struct post *p, post_peer_id after)
{
	uint32_t slot = after == 0 ? 0 : (after & SLOT_MASK) + 1;
	for (; slot < p->options.peers_most; slot++) {
		if (p->slots[slot] != NULL)
			return p->slots[slot]->id;
	}
	return 0;
}

void post_count(const struct post *p, struct post_counters *out)
{
	*out = p->counters;
	out->assembling_bytes = p->assembling_bytes;
	for (uint32_t i = 0; i < p->n_lines; i++)
		link_count_connections(p->lines[i]->link, &out->link);
}
