/* tcp.c - checks the kernel's settings that limit connections over a link with a high bandwidth and
 * a long round trip.
 *
 * A connection carries at most one window in each round trip, and the kernel uses half of a buffer
 * for the window. An agent sends bulk data over TCP_CONNECTIONS connections. Therefore a link of B
 * bytes/s with a round trip of R s needs buffers of 2 B R / TCP_CONNECTIONS bytes.
 */
#include "doctor/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doctor/system_file.h"

#define NET "/proc/sys/net/"
enum {
	/* When an agent measures bandwidth, a long burst of packets occupies this number of bytes
	 * of the receive buffer. The kernel's overhead is included. */
	TRAIN_BYTES = 200 << 10,
	PORTS_FEW = 2000,
	/* If the round trip is shorter than this, an idle connection soon regains its full
	 * speed. */
	LONG_RTT_MS = 20
};

/* Returns true if this process may use the congestion control BBR. The kernel lets processes
 * without privileges use only some congestion controls, so the function tries to set BBR on a
 * socket. */
static bool may_use_bbr(void)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const bool may = fd >= 0 && syscall(SYS_setsockopt, fd, IPPROTO_TCP, TCP_CONGESTION, "bbr",
					    (socklen_t)3) == 0;

	if (fd >= 0)
		close(fd);
	return may;
}

void tcp_look(struct tcp *t, const char *root)
{
	*t = (struct tcp){
		.datagrams_most = system_number(root, NET "core/rmem_max", 0, UINT64_MAX),
		.scales = system_number(root, NET "ipv4/tcp_window_scaling", 0, 1) != 0,
		.acknowledges_gaps = system_number(root, NET "ipv4/tcp_sack", 0, 1) != 0,
		.slows_after_idle =
			system_number(root, NET "ipv4/tcp_slow_start_after_idle", 0, 0) != 0,
		.has_bbr = root[0] ? system_has_word(
					     root, NET "ipv4/tcp_allowed_congestion_control", "bbr")
				   : may_use_bbr(),
		.port_first = system_number(root, NET "ipv4/ip_local_port_range", 0, UINT64_MAX),
		.port_last = system_number(root, NET "ipv4/ip_local_port_range", 1, UINT64_MAX),
	};
	for (unsigned i = 0; i < 3; i++) {
		t->receive[i] = system_number(root, NET "ipv4/tcp_rmem", i, UINT64_MAX);
		t->send[i] = system_number(root, NET "ipv4/tcp_wmem", i, UINT64_MAX);
	}
}

static void check_buffer(struct findings *f, const uint64_t buffer[3], const char *setting,
			 const struct tcp_link *link)
{
	const uint64_t most = buffer[2];
	const double product = link->bytes_s * link->rtt_s;
	const double needed = 2 * product / TCP_CONNECTIONS;

	if ((double)most >= needed)
		return;
	finding_add(
		f, "kernel", FINDING_WARNING,
		"%s allows buffers of %.1f MB: %d connections carry %.0f MB/s over a round trip "
		"of %.0f ms, and the link could carry %.0f",
		setting, (double)most * 1e-6, TCP_CONNECTIONS,
		(double)most / 2 * TCP_CONNECTIONS / link->rtt_s * 1e-6, 1e3 * link->rtt_s,
		link->bytes_s * 1e-6);
	finding_remedy(f,
		       "sysctl -w %s=\"%llu %llu %.0f\" (2 x %.1f MB / %d: the bandwidth-delay "
		       "product of --mbit and --rtt-ms)",
		       setting, (unsigned long long)buffer[0], (unsigned long long)buffer[1],
		       needed, product * 1e-6, TCP_CONNECTIONS);
}

static void warn(struct findings *f, const char *found, const char *remedy)
{
	finding_add(f, "kernel", FINDING_WARNING, "%s", found);
	finding_remedy(f, "%s", remedy);
}

static void check_ports(struct findings *f, const struct tcp *t)
{
	if (t->port_first == UINT64_MAX || t->port_last < t->port_first ||
	    t->port_last - t->port_first >= PORTS_FEW)
		return;
	finding_add(f, "kernel", FINDING_WARNING,
		    "outgoing connections may use the %llu ports from %llu to %llu only",
		    (unsigned long long)(t->port_last - t->port_first + 1),
		    (unsigned long long)t->port_first, (unsigned long long)t->port_last);
	finding_remedy(f, "sysctl -w net.ipv4.ip_local_port_range=\"32768 60999\"");
}

void tcp_check(struct findings *f, const struct tcp *t, const struct tcp_link *link)
{
	const size_t before = f->all.n;

	check_buffer(f, t->receive, "net.ipv4.tcp_rmem", link);
	check_buffer(f, t->send, "net.ipv4.tcp_wmem", link);
	if (!t->scales)
		warn(f,
		     "net.ipv4.tcp_window_scaling is 0, so a connection carries 64 KiB in a round "
		     "trip",
		     "sysctl -w net.ipv4.tcp_window_scaling=1");
	if (!t->acknowledges_gaps)
		warn(f,
		     "net.ipv4.tcp_sack is 0, so a lost packet makes the sender repeat those after "
		     "it",
		     "sysctl -w net.ipv4.tcp_sack=1");
	if (t->slows_after_idle && link->rtt_s * 1e3 > LONG_RTT_MS)
		warn(f,
		     "net.ipv4.tcp_slow_start_after_idle is 1: a connection that was idle, as "
		     "between two activations, begins with ten packets again",
		     "sysctl -w net.ipv4.tcp_slow_start_after_idle=0");
	if (!t->has_bbr)
		warn(f,
		     "BBR cannot be used for bulk data: where packets are lost, CUBIC sends far "
		     "slower",
		     "modprobe tcp_bbr; sysctl -w net.ipv4.tcp_allowed_congestion_control=\"reno "
		     "cubic bbr\"");
	if (t->datagrams_most < TRAIN_BYTES) {
		finding_add(f, "kernel", FINDING_WARNING,
			    "net.core.rmem_max is %llu: trains of packets that measure bandwidths "
			    "need %d",
			    (unsigned long long)t->datagrams_most, TRAIN_BYTES);
		finding_remedy(f, "sysctl -w net.core.rmem_max=1048576");
	}
	check_ports(f, t);
	if (f->all.n == before)
		finding_add(f, "kernel", FINDING_OK,
			    "suits links of %.0f MB/s with round trips of %.0f ms",
			    link->bytes_s * 1e-6, 1e3 * link->rtt_s);
}
