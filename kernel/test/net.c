// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "net.h"
#include "netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fib_rules.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/mptcp.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

#define TCA_NETEM_SEED 14	/* TCA_NETEM_PRNG_SEED, since Linux 6.6 */
#define TABLE(path) (100 + (path))

static int space[2] = { -1, -1 };
static int paths;
static uint32_t netem_seed;

void die(const char *what, ...)
{
	va_list args;

	printf("BROKEN ");
	va_start(args, what);
	vprintf(what, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void must(struct request *r, const char *what, int path)
{
	int err = request_send(r, NETLINK_ROUTE);

	if (err)
		die("%s of path %d: %s", what, path, strerror(-err));
}

void net_enter(enum side side)
{
	if (setns(space[side], CLONE_NEWNET))
		die("cannot enter a namespace: %s", strerror(errno));
}

static const char *device_name(enum side side, int path)
{
	static char name[IFNAMSIZ];

	snprintf(name, sizeof(name), "%c%d", side == PROXY ? 'p' : 'd', path);
	return name;
}

static int device(enum side side, int path)
{
	int index = if_nametoindex(device_name(side, path));

	if (!index)
		die("no device %s", device_name(side, path));
	return index;
}

static in_addr_t address(enum side side, int path)
{
	return htonl(0x0a4d0000 | (path + 1) << 8 | (side == PROXY ? 1 : 2));
}

/* One packet at a time, so that netem loses packets and not trains of them,
 * and counters count each one's headers.
 */
static void no_trains(int index, int path)
{
	struct ifinfomsg info = { .ifi_index = index };
	struct request r;

	request_begin(&r, RTM_NEWLINK, 0, &info, sizeof(info));
	request_u32(&r, IFLA_GSO_MAX_SEGS, 1);
	must(&r, "the size of trains", path);
}

static void set_flags(int index, bool up, int path)
{
	struct ifinfomsg info = { .ifi_index = index, .ifi_change = IFF_UP,
				  .ifi_flags = up ? IFF_UP : 0 };
	struct request r;

	request_begin(&r, RTM_NEWLINK, 0, &info, sizeof(info));
	must(&r, "setting up or down", path);
}

static void add_address(int index, in_addr_t addr, int prefix, int path)
{
	struct ifaddrmsg info = { .ifa_family = AF_INET, .ifa_prefixlen = prefix,
				  .ifa_index = index };
	struct request r;

	request_begin(&r, RTM_NEWADDR, NLM_F_CREATE, &info, sizeof(info));
	request_put(&r, IFA_LOCAL, &addr, sizeof(addr));
	request_put(&r, IFA_ADDRESS, &addr, sizeof(addr));
	must(&r, "the address", path);
}

static void add_veth(int path)
{
	struct ifinfomsg info = { 0 };
	size_t kind, data, peer;
	struct request r;

	request_begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof(info));
	request_put(&r, IFLA_IFNAME, device_name(PROXY, path), 3);
	kind = request_nest(&r, IFLA_LINKINFO);
	request_put(&r, IFLA_INFO_KIND, "veth", 4);
	data = request_nest(&r, IFLA_INFO_DATA);
	peer = request_nest(&r, VETH_INFO_PEER);
	request_raw(&r, &info, sizeof(info));
	request_put(&r, IFLA_IFNAME, device_name(DEVICE, path), 3);
	request_u32(&r, IFLA_NET_NS_FD, space[DEVICE]);
	request_nest_end(&r, peer);
	request_nest_end(&r, data);
	request_nest_end(&r, kind);
	must(&r, "the veth pair", path);
}

/* The device chooses the path by its source address. */
static void add_route(int path)
{
	struct rtmsg route = { .rtm_family = AF_INET, .rtm_table = TABLE(path),
			       .rtm_protocol = RTPROT_STATIC, .rtm_type = RTN_UNICAST };
	struct fib_rule_hdr rule = { .family = AF_INET, .src_len = 32,
				     .table = TABLE(path), .action = FR_ACT_TO_TBL };
	in_addr_t gateway = address(PROXY, path), source = address(DEVICE, path);
	struct request r;

	request_begin(&r, RTM_NEWROUTE, NLM_F_CREATE, &route, sizeof(route));
	request_put(&r, RTA_GATEWAY, &gateway, sizeof(gateway));
	request_u32(&r, RTA_OIF, device(DEVICE, path));
	must(&r, "the route", path);

	request_begin(&r, RTM_NEWRULE, NLM_F_CREATE, &rule, sizeof(rule));
	request_put(&r, FRA_SRC, &source, sizeof(source));
	must(&r, "the rule", path);
}

static void shape(enum side side, int path, const struct link *link)
{
	struct tcmsg info = { .tcm_family = AF_UNSPEC, .tcm_parent = TC_H_ROOT };
	struct tc_netem_qopt netem = { .limit = link->queue,
				       .loss = link->loss * UINT32_MAX };
	struct tc_netem_rate rate = { 0 };
	int64_t delay_ns = link->delay_ms * 1e6;
	uint64_t bytes = link->rate_mbps * 1e6 / 8, seed;
	struct request r;
	size_t options;

	seed = ((uint64_t)++netem_seed << 32) | 1;
	rate.rate = bytes;
	net_enter(side);
	info.tcm_ifindex = device(side, path);
	request_begin(&r, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, &info, sizeof(info));
	request_put(&r, TCA_KIND, "netem", 6);
	options = request_nest(&r, TCA_OPTIONS);
	request_raw(&r, &netem, sizeof(netem));
	request_put(&r, TCA_NETEM_RATE, &rate, sizeof(rate));
	request_put(&r, TCA_NETEM_LATENCY64, &delay_ns, sizeof(delay_ns));
	request_put(&r, TCA_NETEM_SEED, &seed, sizeof(seed));
	request_nest_end(&r, options);
	must(&r, "netem", path);
}

void net_shape(int path, const struct link *link)
{
	shape(PROXY, path, link);
	shape(DEVICE, path, link);
}

void net_carrier(int path, bool up)
{
	net_enter(PROXY);
	set_flags(device(PROXY, path), up, path);
}

/* --- MPTCP's path manager */

static int family(void)
{
	struct genlmsghdr g = { .cmd = CTRL_CMD_GETFAMILY, .version = 1 };
	struct request r;
	struct nlattr *a;
	static int id;

	if (id)
		return id;
	request_begin(&r, GENL_ID_CTRL, 0, &g, sizeof(g));
	request_put(&r, CTRL_ATTR_FAMILY_NAME, MPTCP_PM_NAME, sizeof(MPTCP_PM_NAME));
	if (request_send(&r, NETLINK_GENERIC))
		die("the kernel has no MPTCP path manager");
	a = (void *)(r.bytes + NLMSG_HDRLEN + GENL_HDRLEN);
	while (a->nla_type != CTRL_ATTR_FAMILY_ID)
		a = (void *)((char *)a + NLA_ALIGN(a->nla_len));
	id = *(uint16_t *)((char *)a + NLA_HDRLEN);
	return id;
}

static void manage(int command, int path, uint32_t flags)
{
	struct genlmsghdr g = { .cmd = command, .version = MPTCP_PM_VER };
	in_addr_t addr = address(DEVICE, path);
	uint16_t af = AF_INET;
	uint8_t id = path + 1;
	struct request r;
	size_t nest;
	int err;

	net_enter(DEVICE);
	request_begin(&r, family(), 0, &g, sizeof(g));
	nest = request_nest(&r, MPTCP_PM_ATTR_ADDR);
	request_put(&r, MPTCP_PM_ADDR_ATTR_FAMILY, &af, sizeof(af));
	request_put(&r, MPTCP_PM_ADDR_ATTR_ID, &id, sizeof(id));
	request_put(&r, MPTCP_PM_ADDR_ATTR_ADDR4, &addr, sizeof(addr));
	request_u32(&r, MPTCP_PM_ADDR_ATTR_FLAGS, flags);
	request_nest_end(&r, nest);
	err = request_send(&r, NETLINK_GENERIC);
	if (err)
		die("path manager command %d for path %d: %s", command, path, strerror(-err));
}

void net_join(int path)
{
	manage(MPTCP_PM_CMD_ADD_ADDR, path, MPTCP_PM_ADDR_FLAG_SUBFLOW);
}

void net_leave(int path)
{
	manage(MPTCP_PM_CMD_DEL_ADDR, path, 0);
}

void net_backup(int path, bool backup)
{
	manage(MPTCP_PM_CMD_SET_FLAGS, path, backup ? MPTCP_PM_ADDR_FLAG_BACKUP : 0);
}

static void limits(void)
{
	struct genlmsghdr g = { .cmd = MPTCP_PM_CMD_SET_LIMITS, .version = MPTCP_PM_VER };
	struct request r;

	request_begin(&r, family(), 0, &g, sizeof(g));
	request_u32(&r, MPTCP_PM_ATTR_RCV_ADD_ADDRS, PATHS);
	request_u32(&r, MPTCP_PM_ATTR_SUBFLOWS, PATHS);
	if (request_send(&r, NETLINK_GENERIC))
		die("cannot set MPTCP's limits");
}

/* --- the whole */

static int write_sysctl(const char *name, const char *value)
{
	char path[128];
	int fd, err = 0;

	snprintf(path, sizeof(path), "/proc/sys/net/%s", name);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		err = errno;
	close(fd);
	return err;
}

void net_sysctl(const char *name, const char *value)
{
	int err = write_sysctl(name, value);

	if (err)
		die("net/%s = %s: %s", name, value, strerror(err));
}

bool net_sysctl_refused(const char *name, const char *value)
{
	return write_sysctl(name, value) == EINVAL;
}

static int new_space(void)
{
	int fd;

	if (unshare(CLONE_NEWNET))
		die("no network namespace: %s", strerror(errno));
	fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die("/proc/thread-self/ns/net: %s", strerror(errno));
	return fd;
}

void net_begin(int count, const struct link *links, uint32_t seed)
{
	enum side side;
	int i;

	paths = count;
	netem_seed = seed;
	space[PROXY] = new_space();
	space[DEVICE] = new_space();
	net_enter(PROXY);
	for (i = 0; i < count; i++)
		add_veth(i);
	for (side = PROXY; side <= DEVICE; side++) {
		net_enter(side);
		set_flags(if_nametoindex("lo"), true, 0);
		limits();
		for (i = 0; i < count; i++) {
			add_address(device(side, i), address(side, i), 24, i);
			no_trains(device(side, i), i);
			set_flags(device(side, i), true, i);
			if (side == DEVICE)
				add_route(i);
		}
	}
	net_enter(PROXY);
	add_address(if_nametoindex("lo"), inet_addr(PROXY_ADDRESS), 32, 0);
	for (i = 0; i < count; i++)
		net_shape(i, &links[i]);
}

void net_end(void)
{
	/* the last reference to a namespace may not be where we stand */
	if (unshare(CLONE_NEWNET))
		die("no network namespace: %s", strerror(errno));
	close(space[PROXY]);
	close(space[DEVICE]);
}

uint64_t net_sent_bytes(enum side side, int path)
{
	char line[512], *at;
	uint64_t tx = 0;
	FILE *f;

	net_enter(side);
	f = fopen("/proc/thread-self/net/dev", "r");
	if (!f)
		die("/proc/thread-self/net/dev: %s", strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		at = strchr(line, ':');
		if (!at)
			continue;
		*at = '\0';
		if (!strcmp(line + strspn(line, " "), device_name(side, path)))
			sscanf(at + 1, "%*u %*u %*u %*u %*u %*u %*u %*u %lu", &tx);
	}
	fclose(f);
	return tx;
}
