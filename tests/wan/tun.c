/* tun.c - makes TUN devices in network namespaces by the kernel's ioctl calls. The calling thread
 * enters the namespace for this and then returns to its own. */
#include "tests/wan/tun.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/route.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/wan/traffic.h"

#define DEVICE "wan0"
/* Length of the device's queue in packets. A whole TCP window may be sent at once while the router
 * waits for a CPU. */
#define QUEUE_PACKETS 10000

static int fail(struct error *err, const char *namespace, const char *what)
{
	int code = errno;

	return error_set(err, -code, "%s: %s: %s", namespace, what, strerror(code));
}

static struct sockaddr ipv4(uint32_t address)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
	struct sockaddr out;

	memcpy(&out, &in, sizeof(out));
	return out;
}

static int bring_up(int s, const char *device)
{
	struct ifreq r = { 0 };

	snprintf(r.ifr_name, IFNAMSIZ, "%s", device);
	if (ioctl(s, SIOCGIFFLAGS, &r) < 0)
		return -1;
	r.ifr_flags |= IFF_UP;
	return ioctl(s, SIOCSIFFLAGS, &r);
}

/* Sets the device's address, mask, MTU, queue and default route, and brings it up. Returns the name
 * of the step that failed, or NULL. */
static const char *set_device(int s, uint32_t address)
{
	struct ifreq r = { 0 };
	struct rtentry route = { .rt_flags = RTF_UP, .rt_dev = (char[]){ DEVICE } };

	snprintf(r.ifr_name, IFNAMSIZ, "%s", DEVICE);
	r.ifr_addr = ipv4(address);
	if (ioctl(s, SIOCSIFADDR, &r) < 0)
		return "its address";
	r.ifr_netmask = ipv4(0xffffffff);
	if (ioctl(s, SIOCSIFNETMASK, &r) < 0)
		return "its mask";
	r.ifr_mtu = TRAFFIC_MTU;
	if (ioctl(s, SIOCSIFMTU, &r) < 0)
		return "its MTU";
	r.ifr_qlen = QUEUE_PACKETS;
	if (ioctl(s, SIOCSIFTXQLEN, &r) < 0)
		return "its queue";
	if (bring_up(s, "lo") < 0 || bring_up(s, DEVICE) < 0)
		return "bringing it up";
	route.rt_dst = route.rt_genmask = ipv4(0);
	return ioctl(s, SIOCADDRT, &route) < 0 ? "the route" : NULL;
}

/* Makes the device in the namespace of the calling thread. */
static int make_device(const char *namespace, uint32_t address, int *out, struct error *err)
{
	struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	const char *failed;
	int s, rc, fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return fail(err, namespace, "/dev/net/tun");
	snprintf(r.ifr_name, IFNAMSIZ, "%s", DEVICE);
	if (ioctl(fd, TUNSETIFF, &r) < 0) {
		rc = fail(err, namespace, "a TUN device");
		close(fd);
		return rc;
	}
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	failed = s < 0 ? "a socket" : set_device(s, address);
	rc = failed ? fail(err, namespace, failed) : 0;
	if (s >= 0)
		close(s);
	if (rc != 0)
		close(fd);
	else
		*out = fd;
	return rc;
}

int tun_open(const char *namespace, uint32_t address, int *fd, struct error *err)
{
	char path[PATH_MAX];
	int there, rc, home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (home < 0)
		return fail(err, namespace, "/proc/self/ns/net");
	snprintf(path, sizeof(path), "/run/netns/%s", namespace);
	there = open(path, O_RDONLY | O_CLOEXEC);
	if (there < 0) {
		rc = fail(err, namespace, path);
	} else if (setns(there, CLONE_NEWNET) < 0) {
		rc = fail(err, namespace, "entering it");
	} else {
		rc = make_device(namespace, address, fd, err);
		if (setns(home, CLONE_NEWNET) < 0 && rc == 0) {
			rc = fail(err, namespace, "leaving it");
			close(*fd);
		}
	}
	if (there >= 0)
		close(there);
	close(home);
	return rc;
}
