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

void weights(void)
{
	ratios();
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
