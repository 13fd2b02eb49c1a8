/* Tests a link to a name whose address cannot be looked up, because there is no thread for it. */
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

/* The link starts the next search after a pause that grows, and reports why it has no address. A
 * deadline in the past would keep the event loop busy. */
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
