/* Measures wire/ between two processes: the sealed throughput by message size in both directions,
 * and the round trips of messages.
 *
 *     build/bench/wire [tcp|ipc] [SECONDS]
 *         on this machine
 *     build/bench/wire many [PEERS] [SECONDS]
 *         the cost of a listener with many peers, each of which sends ten LOSSY heartbeats of 200
 *         bytes a second
 *     build/bench/wire dials [PEERS] [SECONDS]
 *         the cost of a turn of a process that dials many peers and sends to one of them
 *     build/bench/wire listen ADDRESS DIR
 *     build/bench/wire fill ADDRESS DIR [SECONDS] [CONNECTIONS] [BYTES]
 *         on two machines: activations after a pause, bulk data, and activations among bulk data.
 *         With BYTES, sends only pairs of activations of this size: the second activation follows
 *         the first after half of a transfer time. DIR holds the keys of both machines; the first
 *         run makes them
 *
 * Every figure is one line of JSON. The processes fork before they use nanomsg, because its state
 * does not survive a fork.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "wire/post.h"

/* The first byte of every message tells the listener how to treat it: drop it, send it back, send
 * many messages, or end. */
enum { SINK = 1, ECHO, SOURCE, STOP };

static struct keys_identity *ids[2];
static char address[LINK_ADDRESS_SIZE];

static void wait_turn(struct post *post)
{
	struct pollfd fd = {.fd = post_fd(post), .events = POLLIN};
	int64_t left = post_deadline_us(post) - clock_monotonic_us();
	if (left > 0)
		poll(&fd, 1, left > 100000 ? 100 : (int)(left / 1000) + 1);
	post_tick(post, clock_monotonic_us());
}

static void send_whole(struct post *post, post_peer_id peer, const uint8_t *data, size_t size)
{
	const struct post_part part = {data, size};
	while (post_send(post, peer, &part, 1, POST_RELIABLE, clock_monotonic_us()) != 0) {
		struct post_message m;
		wait_turn(post);
		while (post_receive(post, clock_monotonic_us(), &m) == 0)
			;
	}
}

static void drain(struct post *post, unsigned *data_seen)
{
	struct post_message m;
	while (post_receive(post, clock_monotonic_us(), &m) == 0)
		*data_seen += m.kind == POST_DATA;
}

/* ---- the listening process ---- */

static void serve(struct post *post)
{
	uint8_t *data = alloc_new(64 << 20);
	for (;;) {
		struct post_message m;
		wait_turn(post);
		while (post_receive(post, clock_monotonic_us(), &m) == 0) {
			const struct post_part part = {m.data, m.size};
			if (m.kind != POST_DATA)
				continue;
			if (m.data[0] == STOP) {
				free(data);
				return;
			}
			if (m.data[0] == ECHO)
				post_send(post, m.peer, &part, 1, POST_RELIABLE,
					  clock_monotonic_us());
			if (m.data[0] == SOURCE) {
				uint64_t size, count;
				post_peer_id peer = m.peer;
				memcpy(&size, m.data + 1, 8);
				memcpy(&count, m.data + 9, 8);
				for (uint64_t i = 0; i < count; i++)
					send_whole(post, peer, data, size);
			}
		}
	}
}

/* ---- the dialing process ---- */

static double cpu_s(int process)
{
	struct rusage u;
	getrusage(process, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Sends messages of one size for some seconds. The measured time ends when all are acknowledged. */
static void push(struct post *post, post_peer_id peer, size_t size, double seconds)
{
	uint8_t *data = alloc_new(size);
	const struct post_part part = {data, size};
	unsigned seen = 0;
	uint64_t n = 0;
	data[0] = SINK;
	double cpu = cpu_s(RUSAGE_SELF);
	int64_t start = clock_monotonic_us(), until = start + (int64_t)(seconds * 1e6);
	while (clock_monotonic_us() < until) {
		for (int i = 0; i < 256 && post_room(post, peer) > (size_t)224 << 20; i++)
			n += post_send(post, peer, &part, 1, POST_RELIABLE,
				       clock_monotonic_us()) == 0;
		wait_turn(post);
		drain(post, &seen);
	}
	while (!post_idle(post, peer)) {
		wait_turn(post);
		drain(post, &seen);
	}
	double took = (double)(clock_monotonic_us() - start) * 1e-6;
	printf("{\"bench\":\"wire\",\"what\":\"push\",\"message_bytes\":%zu,"
	       "\"messages_per_s\":%.0f,\"MB_per_s\":%.1f,\"sender_cpu_s_per_GB\":%.2f}\n",
		size, (double)n / took, (double)n * (double)size / took * 1e-6,
		(cpu_s(RUSAGE_SELF) - cpu) / ((double)n * (double)size * 1e-9));
	free(data);
}

/* Makes the listener send messages to this process. This direction is slower than the other
 * direction. */
static void pull(struct post *post, post_peer_id peer, uint64_t size, uint64_t count)
{
	uint8_t request[17] = {SOURCE};
	unsigned seen = 0;
	memcpy(request + 1, &size, 8);
	memcpy(request + 9, &count, 8);
	int64_t start = clock_monotonic_us();
	send_whole(post, peer, request, sizeof(request));
	while (seen < count) {
		wait_turn(post);
		drain(post, &seen);
	}
	double took = (double)(clock_monotonic_us() - start) * 1e-6;
	printf("{\"bench\":\"wire\",\"what\":\"pull\",\"message_bytes\":%llu,"
	       "\"messages_per_s\":%.0f,\"MB_per_s\":%.1f}\n",
		(unsigned long long)size, (double)count / took,
		(double)count * (double)size / took * 1e-6);
}

static int compare_integers(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void ping(struct post *post, post_peer_id peer, size_t size, size_t count)
{
	uint8_t *data = alloc_new(size);
	int64_t *us = alloc_array(count, sizeof(*us));
	data[0] = ECHO;
	for (size_t i = 0; i < count; i++) {
		unsigned seen = 0;
		int64_t start = clock_monotonic_us();
		send_whole(post, peer, data, size);
		while (seen == 0) {
			wait_turn(post);
			drain(post, &seen);
		}
		us[i] = clock_monotonic_us() - start;
	}
	qsort(us, count, sizeof(*us), compare_integers);
	printf("{\"bench\":\"wire\",\"what\":\"round_trip\",\"message_bytes\":%zu,\"p50_us\":%lld,"
	       "\"p99_us\":%lld}\n",
		size, (long long)us[count / 2], (long long)us[count * 99 / 100]);
	free(us);
	free(data);
}

static void dial(double seconds)
{
	static const size_t sizes[] = {64, 1024, 65536, 1 << 20, 4 << 20, 16 << 20};
	const struct post_options options = {.identity = ids[1]};
	struct post *post;
	post_peer_id peer;
	unsigned seen = 0;
	uint8_t stop = STOP;
	if (post_open(&post, &options, NULL) != 0 ||
	    post_dial(post, address, keys_public_of(ids[0]), &peer, NULL) != 0)
		exit(1);
	ping(post, peer, 64, 100);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		push(post, peer, sizes[i], seconds);
	pull(post, peer, 1024, 20000);
	pull(post, peer, 1 << 20, 200);
	ping(post, peer, 64, 5000);
	ping(post, peer, 65536, 1000);
	ping(post, peer, 1 << 20, 200);
	struct post_counters c;
	post_count(post, &c);
	printf("{\"bench\":\"wire\",\"what\":\"counters\",\"resent_frames\":%llu,\"blocked\":%llu,"
	       "\"gap_frames\":%llu,\"duplicate_frames\":%llu}\n",
		(unsigned long long)c.resent_frames, (unsigned long long)c.link.blocked,
		(unsigned long long)c.gap_frames, (unsigned long long)c.duplicate_frames);
	send_whole(post, peer, &stop, 1);
	while (!post_idle(post, peer)) {
		wait_turn(post);
		drain(post, &seen);
	}
	post_close(post);
}

static int listen_and_serve(const char *transport, int to_parent)
{
	struct keys_list *list;
	struct post *post;
	struct error err = {""};
	char wanted[LINK_ADDRESS_SIZE];
	if (strcmp(transport, "ipc") == 0)
		snprintf(wanted, sizeof(wanted), "ipc:///tmp/skippipe-bench.%d", (int)getpid());
	else
		snprintf(wanted, sizeof(wanted), "tcp://127.0.0.1:0");
	list = keys_list_new();
	if (keys_list_admit(list, keys_public_of(ids[1]), KEYS_AGENT, "bench", &err) != 0)
		return 1;
	const struct post_options options = {.identity = ids[0], .admitted = list};
	if (post_open(&post, &options, &err) != 0 ||
	    post_listen(post, wanted, address, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (write(to_parent, address, sizeof(address)) != sizeof(address))
		return 1;
	serve(post);
	/* Continues for a moment, so that the last acknowledgement is sent. */
	for (int64_t until = clock_monotonic_us() + 200000; clock_monotonic_us() < until;) {
		unsigned seen = 0;
		wait_turn(post);
		drain(post, &seen);
	}
	struct post_counters c;
	post_count(post, &c);
	fprintf(stderr, "listener: resent %llu, gaps %llu, duplicates %llu, cpu %.2f s\n",
		(unsigned long long)c.resent_frames, (unsigned long long)c.gap_frames,
		(unsigned long long)c.duplicate_frames, cpu_s(RUSAGE_SELF));
	post_close(post);
	keys_list_free(list);
	if (strcmp(transport, "ipc") == 0)
		unlink(address + 6);
	return 0;
}

/* ---- many peers ---- */

#define PER_PROCESS 400 /* agents; nanomsg has at most 512 sockets in a process */

/* Plays n agents in this process. */
static int play(struct keys_identity **agents, size_t n, double seconds)
{
	static uint8_t beat[200] = {SINK};
	const struct post_part part = {beat, sizeof(beat)};
	struct post **posts = alloc_array(n, sizeof(struct post *));
	post_peer_id *peers = alloc_array(n, sizeof(*peers));
	for (size_t i = 0; i < n; i++) {
		const struct post_options options = {.identity = agents[i]};
		if (post_open(&posts[i], &options, NULL) != 0 ||
		    post_dial(posts[i], address, keys_public_of(ids[0]), &peers[i], NULL) != 0)
			return 1;
	}
	int64_t until = clock_monotonic_us() + (int64_t)(seconds * 1e6);
	for (uint64_t turn = 0; clock_monotonic_us() < until; turn++) {
		/* In each turn of 10 ms, another tenth of the agents sends a heartbeat. */
		for (size_t i = turn % 10; i < n; i += 10) {
			unsigned seen = 0;
			post_tick(posts[i], clock_monotonic_us());
			drain(posts[i], &seen);
			(void)post_send(posts[i], peers[i], &part, 1, POST_LOSSY,
					clock_monotonic_us());
		}
		usleep(10000);
	}
	return 0;
}

static long resident_mib(void)
{
	long pages = 0, skip = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (f != NULL) {
		if (fscanf(f, "%ld %ld", &skip, &pages) != 2)
			pages = 0;
		fclose(f);
	}
	return pages * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
}

/* Waits until all peers are connected, then measures their heartbeats. */
static void watch_many(struct post *post, size_t n, double seconds)
{
	unsigned seen = 0;
	struct post_counters c = {0};
	int64_t start = clock_monotonic_us(), limit = start + 25000000;
	double cpu_before = cpu_s(RUSAGE_SELF);
	while (c.peers_up < n && clock_monotonic_us() < limit) {
		wait_turn(post);
		drain(post, &seen);
		post_count(post, &c);
	}
	printf("{\"bench\":\"wire\",\"what\":\"joined\",\"peers\":%u,\"seconds\":%.2f,"
	       "\"cpu_s\":%.2f}\n",
		c.peers_up, (double)(clock_monotonic_us() - start) * 1e-6,
		cpu_s(RUSAGE_SELF) - cpu_before);
	start = clock_monotonic_us();
	cpu_before = cpu_s(RUSAGE_SELF);
	seen = 0;
	while (clock_monotonic_us() < start + (int64_t)(seconds * 1e6)) {
		wait_turn(post);
		drain(post, &seen);
	}
	double took = (double)(clock_monotonic_us() - start) * 1e-6;
	post_count(post, &c);
	printf("{\"bench\":\"wire\",\"what\":\"heartbeats\",\"peers\":%u,\"messages_per_s\":%.0f,"
	       "\"cpu_share\":%.3f,\"resident_MiB\":%ld}\n",
		c.peers_up, seen / took, (cpu_s(RUSAGE_SELF) - cpu_before) / took, resident_mib());
}

static int many(size_t n, double seconds)
{
	struct keys_identity **agents = alloc_array(n, sizeof(struct keys_identity *));
	struct keys_list *list;
	struct post *post;
	pid_t children[16];
	size_t n_children = 0;
	int channel[2];
	if (n > PER_PROCESS * 16 || pipe(channel) != 0)
		return 1;
	list = keys_list_new();
	for (size_t i = 0; i < n; i++) {
		char name[32];
		snprintf(name, sizeof(name), "agent%zu", i);
		if (keys_generate(&agents[i], NULL) != 0 ||
		    keys_list_admit(list, keys_public_of(agents[i]), KEYS_AGENT, name, NULL) != 0)
			return 1;
	}
	for (size_t i = 0; i < n; i += PER_PROCESS) {
		children[n_children] = fork();
		if (children[n_children++] == 0) {
			close(channel[1]);
			if (read(channel[0], address, sizeof(address)) != sizeof(address))
				_exit(1);
			_exit(play(agents + i, n - i < PER_PROCESS ? n - i : PER_PROCESS, 3600.0));
		}
	}
	const struct post_options options = {.identity = ids[0], .admitted = list};
	if (post_open(&post, &options, NULL) != 0 ||
	    post_listen(post, "tcp://127.0.0.1:0", address, NULL) != 0)
		return 1;
	for (size_t i = 0; i < n; i += PER_PROCESS)
		if (write(channel[1], address, sizeof(address)) != sizeof(address))
			return 1;
	watch_many(post, n, seconds);
	while (n_children > 0)
		kill(children[--n_children], SIGKILL);
	while (wait(NULL) > 0)
		;
	post_close(post);
	keys_list_free(list);
	for (size_t i = 0; i < n; i++)
		keys_free(agents[i]);
	free(agents);
	return 0;
}

/* ---- many dialed peers ---- */

/* Listens with n keys in this process, and answers nothing. */
static int listen_often(size_t n, struct keys_identity **listeners, int to_parent)
{
	struct keys_list *list = keys_list_new();
	struct post **posts = alloc_array(n, sizeof(struct post *));
	unsigned seen = 0;
	if (keys_list_admit(list, keys_public_of(ids[1]), KEYS_AGENT, "bench", NULL) != 0)
		return 1;
	for (size_t i = 0; i < n; i++) {
		const struct post_options options = { .identity = listeners[i], .admitted = list };
		if (post_open(&posts[i], &options, NULL) != 0 ||
		    post_listen(posts[i], "tcp://127.0.0.1:0", address, NULL) != 0 ||
		    write(to_parent, address, sizeof(address)) != sizeof(address))
			return 1;
	}
	for (;;) {
		for (size_t i = 0; i < n; i++) {
			post_tick(posts[i], clock_monotonic_us());
			drain(posts[i], &seen);
		}
		usleep(20000);
	}
}

/* Waits until all peers are connected, then sends one message to one peer every 200 us. Prints the
 * processor time of one such turn. */
static void print_turns(struct post *post, size_t n, post_peer_id peer, double seconds)
{
	static const uint8_t data[200] = { SINK };
	const struct post_part part = { data, sizeof(data) };
	struct post_counters c = { 0 };
	unsigned seen = 0, turns = 0;
	for (int64_t limit = clock_monotonic_us() + 60000000;
	     c.peers_up < n && clock_monotonic_us() < limit; post_count(post, &c)) {
		wait_turn(post);
		drain(post, &seen);
	}
	const double cpu = cpu_s(RUSAGE_SELF);
	const int64_t until = clock_monotonic_us() + (int64_t)(seconds * 1e6);
	for (; clock_monotonic_us() < until; turns++) {
		usleep(200);
		post_tick(post, clock_monotonic_us());
		(void)post_deadline_us(post);
		drain(post, &seen);
		(void)post_send(post, peer, &part, 1, POST_LOSSY, clock_monotonic_us());
	}
	printf("{\"bench\":\"wire\",\"what\":\"dials\",\"peers\":%u,\"turns\":%u,"
	       "\"us_a_turn\":%.1f}\n",
	       c.peers_up, turns, (cpu_s(RUSAGE_SELF) - cpu) / turns * 1e6);
}

static int dials(size_t n, double seconds)
{
	struct keys_identity **listeners = alloc_array(n, sizeof(struct keys_identity *));
	const struct post_options options = { .identity = ids[1] };
	struct post *post;
	post_peer_id peer = 0;
	int channel[2];
	if (n > PER_PROCESS || pipe(channel) != 0)
		return 1;
	for (size_t i = 0; i < n; i++)
		if (keys_generate(&listeners[i], NULL) != 0)
			return 1;
	const pid_t child = fork();
	if (child == 0)
		_exit(listen_often(n, listeners, channel[1]));
	if (post_open(&post, &options, NULL) != 0)
		return 1;
	for (size_t i = 0; i < n; i++)
		if (read(channel[0], address, sizeof(address)) != sizeof(address) ||
		    post_dial(post, address, keys_public_of(listeners[i]), &peer, NULL) != 0)
			return 1;
	print_turns(post, n, peer, seconds);
	kill(child, SIGKILL);
	wait(NULL);
	post_close(post);
	for (size_t i = 0; i < n; i++)
		keys_free(listeners[i]);
	free(listeners);
	return 0;
}

/* ---- two machines ---- */

enum { ACTIVATION_BYTES = 98304, PIECE_BYTES = 2 << 20, TIMES = 8, MAX_TIMES = 256 };

static int load_ids(const char *dir)
{
	struct error err = {""};
	char path[256];
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s.key", dir, i == 0 ? "listen" : "fill");
		if (keys_load_or_make(&ids[i], path, &err) != 0) {
			fprintf(stderr, "%s\n", err.text);
			return -1;
		}
	}
	return 0;
}

static int listen_far(const char *where, const char *dir)
{
	struct keys_list *list;
	struct post *post;
	struct error err = {""};
	list = keys_list_new();
	if (load_ids(dir) != 0 ||
	    keys_list_admit(list, keys_public_of(ids[1]), KEYS_AGENT, "fill", NULL) != 0)
		return 1;
	const struct post_options options = {.identity = ids[0], .admitted = list};
	if (post_open(&post, &options, &err) != 0 || post_listen(post, where, NULL, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	printf("listening\n");
	serve(post);
	post_close(post);
	keys_list_free(list);
	return 0;
}

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct far {
	struct post *post;
	post_peer_id peer;
	uint8_t *data;
	/* Milliseconds of each activation, from post_send to the acknowledgement. */
	double took_ms[MAX_TIMES];
	int n;
	uint64_t bulk_bytes; /* bytes of bulk data that are acknowledged */
};

static void turn_far(struct far *f)
{
	struct post_transfer t;
	unsigned seen = 0;
	wait_turn(f->post);
	drain(f->post, &seen);
	while (post_transfer(f->post, &t) == 0) {
		if (t.class == POST_CLASS_SUMS)
			f->bulk_bytes += t.bytes;
		else if (f->n < MAX_TIMES)
			f->took_ms[f->n++] = (double)(t.acked_us - t.queued_us) * 1e-3;
	}
}

static void turn_far_until(struct far *f, int64_t until_us)
{
	while (clock_monotonic_us() < until_us)
		turn_far(f);
}

static void send_far(struct far *f, size_t size, enum post_flags class)
{
	const struct post_part part = {f->data, size};
	f->data[0] = SINK;
	(void)post_send(f->post, f->peer, &part, 1, class, clock_monotonic_us());
}

static double median_ms(struct far *f)
{
	qsort(f->took_ms, (size_t)f->n, sizeof(double), compare_doubles);
	return f->n == 0 ? 0 : f->took_ms[f->n / 2];
}

/* Sends single activations, each after a pause. */
static void print_pauses(struct far *f, double pause_s)
{
	struct post_peer_info info;
	f->n = 0;
	for (int i = 0; i < TIMES && f->n == i; i++) {
		int64_t give_up = clock_monotonic_us() + 20000000;
		turn_far_until(f, clock_monotonic_us() + (int64_t)(pause_s * 1e6));
		send_far(f, ACTIVATION_BYTES, POST_ACTIVATIONS);
		while (f->n == i && clock_monotonic_us() < give_up)
			turn_far(f);
	}
	double median = median_ms(f);
	post_peer(f->post, f->peer, &info);
	printf("{\"bench\":\"far\",\"what\":\"idle\",\"pause_s\":%.1f,\"bytes\":%d,"
	       "\"round_trip_ms\":%.1f,\"acked_ms\":%.1f,\"most_ms\":%.1f}\n",
		pause_s, ACTIVATION_BYTES, (double)info.least_round_trip_us * 1e-3, median,
		f->n > 0 ? f->took_ms[f->n - 1] : 0);
}

/* Sends bulk data without a pause. With `activations`, also sends an activation every quarter of a
 * second. The steady rate excludes the first two seconds, in which the rate still grows. */
static void print_bulk(struct far *f, double seconds, bool activations)
{
	struct post_peer_info info;
	int64_t start = clock_monotonic_us(), now = start, next = start + 2000000, from = start;
	int64_t until = start + (int64_t)(seconds * 1e6);
	uint64_t before = 0;
	const uint64_t already = f->bulk_bytes;
	f->n = 0;
	for (; now < until; now = clock_monotonic_us()) {
		while (post_class_room(f->post, f->peer, POST_CLASS_SUMS) > (size_t)192 << 20)
			send_far(f, PIECE_BYTES, POST_SUMS);
		if (before == 0 && now >= start + 2000000) {
			before = f->bulk_bytes;
			from = now;
		}
		if (activations && now >= next) {
			send_far(f, ACTIVATION_BYTES, POST_ACTIVATIONS);
			next = now + 250000;
		}
		turn_far(f);
	}
	const double steady = (double)(f->bulk_bytes - before) / ((double)(now - from) * 1e-6);
	while (!post_idle(f->post, f->peer))
		turn_far(f);
	const double whole = (double)(f->bulk_bytes - already) /
			     ((double)(clock_monotonic_us() - start) * 1e-6);
	double median = median_ms(f);
	post_peer(f->post, f->peer, &info);
	printf("{\"bench\":\"far\",\"what\":\"bulk\",\"seconds\":%.0f,\"Mbit_per_s\":%.1f,"
	       "\"with_start_Mbit_per_s\":%.1f,\"round_trip_ms\":%.1f,\"smoothed_ms\":%.1f,"
	       "\"estimate_Mbit_per_s\":%.1f,\"resent_frames\":%llu",
		seconds, steady * 8e-6, whole * 8e-6, (double)info.least_round_trip_us * 1e-3,
		(double)info.round_trip_us * 1e-3, (double)info.delivery_bytes_per_s * 8e-6,
		(unsigned long long)info.resent_frames);
	if (activations)
		printf(",\"activations\":%d,\"acked_ms\":%.1f,\"p90_ms\":%.1f,\"most_ms\":%.1f",
			f->n, median, f->n > 0 ? f->took_ms[f->n * 9 / 10] : 0,
			f->n > 0 ? f->took_ms[f->n - 1] : 0);
	printf("}\n");
}

/* Sends one activation alone, then pairs of activations. The second activation of a pair is sent
 * after half of the time that the single activation took. Ends early if no acknowledgement comes
 * for a minute. */
static void print_pairs(struct far *f, size_t bytes)
{
	double single_ms = 0;
	for (int pair = 0; pair < 6; pair++) {
		struct post_peer_info info;
		const int64_t start = clock_monotonic_us();
		f->n = 0;
		send_far(f, bytes, POST_ACTIVATIONS);
		if (pair > 0) {
			turn_far_until(f, start + (int64_t)(500 * single_ms));
			send_far(f, bytes, POST_ACTIVATIONS);
		}
		while (f->n < (pair > 0 ? 2 : 1)) {
			if (clock_monotonic_us() > start + 60000000)
				return;
			turn_far(f);
		}
		post_peer(f->post, f->peer, &info);
		if (pair == 0)
			single_ms = f->took_ms[0];
		printf("{\"bench\":\"far\",\"what\":\"pair\",\"bytes\":%zu,\"first_ms\":%.1f,"
		       "\"both_ms\":%.1f,\"estimate_Mbit_per_s\":%.1f,\"resent_frames\":%llu}\n",
			bytes, f->took_ms[0],
			pair > 0 ? 0.5 * single_ms + f->took_ms[1] : f->took_ms[0],
			(double)info.delivery_bytes_per_s * 8e-6,
			(unsigned long long)info.resent_frames);
		fflush(stdout);
		turn_far_until(f, clock_monotonic_us() + 6000000);
	}
}

static int fill_far(const char *where, const char *dir, double seconds, unsigned connections,
		    size_t bytes)
{
	struct error err = {""};
	struct far f = {.data = alloc_new(bytes > PIECE_BYTES ? bytes : PIECE_BYTES)};
	struct post_peer_info info = {.up = false};
	if (load_ids(dir) != 0)
		return 1;
	const struct post_options options = {.identity = ids[1], .connections = connections};
	if (post_open(&f.post, &options, &err) != 0 ||
	    post_dial(f.post, where, keys_public_of(ids[0]), &f.peer, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	int64_t give_up = clock_monotonic_us() + 20000000;
	while (!info.up && clock_monotonic_us() < give_up) {
		turn_far(&f);
		post_peer(f.post, f.peer, &info);
	}
	if (!info.up) {
		fprintf(stderr, "no answer from %s\n", where);
		return 1;
	}
	turn_far_until(&f, clock_monotonic_us() + 1000000);
	for (int i = 0; i < 3; i++) { /* measures the round trip of an idle link */
		(void)post_probe(f.post, f.peer, false, clock_monotonic_us());
		turn_far_until(&f, clock_monotonic_us() + 500000);
	}
	if (bytes > 0) {
		print_pairs(&f, bytes);
	} else {
		print_pauses(&f, 2.0);
		print_bulk(&f, seconds, false);
		print_bulk(&f, seconds, true);
		print_pauses(&f, 0.5);
	}
	uint8_t stop[1] = {STOP};
	send_whole(f.post, f.peer, stop, 1);
	turn_far_until(&f, clock_monotonic_us() + 1000000);
	post_close(f.post);
	free(f.data);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "many") == 0) {
		link_raise_files(20000);
		setvbuf(stdout, NULL, _IOLBF, 0);
		return keys_generate(&ids[0], NULL) != 0 ||
		       many(argc > 2 ? (size_t)atoi(argv[2]) : 800, argc > 3 ? atof(argv[3]) : 5.0);
	}
	if (argc > 1 && strcmp(argv[1], "dials") == 0) {
		link_raise_files(20000);
		setvbuf(stdout, NULL, _IOLBF, 0);
		return keys_generate(&ids[1], NULL) != 0 ||
		       dials(argc > 2 ? (size_t)atoi(argv[2]) : PER_PROCESS,
			     argc > 3 ? atof(argv[3]) : 5.0);
	}
	if (argc > 3 && (strcmp(argv[1], "listen") == 0 || strcmp(argv[1], "fill") == 0)) {
		link_tune_malloc();
		setvbuf(stdout, NULL, _IOLBF, 0);
		return strcmp(argv[1], "listen") == 0
			       ? listen_far(argv[2], argv[3])
			       : fill_far(argv[2], argv[3], argc > 4 ? atof(argv[4]) : 10.0,
					 argc > 5 ? (unsigned)atoi(argv[5]) : 8,
					 argc > 6 ? (size_t)atoll(argv[6]) : 0);
	}
	const char *transport = argc > 1 ? argv[1] : "tcp";
	double seconds = argc > 2 ? atof(argv[2]) : 2.0;
	int channel[2], status = 1;
	link_tune_malloc();
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (keys_generate(&ids[0], NULL) != 0 || keys_generate(&ids[1], NULL) != 0 ||
	    pipe(channel) != 0)
		return 1;
	pid_t child = fork();
	if (child == 0)
		_exit(listen_and_serve(transport, channel[1]));
	close(channel[1]);
	if (child > 0 && read(channel[0], address, sizeof(address)) == sizeof(address)) {
		dial(seconds);
		waitpid(child, &status, 0);
	}
	keys_free(ids[0]);
	keys_free(ids[1]);
	return status;
}
