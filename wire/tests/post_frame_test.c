/* Tests that the head of a post's frame is parsed as it was written, and that invalid heads are
 * refused. */
#include <errno.h>
#include <string.h>

#include "base/tests/test.h"
#include "wire/delivery/post_frame.h"

enum { ROOM = POST_FRAME_HEAD + 8 * (CHANNEL_RANGES + 1) };

static struct post_frame acknowledgement(unsigned n)
{
	struct post_frame f = {
		.kind = POST_FRAME_ACK, .class = POST_CLASS_SUMS, .ack = 77, .n_ranges = n
	};

	for (unsigned i = 0; i < n; i++)
		f.ranges[i] = (struct channel_range){ 3 + 100 * i, 10 + i };
	return f;
}

TEST(an_acknowledgement_is_read_as_written)
{
	for (unsigned n = 0; n <= CHANNEL_RANGES; n++) {
		const struct post_frame f = acknowledgement(n);
		struct post_frame r = { 0 };
		uint8_t bytes[ROOM];
		size_t size = post_frame_put_head(bytes, &f);

		assert_int_equal(size, POST_FRAME_HEAD + 8 * n);
		assert_int_equal(post_frame_parse(bytes, size, &r), 0);
		assert_int_equal(r.kind, POST_FRAME_ACK);
		assert_int_equal(r.class, POST_CLASS_SUMS);
		assert_int_equal(r.ack, 77);
		assert_int_equal(r.n_ranges, n);
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(r.ranges[i].from, 3 + 100 * i);
			assert_int_equal(r.ranges[i].length, 10 + i);
		}
		assert_int_equal(post_frame_parse(bytes, size - 1, &r), -EBADMSG);
		assert_int_equal(post_frame_parse(bytes, size + 1, &r), -EBADMSG);
	}
}

TEST(a_chunk_is_read_as_written)
{
	const struct post_frame f = {
		.kind = POST_FRAME_CHUNK,
		.class = POST_CLASS_SUMS,
		.ack = 5,
		.chunk = { .number = 1u << 20, .index = 3, .total = 70000, .chunks = 9 }
	};
	uint8_t bytes[POST_FRAME_HEAD + 4];
	struct post_frame r = { 0 };

	assert_int_equal(post_frame_put_head(bytes, &f), POST_FRAME_HEAD);
	memcpy(bytes + POST_FRAME_HEAD, "abcd", 4);
	assert_int_equal(post_frame_parse(bytes, sizeof(bytes), &r), 0);
	assert_int_equal(r.chunk.number, 1u << 20);
	assert_int_equal(r.chunk.index, 3);
	assert_int_equal(r.chunk.total, 70000);
	assert_int_equal(r.chunk.chunks, 9);
	assert_int_equal(r.chunk.size, 4);
	assert_memory_equal(r.chunk.data, "abcd", 4);
	bytes[2] = 1; /* only an ACK frame may have ranges */
	assert_int_equal(post_frame_parse(bytes, sizeof(bytes), &r), -EBADMSG);
}

/* Parses an ACK frame with two ranges. The first range covers the chunks 3 to 12. The arguments
 * give the second range. */
static int second_range(uint32_t from, uint32_t length)
{
	struct post_frame f = acknowledgement(2), r;
	uint8_t bytes[ROOM];

	f.ranges[1] = (struct channel_range){ from, length };
	return post_frame_parse(bytes, post_frame_put_head(bytes, &f), &r);
}

/* The ranges of an ACK frame must ascend and must not touch. Reading the ranges therefore takes a
 * bounded time, however many chunks they cover. */
TEST(ranges_ascend_and_lie_apart)
{
	assert_int_equal(second_range(14, 1), 0);
	assert_int_equal(second_range(13, 1), -EBADMSG); /* adjacent ranges would be one range */
	assert_int_equal(second_range(5, 1), -EBADMSG);
	assert_int_equal(second_range(2, 1), -EBADMSG);
	assert_int_equal(second_range(14, 0), -EBADMSG);
	assert_int_equal(second_range(14, CHANNEL_AHEAD), 0);
	assert_int_equal(second_range(14, CHANNEL_AHEAD + 1), -EBADMSG);
	assert_int_equal(second_range(CHANNEL_AHEAD, 1), 0);
	assert_int_equal(second_range(CHANNEL_AHEAD + 1, 1), -EBADMSG);
}

/* Unused bytes must be zero, and kinds and classes must exist. */
TEST(other_heads_are_refused)
{
	static const struct {
		unsigned at;
		uint8_t byte;
	} wrong[] = { { 0, 0 },
		      { 0, POST_FRAME_PONG + 1 },
		      { 1, POST_CLASSES },
		      { 2, CHANNEL_RANGES + 1 },
		      { 3, 1 },
		      { 36, 1 },
		      { 43, 1 } };
	const struct post_frame f = acknowledgement(0);
	uint8_t good[ROOM];
	size_t size = post_frame_put_head(good, &f);
	struct post_frame r;

	assert_int_equal(post_frame_parse(good, POST_FRAME_HEAD - 1, &r), -EBADMSG);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint8_t bytes[ROOM];

		memcpy(bytes, good, size);
		bytes[wrong[i].at] = wrong[i].byte;
		assert_int_equal(post_frame_parse(bytes, size, &r), -EBADMSG);
	}
}

TEST(a_ping_has_bounded_padding)
{
	static uint8_t bytes[POST_FRAME_HEAD + POST_PROBE_LARGE + 1];
	struct post_frame f = { .kind = POST_FRAME_PING, .chunk = { .number = 5 } }, r;

	post_frame_put_head(bytes, &f);
	assert_int_equal(post_frame_parse(bytes, POST_FRAME_HEAD, &r), 0);
	assert_int_equal(post_frame_parse(bytes, sizeof(bytes) - 1, &r), 0);
	assert_int_equal(r.chunk.number, 5);
	assert_int_equal(post_frame_parse(bytes, sizeof(bytes), &r), -EBADMSG);
	f.kind = POST_FRAME_PONG;
	post_frame_put_head(bytes, &f);
	assert_int_equal(post_frame_parse(bytes, POST_FRAME_HEAD + 1, &r), -EBADMSG);
}
