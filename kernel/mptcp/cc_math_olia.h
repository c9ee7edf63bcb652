/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* OLIA's update rule: draft-khalili-mptcp-congestion-control-05. See cc_math.h
 * for domain and use.
 */
#ifndef _MPTCP_CC_MATH_OLIA_H
#define _MPTCP_CC_MATH_OLIA_H

#include "cc_math.h"

#define CC_INTERVAL_MAX	((1ULL << 48) - 1)

/* l^2 / rtt of a against b's, exact: section 2 */
CC_INLINE int cc_olia_compare(const struct cc_path *a, const struct cc_path *b)
{
	__u64 la = a->interval < CC_INTERVAL_MAX ? a->interval : CC_INTERVAL_MAX;
	__u64 lb = b->interval < CC_INTERVAL_MAX ? b->interval : CC_INTERVAL_MAX;
	struct cc_u128 qa = cc_mul(la, la), qb = cc_mul(lb, lb);
	struct cc_u128 va = cc_mul(qa.lo, b->rtt_us), vb = cc_mul(qb.lo, a->rtt_us);

	va.hi += qa.hi * b->rtt_us;	/* 96 + 24 bits */
	vb.hi += qb.hi * a->rtt_us;
	return cc_cmp(va, vb);
}

/* alpha_r of section 3 as +-1 / den; *den is 0 where it is 0 */
CC_INLINE int cc_olia_alpha(const struct cc_path *paths, unsigned int n,
			    unsigned int me, __u32 *den)
{
	unsigned int p, best = 0, max_w = 0, collected = 0;
	__u32 widest = 0;

	for (p = 0; p < n && p < CC_PATHS; p++) {
		if (paths[p].cwnd > widest)
			widest = paths[p].cwnd;
		if (cc_olia_compare(&paths[p], &paths[best]) > 0)
			best = p;
	}
	for (p = 0; p < n && p < CC_PATHS; p++) {
		if (paths[p].cwnd == widest)
			max_w++;
		else if (!cc_olia_compare(&paths[p], &paths[best]))
			collected++;
	}
	*den = 0;
	if (!collected)
		return 0;
	if (paths[me].cwnd == widest) {
		*den = n * max_w;
		return -1;
	}
	if (!cc_olia_compare(&paths[me], &paths[best])) {
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
