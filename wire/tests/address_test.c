/* Tests how zones are added to addresses and removed, and which addresses lead each machine to
 * itself. */
#include "wire/address.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/tests/test.h"

TEST(some_addresses_mean_whichever_machine_reads_them)
{
	static const char *const own[] = {"tcp://localhost:1", "tcp://LocalHost:1",
		"tcp://m1.localhost:1", "tcp://127.0.0.1:1", "tcp://127.1:1", "tcp://127.0.1.1:1",
		"tcp://0.0.0.0:1", "tcp://*:1", "tcp://[::1]:1", "tcp://[::]:1",
		"tcp://[::ffff:127.0.0.1]:1"};
	static const char *const others[] = {"tcp://10.0.0.1:1", "tcp://128.0.0.1:1", "tcp://m1:1",
		"tcp://localhost.example:1", "tcp://[fe80::1]:1", "tcp://[fd00::1]:1",
		"ipc:///tmp/socket", "nonsense", ""};
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!address_is_own(own[i]))
			fail_msg("%s", own[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (address_is_own(others[i]))
			fail_msg("%s", others[i]);
}

TEST(addresses_of_this_machine_are_known)
{
	assert_true(address_is_here("tcp://127.0.0.1:1"));
	assert_true(address_is_here("tcp://127.3.2.1:1"));
	/* An address reserved for documentation, which no interface has. */
	assert_false(address_is_here("tcp://192.0.2.1:1"));
	assert_false(address_is_here("tcp://[2001:db8::1]:1"));
	/* Names are not resolved. */
	assert_false(address_is_here("tcp://localhost:1"));
	assert_false(address_is_here(""));
}

TEST(a_port_is_a_number)
{
	char host[LINK_ADDRESS_SIZE], port[8];

	assert_true(address_split("tcp://[::1]:65535", host, port));
	assert_string_equal(host, "::1");
	assert_string_equal(port, "65535");
	assert_false(address_split("tcp://m1:65536", host, port));
	assert_false(address_split("tcp://m1:", host, port));
	assert_false(address_split("tcp://m1", host, port));
	assert_false(address_split("tcp://m1:1/", host, port));
	assert_false(address_split("tcp://m1:-1", host, port));
}

static void expect_announced(const char *address, const char *expected)
{
	char out[LINK_ADDRESS_SIZE];

	address_announced(out, address);
	assert_string_equal(out, expected);
}

TEST(a_zone_is_not_announced)
{
	expect_announced("tcp://[fe80::1%eth0]:7701", "tcp://[fe80::1]:7701");
	expect_announced("tcp://[fe80::1]:7701", "tcp://[fe80::1]:7701");
	expect_announced("tcp://10.0.0.1:7701", "tcp://10.0.0.1:7701");
	expect_announced("ipc:///tmp/50%[a]", "ipc:///tmp/50%[a]");
	expect_announced("tcp://[fe80::1]:7701%", "tcp://[fe80::1]:7701%");
}

static void expect_zone(const char *address, const char *zone, const char *expected)
{
	char out[LINK_ADDRESS_SIZE];

	assert_int_equal(address_with_zone(out, address, zone, NULL), 0);
	assert_string_equal(out, expected);
}

TEST(an_announced_address_gets_a_zone_of_this_machine)
{
	char zone[LINK_ADDRESS_SIZE];

	expect_zone("tcp://[fe80::1]:7701", "wlan0", "tcp://[fe80::1%wlan0]:7701");
	expect_zone("tcp://[fe80::1%eth1]:7701", "wlan0", "tcp://[fe80::1%eth1]:7701");
	expect_zone("tcp://[fd00::1]:7701", "wlan0", "tcp://[fd00::1]:7701");
	expect_zone("tcp://m1:7701", "wlan0", "tcp://m1:7701");
	expect_zone("ipc:///tmp/socket", "", "ipc:///tmp/socket");
	address_zone(zone, "tcp://[fe80::1%eth0]:7701");
	assert_string_equal(zone, "eth0");
	address_zone(zone, "tcp://[fe80::1]:7701");
	assert_string_equal(zone, "");
	address_zone(zone, "ipc:///tmp/50%");
	assert_string_equal(zone, "");
}

TEST(nanomsg_gets_the_number_of_the_interface)
{
	char out[LINK_ADDRESS_SIZE], expected[LINK_ADDRESS_SIZE];
	struct error err = {""};
	const unsigned index = if_nametoindex("lo");

	if (index == 0)
		skip(); /* this system has no loopback interface */
	snprintf(expected, sizeof(expected), "tcp://[fe80:0:%x::1]:7701", index);
	assert_int_equal(address_for_nanomsg(out, "tcp://[fe80::1%lo]:7701", &err), 0);
	assert_string_equal(out, expected);
	assert_int_equal(address_for_nanomsg(out, "tcp://[fd00::1]:7701", &err), 0);
	assert_string_equal(out, "tcp://[fd00::1]:7701");
	assert_int_equal(address_for_nanomsg(out, "tcp://[fe80::1]:7701", &err), -EINVAL);
	assert_non_null(strstr(err.text, "%eth0"));
	assert_int_equal(address_for_nanomsg(out, "tcp://[fe80::1%no-such]:7701", &err), -ENODEV);
	assert_non_null(strstr(err.text, "no interface no-such"));
}
