// SPDX-License-Identifier: GPL-2.0
/* Small transfers over random networks in which random things happen. Whatever
 * happens, every byte must arrive once and in its place.
 */
#include "soak.h"
#include "flow.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A scenario may take so much virtual time; outages end long before. */
#define LIMIT_MS	300e3
#define MOST_EVENTS	12

static uint64_t state;

static uint64_t draw(void)		/* SplitMix64 */
{
	uint64_t z = (state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static uint64_t below(uint64_t n)
{
	return draw() % n;
}

static double between(double low, double high)
{
	return low + (high - low) * (draw() >> 11) / (double)(1ULL << 53);
}

/* As many small ones as large ones. */
static uint64_t log_between(uint64_t low, uint64_t high)
{
	return low * exp(between(0, log((double)high / low)));
}

struct event {
	double at_ms;
	int path;
	enum { DOWN, UP, DARK, CHANGE, JOIN, LEAVE, BACKUP, WEIGHTS } what;
};

static struct link random_link(void)
{
	struct link l = {
		.rate_mbps = log_between(1, 200),
		.delay_ms = between(0, 40),
		.queue = log_between(20, 1000),
		.loss = below(2) ? 0 : between(0, 0.03),
	};

	return l;
}

static const char *const schedulers[] = {
	"default", "minrtt", "rr", "wrr", "redundant", "blest", "ecf",
	"active-standby", "priority-based",
};

static void random_settings(char *text, size_t size)
{
	const char *scheduler = schedulers[below(sizeof(schedulers) / sizeof(*schedulers))];
	int segments = below(2) ? 1 : 1 + below(20), limited = below(2);
	int bloat = below(3) ? 0 : 30, opportunistic = below(2), penalise = below(2);
	char table[80], number[16];
	enum side s;

	snprintf(table, sizeof(table), "id=1 %d; * 10.77.2.2 %d; %d", 1 + (int)below(30),
		 (int)below(100), 1 + (int)below(4));
	for (s = PROXY; s <= DEVICE; s++) {
		net_enter(s);
		net_sysctl("mptcp/scheduler", scheduler);
		net_sysctl("mptcp/weights", table);
		snprintf(number, sizeof(number), "%d", segments);
		net_sysctl("mptcp/rr_num_segments", number);
		net_sysctl("mptcp/rr_cwnd_limited", limited ? "1" : "0");
		net_sysctl("mptcp/minrtt_bufferbloat", bloat ? "30" : "0");
		net_sysctl("mptcp/minrtt_opportunistic", opportunistic ? "1" : "0");
		net_sysctl("mptcp/minrtt_penalise", penalise ? "1" : "0");
	}
	snprintf(text, size, "%s segments %d limited %d bufferbloat %d opportunistic %d penalise %d weights %s",
		 scheduler, segments, limited, bloat, opportunistic, penalise, table);
}

static int random_events(struct event *events, int paths, const bool *joined)
{
	int i, n = 0, m = below(MOST_EVENTS / 2 + 1);

	for (i = 0; i < paths; i++)
		if (!joined[i])
			events[n++] = (struct event){ between(0, 500), i, JOIN };
	for (i = 0; i < m && n + 2 <= MOST_EVENTS + PATHS; i++) {
		struct event e = { between(30, 1500), below(paths), below(WEIGHTS + 1) };

		if (e.what == UP)
			e.what = DOWN;
		if ((e.what == LEAVE || e.what == JOIN) && e.path == 0)
			e.what = CHANGE;
		events[n++] = e;
		if (e.what == DOWN || e.what == DARK)
			events[n++] = (struct event){ e.at_ms + log_between(20, 3000),
						      e.path, e.what == DOWN ? UP : CHANGE };
	}
	return n;
}

static const struct event *next_event(const struct event *events, int n, double after)
{
	const struct event *next = NULL;
	int i;

	for (i = 0; i < n; i++)
		if (events[i].at_ms > after && (!next || events[i].at_ms < next->at_ms))
			next = &events[i];
	return next;
}

static void happen(const struct event *e, struct link *links, bool *joined)
{
	struct link dark = links[e->path];
	char table[40];

	switch (e->what) {
	case DOWN:
	case UP:
		net_carrier(e->path, e->what == UP);
		break;
	case DARK:
		dark.loss = 1;
		net_shape(e->path, &dark);
		break;
	case CHANGE:
		links[e->path] = random_link();
		net_shape(e->path, &links[e->path]);
		break;
	case JOIN:
		if (!joined[e->path])
			net_join(e->path);
		joined[e->path] = true;
		break;
	case LEAVE:
		if (joined[e->path])
			net_leave(e->path);
		joined[e->path] = false;
		break;
	case BACKUP:
		if (joined[e->path])
			net_backup(e->path, below(2));
		break;
	case WEIGHTS:
		snprintf(table, sizeof(table), "* 10.77.%d.2 %d", e->path + 1, (int)below(50));
		net_enter(PROXY);
		net_sysctl("mptcp/weights", table);
		break;
	}
}

/* One scenario; false, and a line, when it went wrong. */
static bool scenario(unsigned int number, uint64_t seed, uint64_t *digest)
{
	struct connection c = { 0 };
	struct event events[MOST_EVENTS + PATHS];
	const struct event *next;
	struct link links[PATHS];
	bool joined[PATHS] = { 0 };
	char settings[200];
	double start, at = 0;
	int i, paths, n;
	enum side s;

	state = seed * 0x100000001b3ULL + number;
	paths = 1 + below(4);
	for (i = 0; i < paths; i++)
		links[i] = random_link();
	net_begin(paths, links, draw());
	random_settings(settings, sizeof(settings));
	for (i = 0; i < paths; i++) {
		joined[i] = i == 0 || below(3);
		if (joined[i])
			net_join(i);
	}
	for (s = PROXY; s <= DEVICE; s++) {
		struct flow *f = &c.from[s];

		f->size = below(4) ? log_between(1, 1 << 20) : 0;
		f->chunk = log_between(1 + f->size / 1000, 1 << 18);
		f->every_ms = below(2) ? 0 : between(0, 500.0 * f->chunk / (f->size + 1));
	}
	n = random_events(events, paths, joined);

	start = now_ms();
	c.from[PROXY].next_ms = c.from[DEVICE].next_ms = start;
	if (!connection_open(&c, 5000, 60e3))
		c.wrong = "no connection";
	while (!c.wrong && !connection_done(&c)) {
		next = next_event(events, n, at);
		if (!connection_run(&c, start + (next ? next->at_ms : LIMIT_MS)))
			break;
		if (!next && !connection_done(&c))
			c.wrong = "stuck";
		if (next) {
			at = next->at_ms;
			happen(next, links, joined);
		}
	}
	*digest = (*digest ^ (uint64_t)((now_ms() - start) * 1e6)) * 0x100000001b3ULL;
	if (c.wrong) {
		printf("FAIL %u: %s after %.3f ms: down %lu of %lu (sent %lu), up %lu of %lu (sent %lu), %d paths, %s\n",
		       number, c.wrong, now_ms() - start, c.from[PROXY].got,
		       c.from[PROXY].size, c.from[PROXY].sent, c.from[DEVICE].got,
		       c.from[DEVICE].size, c.from[DEVICE].sent, paths, settings);
		fflush(stdout);
	}
	connection_close(&c);
	net_end();
	return !c.wrong;
}

int soak(unsigned int first, unsigned int count, uint64_t seed)
{
	uint64_t digest = 0xcbf29ce484222325ULL;
	unsigned int i, failed = 0;
	double start = now_ms();

	for (i = 0; i < count; i++) {
		failed += !scenario(first + i, seed, &digest);
		if (i % 50 == 49) {
			printf("AT %u\n", first + i + 1);
			fflush(stdout);
		}
	}
	printf("SOAK %u..%u: %u failed, %.0f s of virtual time, digest %016lx\n", first,
	       first + count - 1, failed, (now_ms() - start) / 1e3, digest);
	return failed ? 1 : 0;
}
