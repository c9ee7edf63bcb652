// SPDX-License-Identifier: GPL-2.0
/* Weights: the split follows them, at once, and what they are refused for. */
#include "weights.h"
#include "promise.h"

#include <math.h>

static void ratios(void)
{
	static const struct link links[] = {
		{ 100, 5, 0, 200 }, { 100, 2, 0, 200 }, { 100, 10, 0, 200 },
	};
	static const struct {
		const char *text;
		double ratio[3];
	} tables[] = {
		{ "1", { 1, 1, 1 } },
		{ "remote-id=2 1; remote-id=3 2; 3", { 3, 1, 2 } },
		{ "10.9.0.1:* 10.77.1.2:* 30; * 10.77.2.2 100; 1", { 30, 100, 1 } },
		{ "10.9.0.1:5000 10.77.1.2 10\n* 10.77.2.2:* 1\n* 7", { 10, 1, 7 } },
		{ "* 10.77.3.2:* 50; 20", { 20, 20, 50 } },
	};
	struct connection c;
	double bytes[3];
	unsigned int i;

	promise("wrr strict");
	for (i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		begin(&c, "wrr", 3, links);
		both("mptcp/rr_cwnd_limited", "0");
		both("mptcp/weights", tables[i].text);
		start(&c);
		connection_run(&c, now_ms() + 1000);
		measure(&c, 3, 5000, bytes);
		check_split(bytes, tables[i].ratio, 3, tables[i].text);
		end(&c);
	}

	promise("wrr strict, changed live");
	begin(&c, "wrr", 3, links);
	both("mptcp/rr_cwnd_limited", "0");
	start(&c);
	for (i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		net_enter(PROXY);
		net_sysctl("mptcp/weights", tables[i].text);
		connection_run(&c, now_ms() + 500);
		measure(&c, 3, 3000, bytes);
		check_split(bytes, tables[i].ratio, 3, tables[i].text);
	}
	end(&c);

	/* fifty changes a second must not cost throughput */
	promise("wrr strict, changed often");
	begin(&c, "wrr", 3, links);
	both("mptcp/rr_cwnd_limited", "0");
	start(&c);
	connection_run(&c, now_ms() + 1000);
	c.from[PROXY].wait_from_ms = now_ms();
	for (i = 0; i < 3; i++)
		bytes[i] = -(double)net_sent_bytes(PROXY, i);
	for (i = 0; i < 200; i++) {
		net_enter(PROXY);
		net_sysctl("mptcp/weights", i & 1 ? "* 10.77.1.2 10; 9" : "* 10.77.2.2 10; 9");
		connection_run(&c, now_ms() + 20);
	}
	for (i = 0; i < 3; i++)
		bytes[i] += net_sent_bytes(PROXY, i);
	check_split(bytes, (double[]){ 28.5, 28.5, 27 }, 3, "alternating");
	check(c.from[PROXY].gap_ms < 30, "longest gap %.1f ms", c.from[PROXY].gap_ms);
	end(&c);
}

/* The least that is to be seen of 20 Mbit/s in 2 s, and the most where nothing
 * but the tail of what went before is to be seen.
 */
#define MUCH	(18e6 / 8 * 2)
#define LITTLE	20e3

/* Weight 0 is the last resort: nothing while another can be used, all if not. */
static void zero_among_others(const char *limited)
{
	static const struct link links[] = {
		{ 20, 5, 0, 100 }, { 20, 8, 0, 100 },
	};
	const struct link dark = { 20, 8, 1, 100 };
	struct connection c;
	double bytes[2];

	begin(&c, "wrr", 2, links);
	both("mptcp/rr_cwnd_limited", limited);
	both("mptcp/weights", "* 10.77.1.2 0; 5");
	start(&c);
	connection_run(&c, now_ms() + 1000);
	measure(&c, 2, 2000, bytes);
	check(bytes[0] < LITTLE && bytes[1] > MUCH, "nothing beside another: %.3f and %.3f MB",
	      bytes[0] / 1e6, bytes[1] / 1e6);
	net_shape(1, &dark);
	connection_run(&c, now_ms() + 3000);
	measure(&c, 2, 2000, bytes);
	check(bytes[0] > MUCH, "all when the other is lost: %.3f MB", bytes[0] / 1e6);
	net_shape(1, &links[1]);
	connection_run(&c, now_ms() + 8000);
	measure(&c, 2, 2000, bytes);
	check(bytes[0] < LITTLE && bytes[1] > MUCH, "nothing when it is back: %.3f and %.3f MB",
	      bytes[0] / 1e6, bytes[1] / 1e6);
	net_backup(1, true);
	connection_run(&c, now_ms() + 1000);
	measure(&c, 2, 2000, bytes);
	check(bytes[0] < LITTLE && bytes[1] > MUCH, "nothing beside a backup: %.3f and %.3f MB",
	      bytes[0] / 1e6, bytes[1] / 1e6);
	end(&c);
}

static void zero_everywhere(void)
{
	static const struct link links[] = {
		{ 20, 5, 0, 100 }, { 20, 8, 0, 100 },
	};
	struct connection c;
	double bytes[2];

	begin(&c, "wrr", 2, links);
	both("mptcp/rr_cwnd_limited", "0");
	both("mptcp/weights", "0");
	start(&c);
	connection_run(&c, now_ms() + 1000);
	measure(&c, 2, 3000, bytes);
	check_split(bytes, (double[]){ 1, 1 }, 2, "all of weight 0");
	end(&c);

	/* nothing is under way that could wake the sender later */
	begin(&c, "wrr", 1, links);
	c.from[PROXY].chunk = 2000;
	c.from[PROXY].every_ms = 100;
	start(&c);
	c.from[PROXY].next_ms = now_ms();
	connection_run(&c, now_ms() + 1050);
	net_enter(PROXY);
	net_sysctl("mptcp/weights", "* 10.77.1.2 0");
	connection_run(&c, now_ms() + 1000);
	check(c.from[PROXY].got == c.from[PROXY].sent && c.from[PROXY].sent > 20 * 2000,
	      "the only path, set to 0 while idle: %lu of %lu bytes", c.from[PROXY].got,
	      c.from[PROXY].sent);
	end(&c);
}

static void zero(void)
{
	promise("wrr strict, weight 0");
	zero_among_others("0");
	promise("wrr work-conserving, weight 0");
	zero_among_others("1");
	promise("wrr, weight 0 only");
	zero_everywhere();
}

void weights(void)
{
	ratios();
	zero();
}

void tables(void)
{
	static const struct link link = { 10, 1, 0, 10 };
	static const char *const bad[] = {
		"x", "id=1", "id=256 1", "id=-1 1", "1 2 3 4", "10.0.0.1:0 1", "10.0.0 1",
		"10.0.0.1: 1", "[::1 1", "::1 1", "* 65536", "1; ; id 3", "1; 2; 3 x",
	};
	static const char *const good[] = {
		"", "7", " 7 ;\n", "id=0 0", "remote-id=255 65535", "id=1 remote-id=2 * * 3",
		"[fe80::1]:443 *:80 1; [::ffff:1.2.3.4] 2", "1.2.3.4:* 5.6.7.8:9 10\n* 11",
	};
	unsigned int i, refused = 0;

	promise("tables");
	net_begin(1, &link, 1);
	net_enter(PROXY);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (!net_sysctl_refused("mptcp/weights", bad[i]))
			check(false, "accepts '%s'", bad[i]);
		else
			refused++;
	for (i = 0; i < sizeof(good) / sizeof(*good); i++)
		net_sysctl("mptcp/priorities", good[i]);
	check(refused == sizeof(bad) / sizeof(*bad), "%u bad ones refused, %u good ones accepted",
	      refused, i);
	net_end();
}
