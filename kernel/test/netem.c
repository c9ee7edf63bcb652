// SPDX-License-Identifier: GPL-2.0
/* Bulk goodput over netem, to hold other emulators against. */
#include "netem.h"
#include "flow.h"

#include <stdio.h>
#include <string.h>

#define PACKET 1500	/* bytes, IP */
#define ETHERNET 14	/* which netem counts as well */

int netem(const struct netem *n)
{
	/* netem's limit holds for packets in the air, too. */
	double air = n->rate_mbps * n->delay_ms * 1e3 / 8 / PACKET;
	struct link link = {
		.rate_mbps = n->rate_mbps * (PACKET + ETHERNET) / PACKET,
		.delay_ms = n->delay_ms,
		.queue = n->queue + air + 1,
	};
	struct connection c = { .plain = true };
	uint64_t before;
	double from_ms;
	enum side s;

	net_begin(1, &link, 1);
	for (s = PROXY; s <= DEVICE; s++) {
		net_enter(s);
		net_sysctl("ipv4/tcp_rmem", "4096 4194304 67108864");
		net_sysctl("ipv4/tcp_wmem", "4096 4194304 8388608");
		net_sysctl("ipv4/tcp_congestion_control", n->cc);
	}
	c.from[PROXY].size = 1ULL << 50;
	c.from[PROXY].chunk = 1 << 17;
	c.from[DEVICE].size = 1;	/* and nothing more is said up */
	c.from[DEVICE].chunk = 1;
	c.from[DEVICE].next_ms = 1e15;
	if (!connection_open(&c, 5000, 10e3))
		die("netem: no connection");
	connection_run(&c, now_ms() + n->warmup_s * 1e3);
	before = c.from[PROXY].got;
	from_ms = now_ms();
	connection_run(&c, from_ms + n->seconds * 1e3);
	printf("NETEM %.4f\n", (c.from[PROXY].got - before) * 8 / (now_ms() - from_ms) / 1e3);
	if (c.wrong)
		printf("FAIL netem: %s\n", c.wrong);
	connection_close(&c);
	net_end();
	return c.wrong != NULL;
}
