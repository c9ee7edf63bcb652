/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* BALIA's update rules: draft-walid-mptcp-congestion-control-04. See cc_math.h
 * for domain and use.
 */
#ifndef _MPTCP_CC_MATH_BALIA_H
#define _MPTCP_CC_MATH_BALIA_H

#include "cc_math.h"

/* x_r and max x_k, cc_rate(); returns sum x_k, below 2^61 */
CC_INLINE __u64 cc_balia_rates(const struct cc_path *paths, unsigned int n,
			       unsigned int me, __u64 *own, __u64 *max)
{
	__u64 sum = 0;
	unsigned int p;

	*own = *max = 0;
	for (p = 0; p < n && p < CC_PATHS; p++) {
		__u64 x = cc_rate(paths[p].cwnd, paths[p].rtt_us);

		sum += x;
		if (x > *max)
			*max = x;
		if (p == me)
			*own = x;
	}
	return sum;
}

/* Growth per acked packet, 2^-40 packets, in the form of section 4:
 * (x_r + max x)(4 x_r + max x) / (10 w_r (sum x)^2).
 * Off by less than 2^-14 of it and 2 units.
 */
CC_INLINE __s64 cc_balia_increase(const struct cc_path *paths, unsigned int n,
				  unsigned int me)
{
	__u64 own, max, sum = cc_balia_rates(paths, n, me, &own, &max);
	__u64 part = cc_muldiv(own + max, CC_ONE, sum);

	part = cc_muldiv(4 * own + max, part, sum);
	return CC_DIV64(part, 10ULL * paths[me].cwnd);
}

/* The slow-start threshold after a loss: w_r (1 - min(alpha_r, 1.5) / 2),
 * rounded down as Reno's. Off by less than 2^-15 of w_r and one packet.
 */
CC_INLINE __u32 cc_balia_ssthresh(const struct cc_path *paths, unsigned int n,
				  unsigned int me)
{
	__u32 left, floor = n > 1 ? 1 : 2;
	__u64 own, max;

	cc_balia_rates(paths, n, me, &own, &max);
	if (2 * max >= 3 * own)
		left = paths[me].cwnd / 4;
	else
		left = cc_muldiv(paths[me].cwnd, 2 * own - max, 2 * own);
	return left > floor ? left : floor;
}

#endif /* _MPTCP_CC_MATH_BALIA_H */
