/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* What a round trip takes that the network has no part in. Plain arithmetic, so that it
 * can be compiled for user space as well (crates/core/tests/kernel_math). After
 * cc_math_wvegas.h.
 */
#ifndef _BRAID_WVEGAS_HOSTS_H
#define _BRAID_WVEGAS_HOSTS_H

/* us: what busy hosts and links that send in batches may add to the least round trip of a
 * round, an eighth of the least ever at most. 10 packets take 0.1 ms at 1 Gbit/s: where it
 * is not left out, such time is taken for a queue.
 */
#define HOSTS_US	250U

static inline __attribute__((always_inline)) __u32 hosts_rtt(__u32 base_us)
{
	return base_us / 8 < HOSTS_US ? base_us / 8 : HOSTS_US;
}

/* What is left of rtt_us >= base_us. Rates by it are up to an eighth too high. */
static inline __attribute__((always_inline)) __u32 network_rtt(__u32 base_us,
							       __u32 rtt_us)
{
	__u32 hosts = hosts_rtt(base_us);

	return rtt_us - base_us <= hosts ? base_us : rtt_us - hosts;
}

/* cc_wvegas_round() without what hosts may take: neither is it a queue, nor one that has
 * doubled. rtt_us is CC_RTT_MAX at most.
 */
static inline __attribute__((always_inline)) void
network_round(struct cc_wvegas *s, __u32 base_us, __u32 rtt_us, __u64 sibling_rates,
	      __u32 total_alpha)
{
	__u32 hosts = hosts_rtt(base_us), cwnd = s->cwnd, full;

	rtt_us = rtt_us > base_us ? network_rtt(base_us, rtt_us) : base_us;
	/* 0 is none yet, also after a round without a queue */
	if (s->queue_delay && s->queue_delay < hosts)
		s->queue_delay = hosts;
	cc_wvegas_round(s, base_us, rtt_us, sibling_rates, total_alpha);
	if (s->cwnd + 1 >= cwnd)
		return;
	/* Drained: slow start leads back to what is to be queued, or it would drain again. */
	full = (__u64)cwnd * base_us / rtt_us + (s->alpha >> CC_ALPHA_SHIFT);
	if (s->ssthresh > full)
		s->ssthresh = full;
}

#endif /* _BRAID_WVEGAS_HOSTS_H */
