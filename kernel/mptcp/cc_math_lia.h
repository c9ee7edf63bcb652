/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* LIA's update rule: RFC 6356. See cc_math.h for domain and use. */
#ifndef _MPTCP_CC_MATH_LIA_H
#define _MPTCP_CC_MATH_LIA_H

#include "cc_math.h"

/* Growth per acked packet, 2^-40 packets: min(alpha / cwnd_total, 1 / cwnd_i).
 * alpha / cwnd_total is max(w_p / rtt_p^2) / sum(w_p / rtt_p)^2 (equation 2).
 * Error: as cc_kelly(). The path of the maximum is found exactly.
 */
CC_INLINE __s64 cc_lia_increase(const struct cc_path *paths, unsigned int n,
				unsigned int me)
{
	__u64 linked, alone = CC_DIV64(CC_ONE, (__u64)paths[me].cwnd);
	unsigned int p, best = 0;

	for (p = 1; p < n && p < CC_PATHS; p++) {
		const struct cc_path *a = &paths[p], *b = &paths[best];

		if (cc_cmp(cc_mul((__u64)b->rtt_us * b->rtt_us, a->cwnd),
			   cc_mul((__u64)a->rtt_us * a->rtt_us, b->cwnd)) > 0)
			best = p;
	}
	linked = cc_kelly(paths, n, best);
	return linked < alone ? linked : alone;
}

#endif /* _MPTCP_CC_MATH_LIA_H */
