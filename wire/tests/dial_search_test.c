/* Tests a dialing link that cannot resolve its peer's name, because no thread can be started. */
#include <string.h>

#include "base/tests/test.h"

#define search_new no_search
#include "wire/sessions/dial_search.c"

static unsigned searches;

struct search *no_search(const char *target, const char *last)
{
	(void)target;
	(void)last;
	searches++;
	return NULL;
}

/* The link must try again after growing pauses, and report why it has no address. The link's
 * deadline must not be in the past, because the event loop would then never wait. */
TEST(a_search_without_a_thread_is_tried_again_later)
{
	static struct link link = { .dial.target = "tcp://a.name:7000" };
	int64_t now_us = 1000, pause_us = 0;

	for (unsigned i = 1; i < 4; i++) {
		dial_search_tick(&link, now_us);
		assert_int_equal(searches, i);
		assert_non_null(strstr(link_trouble(&link), "a.name"));
		dial_search_tick(&link, now_us + 1000);
		assert_int_equal(searches, i);
		assert_true(dial_search_deadline_us(&link) > now_us + pause_us);
		pause_us = dial_search_deadline_us(&link) - now_us;
		now_us += pause_us;
	}
}
