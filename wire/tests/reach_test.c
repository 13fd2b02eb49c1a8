/* Tests how a machine finds the addresses at which other machines reach it. */
#include "wire/reach.h"

#include <string.h>

#include "base/tests/test.h"

static bool look(const char *block, size_t size, uint16_t inside, struct reach_mapping *out)
{
	return reach_in_environment(block, size, inside, 7701, out);
}

TEST(a_providers_variables_are_read)
{
	static const char vast[] = "HOME=/root\0VAST_TCP_PORT_22=40001\0VAST_TCP_PORT_9000=40003\0"
				   "VAST_TCP_PORT_7701=40002\0PUBLIC_IPADDR=203.0.113.7";
	static const char runpod[] = "RUNPOD_PUBLIC_IP=203.0.113.9\0RUNPOD_TCP_PORT_8888=10001\0"
				     "RUNPOD_TCP_PORT_70000=10030";
	static const char none[] = "VAST_TCP_PORT_7701=40002\0RUNPOD_PUBLIC_IP=203.0.113.9";
	static const char odd[] = "PUBLIC_IPADDR=::1\0VAST_TCP_PORT_7701=x\0VAST_TCP_PORT_=1\0"
				  "VAST_TCP_PORT_69000=5\0VAST_TCP_PORT_7702=70000\0"
				  "VAST_TCP_PORT_7703=7\0VAST_UDP_PORT_7701=9";
	struct reach_mapping m;
	assert_true(look(vast, sizeof(vast), 0, &m));
	assert_int_equal(m.inside, 7701);
	assert_string_equal(m.outside, "tcp://203.0.113.7:40002");
	assert_true(look(vast, sizeof(vast), 9000, &m));
	assert_string_equal(m.outside, "tcp://203.0.113.7:40003");
	assert_false(look(vast, sizeof(vast), 9001, &m));
	/* A port that the provider's own programs use must be chosen only if the caller asks for
	 * it. */
	assert_true(look(runpod, sizeof(runpod), 0, &m));
	assert_int_equal(m.inside, 10030);
	assert_string_equal(m.outside, "tcp://203.0.113.9:10030");
	assert_false(look(none, sizeof(none), 0, &m));
	assert_true(look(odd, sizeof(odd), 0, &m));
	assert_int_equal(m.inside, 7703);
	assert_string_equal(m.outside, "tcp://[::1]:7");
	assert_false(look("", 0, 0, &m));
	/* If the last variable has no NUL at its end, it must not be read. */
	assert_false(look("PUBLIC_IPADDR=1.2.3.4", 12, 0, &m));
}

TEST(an_address_is_chosen_in_order)
{
	struct reach r;
	reach_choose("tcp://10.0.0.5:7701", "203.0.113.7", NULL, &r);
	assert_string_equal(r.address, "tcp://10.0.0.5:7701");
	assert_string_equal(r.inside, "");
	reach_choose("ipc:///tmp/x", "", NULL, &r);
	assert_string_equal(r.address, "ipc:///tmp/x");
	reach_choose("tcp://0.0.0.0:7701", "203.0.113.7", NULL, &r);
	assert_string_equal(r.address, "tcp://203.0.113.7:7701");
	reach_choose("tcp://[::]:7701", "2001:db8::7", NULL, &r);
	assert_string_equal(r.address, "tcp://[2001:db8::7]:7701");
	reach_choose("tcp://10.0.0.5:7701", "", "tcp://m5:40702", &r);
	assert_string_equal(r.address, "tcp://m5:40702");
	assert_string_equal(r.inside, "");
}

/* Machines with the same public address must get the inside addresses, both if the operator has
 * given the public address and if the machine has found it. */
TEST(a_given_address_keeps_the_inside_ones)
{
	char own[1][LINK_ADDRESS_SIZE];
	struct reach r;
	reach_choose("tcp://0.0.0.0:7701", "203.0.113.7", "tcp://203.0.113.9:40702", &r);
	assert_string_equal(r.address, "tcp://203.0.113.9:40702");
	if (reach_own(7701, own, 1) == 0)
		skip(); /* this machine has no network */
	assert_non_null(strstr(r.inside, own[0]));
}
