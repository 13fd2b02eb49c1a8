/* Tests reading the file of a fleet's hosts, and which lines are refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tests/test.h"
#include "cli/fleet/hosts.h"

static struct hosts parse_good(const char *text)
{
	struct hosts hosts = { 0 };
	struct error err = { "" };

	if (hosts_parse(&hosts, text, "fleet.txt", &err) != 0)
		fail_msg("%s", err.text);
	return hosts;
}

static void expect_refusal(const char *text, const char *words)
{
	struct hosts hosts = { 0 };
	struct error err = { "" };

	assert_int_not_equal(hosts_parse(&hosts, text, "fleet.txt", &err), 0);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, err.text);
	assert_null(hosts.list);
}

TEST(a_line_has_a_host_and_what_its_agent_shall_know)
{
	struct hosts h =
		parse_good("# a fleet\n"
			   "gpu@203.0.113.7:40022\tname=left place=eu-west device=cuda:all\n"
			   "\n"
			   "m2 # ssh knows its port\r\n"
			   "root@[2001:db8::1]:2222 name=six listen=tcp://0.0.0.0:7702 "
			   "advertise=tcp://[2001:db8::1]:40123\n"
			   "2001:db8::2");

	assert_int_equal(h.n, 4);
	assert_string_equal(h.list[0].target, "gpu@203.0.113.7");
	assert_string_equal(h.list[0].port, "40022");
	assert_string_equal(h.list[0].name, "left");
	assert_string_equal(h.list[0].place, "eu-west");
	assert_string_equal(h.list[0].device, "cuda:all");
	assert_string_equal(h.list[1].target, "m2");
	assert_string_equal(h.list[1].port, "");
	assert_string_equal(h.list[1].name, "m2");
	assert_string_equal(h.list[2].target, "root@2001:db8::1");
	assert_string_equal(h.list[2].port, "2222");
	assert_string_equal(h.list[2].listen, "tcp://0.0.0.0:7702");
	assert_string_equal(h.list[2].advertise, "tcp://[2001:db8::1]:40123");
	assert_string_equal(h.list[3].target, "2001:db8::2");
	assert_string_equal(h.list[3].name, "2001-db8--2");
	assert_ptr_equal(hosts_find(&h, "six"), &h.list[2]);
	assert_null(hosts_find(&h, "seven"));
	hosts_free(&h);
}

TEST(a_bad_line_is_named)
{
	expect_refusal("", "fleet.txt: no host");
	expect_refusal("# nothing\n\n", "no host");
	expect_refusal("m1\nm2:port\n", "fleet.txt, line 2: \"port\" is not a port");
	expect_refusal("m1:0", "is not a port");
	expect_refusal("m1:65536", "is not a port");
	expect_refusal("m1:", "is not a port");
	expect_refusal("[2001:db8::1]22", "expected [ADDRESS]:PORT");
	expect_refusal("m1 nmae=x", "expected name=");
	expect_refusal("m1 name=", "name=: expected a value");
	expect_refusal("m1 name=a\nm2 name=a\n", "line 2: another host is named a");
	expect_refusal("a@m1\nb@m1\n", "another host is named m1");
}

/* ssh would take such a target for an option, or a shell would interpret it. */
TEST(a_host_is_no_option_and_no_command)
{
	expect_refusal("-oProxyCommand=x", "expected USER@HOST:PORT");
	expect_refusal("root@-oProxyCommand", "expected USER@HOST:PORT");
	expect_refusal("m1;reboot", "expected USER@HOST:PORT");
	expect_refusal("$(reboot)", "expected USER@HOST:PORT");
	expect_refusal("`reboot`@m1", "expected USER@HOST:PORT");
	expect_refusal("m1 name=../x", "expected a value");
	expect_refusal("m1 name=-x", "expected a value");
	expect_refusal("m1 place=a'b", "expected a value");
}

TEST(long_texts_are_refused)
{
	char line[4096];
	size_t room = 1 << 16, n = 0;
	char *many = alloc_new(room);

	memset(line, 'a', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	expect_refusal(line, "line 1: the line is too long");
	line[1000] = '\0';
	expect_refusal(line, "the host is too long");
	line[100] = '\0';
	expect_refusal(line, "give name=");
	for (int i = 0; i <= HOSTS_MOST; i++)
		n += (size_t)snprintf(many + n, room - n, "m%d\n", i);
	expect_refusal(many, "more than 1000 hosts");
	free(many);
}
