/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* OLIA's update rule: draft-khalili-mptcp-congestion-control-05. See cc_math.h
 * for domain and use.
 */
#ifndef _MPTCP_CC_MATH_OLIA_H
#define _MPTCP_CC_MATH_OLIA_H

#include "cc_math.h"

#define CC_INTERVAL_MAX	((1ULL << 48) - 1)

/* la^2 / rtt_a against lb^2 / rtt_b, exact, intervals below 2^48 */
CC_OUTLINE int cc_olia_rank(__u64 la, __u32 rtt_a, __u64 lb, __u32 rtt_b)
{
	struct cc_u128 qa = cc_mul(la, la), qb = cc_mul(lb, lb);
	struct cc_u128 va = cc_mul(qa.lo, rtt_b), vb = cc_mul(qb.lo, rtt_a);

	va.hi += qa.hi * rtt_b;	/* 96 + 24 bits */
	vb.hi += qb.hi * rtt_a;
	return cc_cmp(va, vb);
}

CC_INLINE __u64 cc_olia_interval(const struct cc_path *p)
{
	return p->interval < CC_INTERVAL_MAX ? p->interval : CC_INTERVAL_MAX;
}

/* alpha_r of section 3 as +-1 / den; *den is 0 where it is 0 */
CC_INLINE int cc_olia_alpha(const struct cc_path *paths, unsigned int n,
			    unsigned int me, __u32 *den)
{
	/* section 2's best path by what it shows */
	__u64 best = cc_olia_interval(&paths[0]);
	__u32 best_rtt = paths[0].rtt_us, widest = paths[0].cwnd;
	unsigned int p, max_w = 0, collected = 0;

	for (p = 1; p < n && p < CC_PATHS; p++) {
		__u64 l = cc_olia_interval(&paths[p]);

		if (paths[p].cwnd > widest)
			widest = paths[p].cwnd;
		if (cc_olia_rank(l, paths[p].rtt_us, best, best_rtt) > 0) {
			best = l;
			best_rtt = paths[p].rtt_us;
		}
	}
	for (p = 0; p < n && p < CC_PATHS; p++) {
		if (paths[p].cwnd == widest)
			max_w++;
		else if (!cc_olia_rank(cc_olia_interval(&paths[p]),
				       paths[p].rtt_us, best, best_rtt))
			collected++;
	}
	*den = 0;
	if (!collected)
		return 0;
	if (paths[me].cwnd == widest) {
		*den = n * max_w;
		return -1;
	}
	if (!cc_olia_rank(cc_olia_interval(&paths[me]), paths[me].rtt_us, best,
			  best_rtt)) {
		*den = n * collected;
		return 1;
	}
	return 0;
}

/* Growth per acked packet, 2^-40 packets, equation (1); may be negative.
 * Error: as cc_kelly(), and less than one unit more.
 */
CC_INLINE __s64 cc_olia_increase(const struct cc_path *paths, unsigned int n,
				 unsigned int me)
{
	__s64 growth = cc_kelly(paths, n, me), shift = 0;
	__u32 den;
	int sign = cc_olia_alpha(paths, n, me, &den);

	if (sign)
		shift = CC_DIV64(CC_ONE, (__u64)paths[me].cwnd * den);
	return sign < 0 ? growth - shift : growth + shift;
}

/* The slow-start threshold after a loss: section 3 */
CC_INLINE __u32 cc_olia_ssthresh(const struct cc_path *paths, unsigned int n,
				 unsigned int me)
{
	__u32 half = paths[me].cwnd / 2, floor = n > 1 ? 1 : 2;

	return half > floor ? half : floor;
}

#endif /* _MPTCP_CC_MATH_OLIA_H */
