/* tool.c - the program wan_tool, which sends commands to a test bed and measures its network. The
 * program measures with ordinary sockets, so the results include the kernels of both ends. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
	"usage: wan_tool ask CONTROL WORD...      sends a command to wan_router and prints the\n"
	"                                         answer; the command help lists the commands\n"
	"       wan_tool ping ADDRESS [COUNT]     sends ICMP echoes and prints how many were sent\n"
	"                                         and answered, the shortest and mean round trip\n"
	"       wan_tool receive PORT             receives one TCP connection to its end\n"
	"       wan_tool send ADDRESS PORT BYTES  sends bytes over TCP and prints the seconds\n"
	"                                         until they have arrived, and million bytes a\n"
	"                                         second\n";

static int fail(const char *subject)
{
	fprintf(stderr, "wan_tool: %s: %s\n", subject, strerror(errno));
	return 1;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- ask ---- */

static int ask(const char *path, char **words, int n)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	static char reply[65536];
	char line[8192] = "";
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0), status = 1;
	bool first = true;
	size_t used = 0;
	ssize_t got;

	for (int i = 0; i < n && used < sizeof(line); i++)
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s", i ? " " : "",
					 words[i]);
	if (used >= sizeof(line) || strlen(path) >= sizeof(a.sun_path)) {
		fprintf(stderr, "wan_tool: too long\n");
		return 2;
	}
	strcpy(a.sun_path, path);
	if (s < 0 || connect(s, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    send(s, line, used, 0) < 0)
		return fail(path);
	while ((got = recv(s, reply, sizeof(reply), 0)) > 0) {
		if (first)
			status = reply[0] == '+' ? 0 : 1;
		if (first && status != 0)
			fputs("wan_router: ", stderr);
		fwrite(reply + first, 1, (size_t)got - first, status ? stderr : stdout);
		first = false;
	}
	close(s);
	if (first)
		fprintf(stderr, "wan_tool: %s: no answer\n", path);
	return status;
}

/* ---- ping ---- */

static uint16_t checksum(const void *data, size_t size)
{
	const uint8_t *b = data;
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < size; i += 2)
		sum += (uint32_t)b[i] << 8 | b[i + 1];
	sum = (sum >> 16) + (sum & 0xffff);
	sum += sum >> 16;
	return htons((uint16_t)~sum);
}

/* Waits for the answer to an echo request. Returns false if none arrives by `until`. */
static bool await_echo(int s, uint16_t id, uint16_t sequence, double until)
{
	uint8_t in[2048];
	struct icmphdr h;

	for (;;) {
		double left = until - seconds();
		struct pollfd p = { .fd = s, .events = POLLIN };
		ssize_t got;

		if (left <= 0 || poll(&p, 1, (int)(1000 * left) + 1) <= 0)
			return false;
		got = recv(s, in, sizeof(in), 0);
		if (got < 28 || (size_t)got < (size_t)(in[0] & 15) * 4 + sizeof(h))
			continue;
		memcpy(&h, in + (size_t)(in[0] & 15) * 4, sizeof(h));
		if (h.type == ICMP_ECHOREPLY && h.un.echo.id == id &&
		    h.un.echo.sequence == sequence)
			return true;
	}
}

static int ping(const char *address, long count)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	int s = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), answered = 0;
	double shortest = 1e9, sum = 0;
	uint16_t id = htons((uint16_t)getpid());

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1) {
		fprintf(stderr, "wan_tool: %s: expected an IPv4 address\n", address);
		return 2;
	}
	if (s < 0)
		return fail("a raw socket");
	for (long i = 0; i < count; i++) {
		struct icmphdr h = { .type = ICMP_ECHO };
		double start = seconds(), took;

		h.un.echo.id = id;
		h.un.echo.sequence = htons((uint16_t)i);
		h.checksum = checksum(&h, sizeof(h));
		if (sendto(s, &h, sizeof(h), 0, (struct sockaddr *)&to, sizeof(to)) < 0)
			return fail(address);
		if (!await_echo(s, id, h.un.echo.sequence, start + 1))
			continue;
		took = 1e3 * (seconds() - start);
		shortest = took < shortest ? took : shortest;
		sum += took;
		answered++;
	}
	printf("sent %ld answered %d least_ms %.3f mean_ms %.3f\n", count, answered,
	       answered ? shortest : 0, answered ? sum / answered : 0);
	close(s);
	return answered ? 0 : 1;
}

/* ---- TCP ---- */

static int receive(const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)atoi(port)) };
	static char in[1 << 18];
	int one = 1, s = socket(AF_INET, SOCK_STREAM, 0), c;
	unsigned long long bytes = 0;
	ssize_t got;

	if (s < 0 || setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(s, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(s, 1) < 0)
		return fail(port);
	puts("listening");
	fflush(stdout);
	c = accept(s, NULL, NULL);
	if (c < 0)
		return fail("accept");
	while ((got = recv(c, in, sizeof(in), 0)) > 0)
		bytes += (unsigned long long)got;
	if (got < 0)
		return fail("recv");
	printf("bytes %llu\n", bytes);
	close(c);
	close(s);
	return 0;
}

static int send_bytes(const char *address, const char *port, double bytes)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)atoi(port)) };
	static char out[1 << 18];
	double start, took;
	int s = socket(AF_INET, SOCK_STREAM, 0);

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1 || bytes < 1) {
		fputs(usage, stderr);
		return 2;
	}
	start = seconds();
	if (s < 0 || connect(s, (struct sockaddr *)&to, sizeof(to)) < 0)
		return fail(address);
	for (double left = bytes; left > 0;) {
		ssize_t n = send(s, out, left < sizeof(out) ? (size_t)left : sizeof(out),
				 MSG_NOSIGNAL);

		if (n < 0)
			return fail(address);
		left -= (double)n;
	}
	shutdown(s, SHUT_WR);
	if (recv(s, out, 1, 0) != 0)
		return fail(address);
	took = seconds() - start;
	printf("bytes %.0f seconds %.3f mbs %.3f\n", bytes, took, bytes / took / 1e6);
	close(s);
	return 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "ask") == 0 && argc > 3)
		return ask(argv[2], argv + 3, argc - 3);
	if (strcmp(verb, "ping") == 0 && (argc == 3 || argc == 4))
		return ping(argv[2], argc == 4 ? atol(argv[3]) : 4);
	if (strcmp(verb, "receive") == 0 && argc == 3)
		return receive(argv[2]);
	if (strcmp(verb, "send") == 0 && argc == 5)
		return send_bytes(argv[2], argv[3], atof(argv[4]));
	fputs(usage, strcmp(verb, "--help") == 0 ? stdout : stderr);
	return strcmp(verb, "--help") == 0 ? 0 : 2;
}
