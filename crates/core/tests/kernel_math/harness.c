/* Feeds the kernel's update rules and decisions from standard input: a rule and its numbers
 * a line, the results a line. main.rs builds and drives it.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../../../../kernel/mptcp/cc_math_balia.h"
#include "../../../../kernel/mptcp/cc_math_lia.h"
#include "../../../../kernel/mptcp/cc_math_olia.h"
#include "../../../../kernel/mptcp/cc_math_swing.h"
#include "../../../../kernel/mptcp/cc_math_wvegas.h"
#include "../../../mptcp/bpf/wvegas_hosts.h"
#include "../../../../kernel/mptcp/sched_math.h"

static int coupled(const char *rule)
{
	struct cc_path paths[CC_PATHS];
	unsigned int n, me, i;

	if (scanf("%u %u", &me, &n) != 2 || n > CC_PATHS || me >= n)
		return 1;
	memset(paths, 0, sizeof(paths));
	for (i = 0; i < n; i++) {
		uint64_t interval;

		if (scanf("%u %u %" SCNu64, &paths[i].cwnd, &paths[i].rtt_us,
			  &interval) != 3)
			return 1;
		paths[i].interval = interval;
		cc_path_clamp(&paths[i]);
	}
	if (!strcmp(rule, "lia")) {
		printf("%lld\n", (long long)cc_lia_increase(paths, n, me));
	} else if (!strcmp(rule, "olia")) {
		__u32 den;
		int sign = cc_olia_alpha(paths, n, me, &den);

		printf("%lld %u %d %u\n",
		       (long long)cc_olia_increase(paths, n, me),
		       cc_olia_ssthresh(paths, n, me), sign, den);
	} else if (!strcmp(rule, "balia")) {
		printf("%lld %u\n", (long long)cc_balia_increase(paths, n, me),
		       cc_balia_ssthresh(paths, n, me));
	} else {
		return 1;
	}
	return 0;
}

static int wvegas(int hosts)
{
	struct cc_wvegas s = { 0 };
	uint64_t siblings;
	__u32 base, rtt, total;

	if (scanf("%u %u %u %u %u %u %" SCNu64 " %u", &s.cwnd, &s.ssthresh,
		  &s.alpha, &s.queue_delay, &base, &rtt, &siblings, &total) != 8)
		return 1;
	if (hosts)
		network_round(&s, base, rtt, siblings, total);
	else
		cc_wvegas_round(&s, base, rtt, siblings, total);
	printf("%u %u %u %u %" PRIu64 "\n", s.cwnd, s.ssthresh, s.alpha,
	       s.queue_delay, (uint64_t)s.rate);
	return 0;
}

static int network(void)
{
	__u32 base, rtt;

	if (scanf("%u %u", &base, &rtt) != 2)
		return 1;
	printf("%u\n", network_rtt(base, rtt));
	return 0;
}

static int muldiv(void)
{
	uint64_t a, b, c;

	if (scanf("%" SCNu64 " %" SCNu64 " %" SCNu64, &a, &b, &c) != 3)
		return 1;
	printf("%" PRIu64 "\n", (uint64_t)cc_muldiv(a, b, c));
	return 0;
}

static int fact(struct sched_fact *p)
{
	return scanf("%u %u %u %u %u", &p->mss, &p->cwnd, &p->inflight, &p->rtt_us,
		     &p->rttvar_us) != 5;
}

/* Steps of one connection; the first of each forgets the one before. */
static int blest(void)
{
	static struct sched_blest b;
	static struct sched_blest_lost lost[16];
	struct sched_fact fast, slow;
	unsigned int first, now, id, losses;
	long long window;

	if (scanf("%u %u %lld %u %u", &first, &now, &window, &id, &losses) != 5 ||
	    fact(&fast) || fact(&slow) || id >= 16)
		return 1;
	if (first) {
		memset(lost, 0, sizeof(lost));
		b = (struct sched_blest){ .lambda = BLEST_ONE };
	}
	sched_blest_move(&b, &lost[id], losses, now, slow.rtt_us);
	printf("%d %u %" PRIu64 "\n", sched_blest_blocks(b.lambda, window, &fast, &slow),
	       b.lambda, (uint64_t)sched_blest_fast_bytes(&fast, &slow));
	return 0;
}

static int ecf(void)
{
	static int waiting;
	struct sched_fact f, s;
	unsigned int first;
	uint64_t bytes;
	int wait;

	if (scanf("%u %" SCNu64, &first, &bytes) != 2 || fact(&f) || fact(&s))
		return 1;
	if (first)
		waiting = 0;
	wait = sched_ecf_wait(&waiting, bytes, &f, &s);
	printf("%d %d\n", wait, waiting);
	return 0;
}

/* Round trips of 50 ms and a queue, 100 acknowledgements each, and what is lost at their begin;
 * CUBIC stands still here. Prints the window after each round.
 */
static int swing(void)
{
	struct cc_swing s;
	__u32 cwnd, rounds, n, i, credit = 0, now = 0, ever_lost = 0, before_queue = 0;

	if (scanf("%u %u", &cwnd, &rounds) != 2)
		return 1;
	cc_swing_init(&s);
	for (n = 0; n < rounds; n++) {
		__u32 queue, full, lost, window, after, rtt = 50000;
		bool recovers = false;

		if (scanf("%u %u %u", &queue, &full, &lost) != 3)
			return 1;
		/* nothing is overtaken */
		if (before_queue > queue)
			now += before_queue - queue;
		before_queue = queue;
		if (lost) {
			after = cc_swing_event(&s, cwnd, rtt + queue, lost, ever_lost);
			ever_lost += lost;
			cwnd = after ? after : cwnd * 7 / 10;
			recovers = true;
		}
		window = cwnd;
		for (i = 1; i <= 100 && !recovers; i++) {
			__u32 sent = now + rtt / 100 * i, grown, probe, before;
			struct cc_swing_ack ack = {
				.rtt_us	= rtt + queue,
				.now_us	= sent + rtt + queue,
				.now_s	= (sent + rtt + queue) / 1000000,
				/* the moment at which a packet left, for its number */
				.una	= sent,
				.nxt	= sent + rtt + queue,
				.cwnd	= cwnd,
				.full	= full,
			};

			grown = cc_swing_acked(&s, &ack);
			if (grown)
				cwnd = grown;
			probe = cc_swing_probe(&s);
			if (!full || !probe)
				continue;
			before = cwnd;
			credit += window * i / 100 - window * (i - 1) / 100;
			cwnd += credit / probe;
			credit %= probe;
			cc_swing_regained(&s, before, &cwnd);
		}
		s.chance_window = 0;
		now += rtt;
		printf("%u%c", cwnd, n + 1 < rounds ? ' ' : '\n');
	}
	return 0;
}

int main(void)
{
	char rule[16];

	while (scanf("%15s", rule) == 1) {
		int bad = !strcmp(rule, "muldiv") ? muldiv() :
			  !strcmp(rule, "wvegas") ? wvegas(0) :
			  !strcmp(rule, "hosts") ? wvegas(1) :
			  !strcmp(rule, "network") ? network() :
			  !strcmp(rule, "swing") ? swing() :
			  !strcmp(rule, "blest") ? blest() :
			  !strcmp(rule, "ecf") ? ecf() : coupled(rule);

		if (bad) {
			fprintf(stderr, "cannot read the numbers of %s\n", rule);
			return 1;
		}
	}
	return 0;
}
