// SPDX-License-Identifier: GPL-2.0
/* What each scheduler promises, on networks where the promise can be computed. */
#include "schedulers.h"
#include "promise.h"
#include "weights.h"

#include <math.h>
#include <string.h>

static void round_robin(void)
{
	static const struct link links[] = {
		{ 100, 5, 0, 100 }, { 10, 5, 0, 50 }, { 30, 5, 0, 100 },
	};
	struct connection c;
	double bytes[3];

	promise("rr strict");
	begin(&c, "rr", 3, links);
	both("mptcp/rr_cwnd_limited", "0");
	start(&c);
	connection_run(&c, now_ms() + 1000);
	measure(&c, 3, 4000, bytes);
	check_split(bytes, (double[]){ 1, 1, 1 }, 3, "equal");
	check(bytes[1] * 8 / 4e6 > 9, "the slowest is full: %.2f of 10 Mbit/s", bytes[1] * 8 / 4e6);
	end(&c);

	promise("rr work-conserving");
	begin(&c, "rr", 3, links);
	start(&c);
	connection_run(&c, now_ms() + 2000);
	measure(&c, 3, 4000, bytes);
	check(bytes[0] * 8 / 4e6 > 90 && bytes[1] * 8 / 4e6 > 9 && bytes[2] * 8 / 4e6 > 27,
	      "every path is full: %.1f, %.2f, %.1f of 100, 10, 30 Mbit/s",
	      bytes[0] * 8 / 4e6, bytes[1] * 8 / 4e6, bytes[2] * 8 / 4e6);
	end(&c);
}

static void redundant(void)
{
	static const struct link links[] = {
		{ 50, 5, 0, 200 }, { 80, 12, 0.01, 200 }, { 30, 20, 0, 200 },
	};
	const struct link dark = { 50, 5, 1, 200 };
	struct connection c;
	double bytes[3], most;
	int lost;

	promise("redundant");
	for (lost = -1; lost < 3; lost++) {
		begin(&c, "redundant", 3, links);
		c.from[PROXY].chunk = 4000;
		c.from[PROXY].every_ms = 5;		/* 6.4 Mbit/s */
		start(&c);
		c.from[PROXY].next_ms = now_ms();
		connection_run(&c, now_ms() + 2000);
		c.from[PROXY].wait_from_ms = now_ms();
		if (lost >= 0)
			net_shape(lost, &dark);
		measure(&c, 3, 3000, bytes);
		if (lost < 0)
			check(fmin(fmin(bytes[0], bytes[1]), bytes[2]) > 0.95 * 2.4e6,
			      "everything everywhere: %.2f %.2f %.2f of 2.40 MB",
			      bytes[0] / 1e6, bytes[1] / 1e6, bytes[2] / 1e6);
		/* the next write, and the way by another path instead */
		most = 5 + 20 - 5 + 2;
		check(c.from[PROXY].gap_ms < most, "without path %d: longest gap %.1f ms of %.0f allowed",
		      lost, c.from[PROXY].gap_ms, most);
		end(&c);
	}

	promise("redundant, bulk");
	begin(&c, "redundant", 3, links);
	start(&c);
	connection_run(&c, now_ms() + 2000);
	measure(&c, 3, 4000, bytes);
	check(c.from[PROXY].got * 8 / 6e6 > 40, "no slower than the best: %.1f Mbit/s, by path %.1f %.1f %.1f",
	      c.from[PROXY].got * 8 / 6e6, bytes[0] * 8 / 4e6, bytes[1] * 8 / 4e6, bytes[2] * 8 / 4e6);
	end(&c);
}

static void fastest(const char *scheduler)
{
	static const struct link links[] = {
		{ 20, 20, 0, 100 }, { 20, 5, 0, 100 },
	};
	struct connection c;
	double bytes[2];

	promise(scheduler);
	begin(&c, scheduler, 2, links);
	c.from[PROXY].chunk = 10000;
	c.from[PROXY].every_ms = 10;		/* 8 Mbit/s of 20 */
	start(&c);
	c.from[PROXY].next_ms = now_ms();
	connection_run(&c, now_ms() + 2000);
	measure(&c, 2, 3000, bytes);
	check(bytes[0] < 0.02 * bytes[1], "light load goes by the faster path: %.3f and %.3f MB",
	      bytes[0] / 1e6, bytes[1] / 1e6);
	end(&c);

	begin(&c, scheduler, 2, links);
	start(&c);
	connection_run(&c, now_ms() + 3000);
	measure(&c, 2, 5000, bytes);
	check((bytes[0] + bytes[1]) * 8 / 5e6 > 34, "bulk fills both: %.1f and %.1f of 20 Mbit/s",
	      bytes[0] * 8 / 5e6, bytes[1] * 8 / 5e6);
	end(&c);
}

/* A path so slow that a small window fills behind what it carries. */
static double blocked_mbps(const char *opportunistic, const char *penalise)
{
	static const struct link links[] = {
		{ 40, 5, 0, 100 }, { 2, 80, 0, 100 },
	};
	struct connection c;
	double bytes[2];

	begin(&c, "minrtt", 2, links);
	both("ipv4/tcp_rmem", "4096 131072 600000");
	both("mptcp/minrtt_opportunistic", opportunistic);
	both("mptcp/minrtt_penalise", penalise);
	start(&c);
	connection_run(&c, now_ms() + 5000);
	measure(&c, 2, 10000, bytes);
	end(&c);
	return c.from[PROXY].got * 8 / 15e6;
}

static void blocking(void)
{
	double without, repeat, penalty, both_on;

	promise("minrtt with a small window");
	without = blocked_mbps("0", "0");
	repeat = blocked_mbps("1", "0");
	penalty = blocked_mbps("0", "1");
	both_on = blocked_mbps("1", "1");
	check(both_on > 3 * without,
	      "%.1f Mbit/s; repeating %.1f, penalising %.1f, both %.1f", without, repeat,
	      penalty, both_on);
}

static void standby(void)
{
	static const struct link links[] = {
		{ 20, 5, 0, 100 }, { 40, 5, 0, 100 },
	};
	const struct link dark = { 20, 5, 1, 100 };
	struct connection c;
	double bytes[2];

	promise("active-standby");
	begin(&c, "active-standby", 2, links);
	both("mptcp/priorities", "* 10.77.1.2 1; 9");
	start(&c);
	connection_run(&c, now_ms() + 1000);
	measure(&c, 2, 3000, bytes);
	check(bytes[0] * 8 / 3e6 > 18 && bytes[1] < 20e3, "all by the active: %.2f and %.3f Mbit/s",
	      bytes[0] * 8 / 3e6, bytes[1] * 8 / 3e6);
	net_shape(0, &dark);
	connection_run(&c, now_ms() + 3000);
	measure(&c, 2, 3000, bytes);
	check(bytes[1] * 8 / 3e6 > 34, "by the standby when the active is lost: %.2f Mbit/s",
	      bytes[1] * 8 / 3e6);
	net_shape(0, &links[0]);
	connection_run(&c, now_ms() + 8000);
	measure(&c, 2, 3000, bytes);
	check(bytes[0] * 8 / 3e6 > 17 && bytes[1] < 0.02 * bytes[0], "and back: %.2f and %.3f Mbit/s",
	      bytes[0] * 8 / 3e6, bytes[1] * 8 / 3e6);
	end(&c);
}

static void priority(void)
{
	static const struct link links[] = {
		{ 20, 20, 0, 100 }, { 40, 5, 0, 100 },
	};
	struct connection c;
	double bytes[2];

	promise("priority-based");
	begin(&c, "priority-based", 2, links);
	both("mptcp/priorities", "* 10.77.1.2 1; * 10.77.2.2 2");
	c.from[PROXY].chunk = 10000;
	c.from[PROXY].every_ms = 10;
	start(&c);
	c.from[PROXY].next_ms = now_ms();
	connection_run(&c, now_ms() + 2000);
	measure(&c, 2, 3000, bytes);
	check(bytes[1] < 0.02 * bytes[0], "light load by the preferred, though slower: %.3f and %.3f MB",
	      bytes[0] / 1e6, bytes[1] / 1e6);
	end(&c);

	begin(&c, "priority-based", 2, links);
	both("mptcp/priorities", "* 10.77.1.2 1; * 10.77.2.2 2");
	start(&c);
	connection_run(&c, now_ms() + 3000);
	measure(&c, 2, 4000, bytes);
	check(bytes[0] * 8 / 4e6 > 18 && bytes[1] * 8 / 4e6 > 32, "overflows when congested: %.1f of 20 and %.1f of 40 Mbit/s",
	      bytes[0] * 8 / 4e6, bytes[1] * 8 / 4e6);
	end(&c);
}

int schedulers(const char *only)
{
	static const char *const by_delay[] = { "minrtt", "blest", "ecf" };
	unsigned int i;

#define WANTED(x) (!only || !strcmp(only, x))
	if (WANTED("tables"))
		tables();
	if (WANTED("wrr"))
		weights();
	if (WANTED("rr"))
		round_robin();
	if (WANTED("redundant"))
		redundant();
	if (WANTED("active-standby"))
		standby();
	if (WANTED("priority-based"))
		priority();
	if (WANTED("minrtt"))
		blocking();
	for (i = 0; i < 3; i++)
		if (WANTED(by_delay[i]))
			fastest(by_delay[i]);
	return promises_broken();
}
