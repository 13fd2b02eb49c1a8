#include "wire/tests/pair.h"

#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/tests/test.h"

/* nanomsg leaks 736 bytes when an ipc address cannot be bound. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:nn_bipc_create\n";
}

void end_new(struct end *e, struct post_options options)
{
	memset(e, 0, sizeof(*e));
	assert_int_equal(keys_generate(&e->id, NULL), 0);
	e->list = keys_list_new();
	options.identity = e->id;
	options.admitted = e->list;
	assert_int_equal(post_open(&e->post, &options, NULL), 0);
}

void end_free(struct end *e)
{
	post_close(e->post);
	keys_list_free(e->list);
	keys_free(e->id);
}

static void open_at(struct pair *p, struct post_options a, struct post_options b,
		    const char *address)
{
	struct error err = {""};
	memset(p, 0, sizeof(*p));
	end_new(&p->a, a);
	end_new(&p->b, b);
	assert_int_equal(keys_list_admit(p->a.list, keys_public_of(p->b.id), KEYS_AGENT, "b", &err),
		0);
	if (post_listen(p->a.post, address, p->address, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(post_dial(p->b.post, p->address, keys_public_of(p->a.id), &p->to_a, &err),
			 0);
}

void pair_open(struct pair *p, struct post_options a, struct post_options b)
{
	open_at(p, a, b, "tcp://127.0.0.1:0");
}

/* The address 0.0.0.0 reaches this machine, but a post treats it as another machine's. */
void pair_open_far(struct pair *p, struct post_options a, struct post_options b)
{
	open_at(p, a, b, "tcp://0.0.0.0:0");
}

void pair_close(struct pair *p)
{
	end_free(&p->a);
	end_free(&p->b);
}

void pair_restart_a(struct pair *p, struct post_options a)
{
	struct error err = {""};
	post_close(p->a.post);
	a.identity = p->a.id;
	a.admitted = p->a.list;
	assert_int_equal(post_open(&p->a.post, &a, NULL), 0);
	if (post_listen(p->a.post, p->address, NULL, &err) != 0)
		fail_msg("%s", err.text);
}

void pair_restart_b(struct pair *p, struct post_options b)
{
	post_close(p->b.post);
	b.identity = p->b.id;
	b.admitted = p->b.list;
	assert_int_equal(post_open(&p->b.post, &b, NULL), 0);
	assert_int_equal(
		post_dial(p->b.post, p->address, keys_public_of(p->a.id), &p->to_a, NULL), 0);
}

void end_turn(struct end *e)
{
	struct post_message m;
	post_tick(e->post, clock_monotonic_us());
	for (int i = 0; i < 64 && post_receive(e->post, clock_monotonic_us(), &m) == 0; i++) {
		e->seen.peer = m.peer;
		switch (m.kind) {
		case POST_UP:
			e->seen.up++;
			e->seen.restarted += m.restarted;
			break;
		case POST_DOWN:
			e->seen.down++;
			e->seen.reason = m.reason;
			break;
		case POST_LOST:
			e->seen.lost += m.lost;
			break;
		case POST_REFUSED:
			e->seen.refused++;
			e->seen.reason = m.reason;
			break;
		case POST_DATA:
			e->seen.data++;
			e->seen.lossy += m.lossy;
			if (e->on_data != NULL)
				e->on_data(e, &m);
			break;
		}
	}
}

void pair_turn(struct pair *p)
{
	struct pollfd fds[2] = {{.fd = post_fd(p->a.post), .events = POLLIN},
		{.fd = post_fd(p->b.post), .events = POLLIN}};
	poll(fds, 2, 1);
	end_turn(&p->a);
	end_turn(&p->b);
}

int send_text(struct post *post, post_peer_id peer, const char *text, enum post_flags flags)
{
	const struct post_part part = {text, strlen(text)};
	return post_send(post, peer, &part, 1, flags, clock_monotonic_us());
}

struct post_counters counters_of(const struct post *post)
{
	struct post_counters c;
	post_count(post, &c);
	return c;
}

void pair_fill_message(uint8_t *to, size_t size, uint64_t number)
{
	struct rng r;
	rng_init(&r, number);
	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t word = i == 0 ? number : rng_next(&r);
		memcpy(to + i, &word, 8);
	}
	for (size_t i = size & ~(size_t)7; i < size; i++)
		to[i] = (uint8_t)number;
}

int pair_mischief(void *context, uint8_t *frame, size_t size)
{
	struct rng *r = context;
	switch (rng_below(r, 25)) {
	case 0:
		return 0;
	case 1:
		return 2;
	case 2:
		return -1;
	case 3:
		frame[rng_below(r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(r, 8));
		return 1;
	default:
		return 1;
	}
}
