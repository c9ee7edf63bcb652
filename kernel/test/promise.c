// SPDX-License-Identifier: GPL-2.0
#include "promise.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *name;
static int failed;

void promise(const char *of)
{
	name = of;
}

int promises_broken(void)
{
	return failed;
}

void check(bool right, const char *what, ...)
{
	va_list args;

	printf("%s %s: ", right ? "ok" : "FAIL", name);
	va_start(args, what);
	vprintf(what, args);
	va_end(args);
	printf("\n");
	failed += !right;
}

void both(const char *key, const char *value)
{
	enum side s;

	for (s = PROXY; s <= DEVICE; s++) {
		net_enter(s);
		net_sysctl(key, value);
	}
}

void begin(struct connection *c, const char *scheduler, int paths,
	   const struct link *links)
{
	int i;

	net_begin(paths, links, 1);
	both("ipv4/tcp_rmem", "4096 131072 67108864");
	both("ipv4/tcp_wmem", "4096 65536 67108864");
	both("mptcp/scheduler", scheduler);
	for (i = 0; i < paths; i++)
		net_join(i);
	memset(c, 0, sizeof(*c));
	c->from[PROXY].size = 1ULL << 50;
	c->from[PROXY].chunk = 1 << 17;
	c->from[DEVICE].size = 1;	/* and nothing more is said up */
	c->from[DEVICE].chunk = 1;
	c->from[DEVICE].next_ms = 1e15;
}

void start(struct connection *c)
{
	if (!connection_open(c, 5000, 10e3))
		die("%s: no connection", name);
}

void end(struct connection *c)
{
	if (c->wrong)
		check(false, "%s", c->wrong);
	connection_close(c);
	net_end();
}

void measure(struct connection *c, int paths, double ms, double *bytes)
{
	int i;

	for (i = 0; i < paths; i++)
		bytes[i] = -(double)net_sent_bytes(PROXY, i);
	connection_run(c, now_ms() + ms);
	for (i = 0; i < paths; i++)
		bytes[i] += net_sent_bytes(PROXY, i);
}

void check_split(const double *bytes, const double *weights, int paths,
		 const char *what)
{
	double all = 0, sum = 0, worst = 0;
	int i;

	for (i = 0; i < paths; i++) {
		all += bytes[i];
		sum += weights[i];
	}
	for (i = 0; i < paths; i++)
		worst = fmax(worst, fabs(bytes[i] / all * sum / weights[i] - 1));
	check(all > 1e6 && worst < 0.01, "%s: %.3f of it off by at most %.2f %%, %.1f MB",
	      what, bytes[0] / all, worst * 100, all / 1e6);
}
