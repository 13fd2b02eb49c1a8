/* Tests the checks of disk, clock, kernel settings, address and corpus. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tests/test.h"
#include "doctor/outside.h"
#include "doctor/storage.h"
#include "doctor/system_file.h"
#include "doctor/tcp.h"
#include "doctor/tests/system_tree.h"
#include "doctor/text_files.h"
#include "doctor/timekeeping.h"

/* ---- files ---- */

TEST(numbers_and_words_of_the_kernel_are_read)
{
	struct system_tree t;

	tree_make(&t);
	tree_put(&t, "/x", "4096\t131072 6291456\n9\n");
	tree_put(&t, "/y", "reno cubic bbr2\n");
	tree_put(&t, "/z", "a:  5 kB\nab: 7\nbad: x\n");
	assert_int_equal(system_number(t.root, "/x", 0, 1), 4096);
	assert_int_equal(system_number(t.root, "/x", 2, 1), 6291456);
	assert_int_equal(system_number(t.root, "/x", 3, 1), 1);
	assert_int_equal(system_number(t.root, "/y", 0, 1), 1);
	assert_int_equal(system_number(t.root, "/none", 0, 1), 1);
	assert_true(system_has_word(t.root, "/y", "cubic"));
	assert_false(system_has_word(t.root, "/y", "bbr"));
	assert_int_equal(system_keyed(t.root, "/z", "ab:", 1), 7);
	assert_int_equal(system_keyed(t.root, "/z", "a:", 1), 5);
	assert_int_equal(system_keyed(t.root, "/z", "bad:", 1), 1);
	assert_int_equal(system_keyed(t.root, "/none", "a:", 1), 1);
	tree_remove(&t);
}

/* ---- the disk ---- */

static const struct storage good_disk = { .folder = "/run",
					  .free_bytes = UINT64_C(100) << 30,
					  .free_files = 1000000,
					  .kind = 0xef53,
					  .write_bytes_s = 5e8,
					  .sync_s = 0.002 };

TEST(a_disk_is_judged_by_room_kind_and_speed)
{
	struct findings f = { .all.n = 0 };
	struct storage s = good_disk;

	storage_check(&f, &s);
	must_be(&f, "disk", FINDING_OK);
	must_be(&f, "disk speed", FINDING_OK);
	findings_free(&f);
	s.free_bytes = 4 << 20;
	s.free_files = 3;
	s.kind = 0x01021994;
	s.sync_s = 0.4;
	storage_check(&f, &s);
	must_find(&f, "disk", FINDING_ERROR, "4 MiB are free", "free some space");
	must_find(&f, "disk", FINDING_ERROR, "3 more files", "remove");
	must_find(&f, "disk", FINDING_WARNING, "tmpfs", "--run-dir");
	must_find(&f, "disk speed", FINDING_WARNING, "400.0 ms", "commit");
	findings_free(&f);
	s = good_disk;
	s.free_bytes = UINT64_C(1) << 30;
	/* On a 32-bit system, f_type is a signed int, so this value becomes negative. */
	s.kind = (int64_t)(int32_t)0xff534d42;
	s.write_bytes_s = 1e6;
	storage_check(&f, &s);
	must_find(&f, "disk", FINDING_WARNING, "1024 MiB", "");
	must_find(&f, "disk", FINDING_WARNING, "CIFS", "");
	must_find(&f, "disk speed", FINDING_WARNING, "1 MB/s", "checkpoints");
	findings_free(&f);
	s = good_disk;
	s.kind = 0x0bd00bd0;
	storage_check(&f, &s);
	must_find(&f, "disk", FINDING_WARNING, "Lustre", "local disk");
	findings_free(&f);
}

TEST(a_folder_that_is_missing_is_looked_for_above_and_stays_missing)
{
	struct findings f = { .all.n = 0 };
	struct system_tree t;
	char path[128];
	struct storage s;

	tree_make(&t);
	snprintf(path, sizeof(path), "%s/a/b", t.root);
	storage_look(&s, path);
	assert_int_equal(s.error, 0);
	assert_string_equal(s.folder, t.root);
	assert_true(s.sync_s > 0 && s.write_bytes_s > 0);
	/* rmdir fails if the trial has left a file in the folder. */
	assert_int_equal(rmdir(t.root), 0);
	storage_look(&s, "no/such/folder");
	assert_string_equal(s.folder, ".");
	tree_put(&t, "/file", "x");
	snprintf(path, sizeof(path), "%s/file", t.root);
	storage_look(&s, path);
	storage_check(&f, &s);
	must_find(&f, "disk", FINDING_ERROR, "Not a directory", "folder");
	findings_free(&f);
	tree_remove(&t);
}

/* ---- the clock ---- */

TEST(a_clock_that_nobody_sets_is_found)
{
	const struct timekeeping now = { .known = true,
					 .synchronised = true,
					 .error_s = 0.01,
					 .wall_us = INT64_C(1800000000000000) };
	struct findings f = { .all.n = 0 };
	struct timekeeping t = now;

	timekeeping_check(&f, &t);
	must_be(&f, "clock", FINDING_OK);
	findings_free(&f);
	t.synchronised = false;
	timekeeping_check(&f, &t);
	must_find(&f, "clock", FINDING_WARNING, "not synchronised", "chrony");
	findings_free(&f);
	t = now;
	t.error_s = 4;
	timekeeping_check(&f, &t);
	must_find(&f, "clock", FINDING_WARNING, "wrong by 4.0 s", "chrony");
	findings_free(&f);
	t = now;
	t.wall_us = INT64_C(1500000000000000);
	timekeeping_check(&f, &t);
	must_find(&f, "clock", FINDING_WARNING, "before 2025", "chrony");
	findings_free(&f);
	t = now;
	t.known = t.synchronised = false;
	timekeeping_check(&f, &t);
	must_be(&f, "clock", FINDING_OK);
	findings_free(&f);
}

/* ---- the kernel ---- */

static void put_tcp(const struct system_tree *t, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/%s", name);
	tree_put(t, path, text);
}

TEST(each_setting_that_hurts_is_found_and_its_remedy_helps)
{
	const struct tcp_link far = { .bytes_s = 125e6, .rtt_s = 0.2 };
	struct findings f = { .all.n = 0 };
	struct system_tree t;
	struct tcp tcp;

	tree_make(&t);
	put_tcp(&t, "ipv4/tcp_rmem", "4096 87380 212992\n");
	put_tcp(&t, "ipv4/tcp_wmem", "4096 16384 212992\n");
	put_tcp(&t, "ipv4/tcp_window_scaling", "0\n");
	put_tcp(&t, "ipv4/tcp_sack", "0\n");
	put_tcp(&t, "ipv4/tcp_slow_start_after_idle", "1\n");
	put_tcp(&t, "ipv4/tcp_allowed_congestion_control", "reno cubic\n");
	put_tcp(&t, "ipv4/ip_local_port_range", "50000 50099\n");
	put_tcp(&t, "core/rmem_max", "65536\n");
	tcp_look(&tcp, t.root);
	tcp_check(&f, &tcp, &far);
	/* The windows need 125 MB/s * 0.2 s = 25 MB, divided over 8 connections. The buffers must
	 * be twice as large as the windows. */
	must_find(&f, "kernel", FINDING_WARNING, "net.ipv4.tcp_rmem allows buffers of 0.2 MB",
		  "net.ipv4.tcp_rmem=\"4096 87380 6250000\" (2 x 25.0 MB / 8");
	must_find(&f, "kernel", FINDING_WARNING, "8 connections carry 4 MB/s",
		  "net.ipv4.tcp_wmem=\"4096 16384 6250000\"");
	must_find(&f, "kernel", FINDING_WARNING, "scaling is 0", "tcp_window_scaling=1");
	must_find(&f, "kernel", FINDING_WARNING, "sack is 0", "tcp_sack=1");
	must_find(&f, "kernel", FINDING_WARNING, "idle", "tcp_slow_start_after_idle=0");
	must_find(&f, "kernel", FINDING_WARNING, "BBR", "tcp_bbr");
	must_find(&f, "kernel", FINDING_WARNING, "100 ports", "ip_local_port_range");
	must_find(&f, "kernel", FINDING_WARNING, "rmem_max is 65536", "rmem_max=1048576");
	must_be(&f, "kernel", FINDING_WARNING);
	findings_free(&f);
	put_tcp(&t, "ipv4/tcp_rmem", "4096 87380 6250000\n");
	put_tcp(&t, "ipv4/tcp_wmem", "4096 16384 6250000\n");
	put_tcp(&t, "ipv4/tcp_window_scaling", "1\n");
	put_tcp(&t, "ipv4/tcp_sack", "1\n");
	put_tcp(&t, "ipv4/tcp_slow_start_after_idle", "0\n");
	put_tcp(&t, "ipv4/tcp_allowed_congestion_control", "reno cubic bbr\n");
	put_tcp(&t, "ipv4/ip_local_port_range", "32768 60999\n");
	put_tcp(&t, "core/rmem_max", "1048576\n");
	tcp_look(&tcp, t.root);
	tcp_check(&f, &tcp, &far);
	must_be(&f, "kernel", FINDING_OK);
	findings_free(&f);
	tree_remove(&t);
}

TEST(unknown_settings_are_no_finding)
{
	const struct tcp_link far = { .bytes_s = 125e6, .rtt_s = 0.2 };
	struct findings f = { .all.n = 0 };
	struct tcp tcp;

	tcp_look(&tcp, "/nonexistent");
	tcp.has_bbr = true;
	tcp_check(&f, &tcp, &far);
	must_be(&f, "kernel", FINDING_OK);
	findings_free(&f);
}

/* ---- the address ---- */

static enum finding_level level_of(const char *own)
{
	struct outside o = { .port = 7701, .n_own = 1 };
	struct findings f = { .all.n = 0 };
	enum finding_level level;

	snprintf(o.own[0], sizeof(o.own[0]), "%s", own);
	outside_check(&f, &o);
	level = findings_worst(&f);
	findings_free(&f);
	return level;
}

TEST(private_addresses_are_warned_about)
{
	static const char *const inner[] = { "tcp://10.1.2.3:7701",   "tcp://172.16.0.1:7701",
					     "tcp://172.31.0.1:7701", "tcp://192.168.0.1:7701",
					     "tcp://100.64.0.1:7701", "tcp://169.254.1.1:7701",
					     "tcp://[fd00::1]:7701",  "tcp://[fe80::1]:7701" };
	static const char *const outer[] = { "tcp://203.0.113.1:7701", "tcp://172.32.0.1:7701",
					     "tcp://100.128.0.1:7701", "tcp://[2001:db8::1]:7701" };

	for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++)
		assert_int_equal(level_of(inner[i]), FINDING_WARNING);
	for (size_t i = 0; i < sizeof(outer) / sizeof(outer[0]); i++)
		assert_int_equal(level_of(outer[i]), FINDING_OK);
}

TEST(a_mapping_a_busy_port_and_no_network_are_found)
{
	struct findings f = { .all.n = 0 };
	struct outside o = { .port = 7701, .n_own = 1, .own = { "tcp://10.0.0.1:7701" } };

	o.mapped = true;
	strcpy(o.mapping.outside, "tcp://203.0.113.7:40002");
	outside_check(&f, &o);
	must_find(&f, "address", FINDING_OK, "tcp://203.0.113.7:40002", "");
	findings_free(&f);
	o.bind_error = -EADDRINUSE;
	outside_check(&f, &o);
	must_find(&f, "address", FINDING_WARNING, "port 7701", "--listen");
	findings_free(&f);
	o = (struct outside){ .port = 7701 };
	outside_check(&f, &o);
	must_find(&f, "address", FINDING_ERROR, "no interface", "network");
	findings_free(&f);
}

/* ---- the corpus ---- */

TEST(a_corpus_is_compared_by_its_hash)
{
	struct findings f = { .all.n = 0 };
	struct system_tree t;
	char path[128], *paths[] = { path }, hash[17];
	char *text = calloc(1, 20001);

	memset(text, 'a', 20000);
	tree_make(&t);
	tree_put(&t, "/text", text);
	snprintf(path, sizeof(path), "%s/text", t.root);
	text_files_check(&f, paths, 1, NULL);
	must_find(&f, "corpus", FINDING_OK, "hash ", "");
	snprintf(hash, sizeof(hash), "%.16s", f.all.list[0].found + strlen("hash "));
	findings_free(&f);
	text_files_check(&f, paths, 1, hash);
	must_be(&f, "corpus", FINDING_OK);
	findings_free(&f);
	text[7] = 'b';
	tree_put(&t, "/text", text);
	text_files_check(&f, paths, 1, hash);
	must_find(&f, "corpus", FINDING_ERROR, hash, "copy the corpus");
	findings_free(&f);
	tree_remove(&t);
	text_files_check(&f, paths, 1, NULL);
	must_find(&f, "corpus", FINDING_ERROR, "No such file", "");
	findings_free(&f);
	free(text);
}
