/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* wVegas's update rule: draft-xu-mptcp-congestion-control-05. See cc_math.h
 * for domain and use; crates/core/vectors/README.md says what is taken where
 * the draft is silent.
 */
#ifndef _MPTCP_CC_MATH_WVEGAS_H
#define _MPTCP_CC_MATH_WVEGAS_H

#include "cc_math.h"

#define CC_ALPHA_SHIFT		16
#define CC_ALPHA_ONE		(1U << CC_ALPHA_SHIFT)
#define CC_WVEGAS_GAMMA		1U
#define CC_WVEGAS_MIN_ALPHA	CC_ALPHA_ONE
#define CC_WVEGAS_INITIAL_ALPHA	(2U << CC_ALPHA_SHIFT)
#define CC_WVEGAS_MIN_CWND	2U
#define CC_WVEGAS_TOTAL_MAX	1024U	/* packets, of total_alpha */

struct cc_wvegas {
	__u64	rate;		/* cc_rate() when last weighed, or 0 */
	__u32	cwnd;
	__u32	ssthresh;
	__u32	alpha;		/* 2^-16 packets */
	__u32	queue_delay;	/* us, least since draining; 0: none yet */
};

/* The end of a round trip, section 2. base_us <= rtt_us, both in the domain;
 * sibling_rates is the sum of the siblings' rates (each below 2^57).
 * alpha is off by less than 2^-15 of it and 2^-16; windows follow exactly
 * where diff and alpha differ by more than that. Draining rounds down.
 */
CC_INLINE void cc_wvegas_round(struct cc_wvegas *s, __u32 base_us, __u32 rtt_us,
			       __u64 sibling_rates, __u32 total_alpha)
{
	__u32 delay = rtt_us - base_us;
	/* diff = queued / rtt packets; below 2^44, shifted below 2^60 */
	__u64 queued = (__u64)s->cwnd * delay, diff = queued << CC_ALPHA_SHIFT;

	if (s->cwnd < s->ssthresh) {
		if (queued > (__u64)CC_WVEGAS_GAMMA * rtt_us)
			s->ssthresh = s->cwnd - 1;
		return;
	}
	if (diff >= (__u64)s->alpha * rtt_us) {
		s->rate = cc_rate(s->cwnd, rtt_us);
		s->alpha = cc_muldiv(s->rate, (__u64)total_alpha << CC_ALPHA_SHIFT,
				     s->rate + sibling_rates);
		if (s->alpha < CC_WVEGAS_MIN_ALPHA)
			s->alpha = CC_WVEGAS_MIN_ALPHA;
	}
	if (diff > (__u64)s->alpha * rtt_us) {
		s->cwnd--;
		if (s->ssthresh > s->cwnd - 1)
			s->ssthresh = s->cwnd - 1;
	} else if (diff < (__u64)s->alpha * rtt_us) {
		s->cwnd++;
	}
	if (!s->queue_delay || delay < s->queue_delay)
		s->queue_delay = delay;
	if (delay && delay >= 2 * s->queue_delay) {
		s->cwnd = CC_DIV64((__u64)s->cwnd * base_us, 2ULL * rtt_us);
		s->queue_delay = 0;
	}
	if (s->cwnd < CC_WVEGAS_MIN_CWND)
		s->cwnd = CC_WVEGAS_MIN_CWND;
}

#endif /* _MPTCP_CC_MATH_WVEGAS_H */
