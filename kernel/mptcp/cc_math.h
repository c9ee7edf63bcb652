/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* Integer arithmetic of the coupled congestion controls.
 *
 * No kernel headers: fixed-width types and static inline functions only, so
 * that user space can compile the same lines and hold them against exact
 * vectors (crates/core/vectors/cc), and eBPF includes them. What includes
 * this may define CC_DIV64, CC_INLINE and CC_OUTLINE first.
 *
 * Domain: windows of 1 to 2^20 packets, round trips of 10 us to 10 s, up to
 * CC_PATHS paths. cc_path_clamp() brings a path into it; inside nothing
 * overflows, and each function states its error.
 */
#ifndef _MPTCP_CC_MATH_H
#define _MPTCP_CC_MATH_H

#ifndef CC_HAVE_TYPES
#include <linux/types.h>
#endif

#ifndef CC_INLINE
#define CC_INLINE static inline __attribute__((unused))
#endif

/* What many ways lead through: eBPF's verifier takes it on its own, once. */
#ifndef CC_OUTLINE
#define CC_OUTLINE CC_INLINE
#endif

/* a / b, both __u64, b not 0 */
#ifndef CC_DIV64
#define CC_DIV64(a, b) ((a) / (b))
#endif

#define CC_PATHS	16		/* more subflows are not looked at */
#define CC_CWND_MAX	(1U << 20)
#define CC_RTT_MIN	10U		/* us */
#define CC_RTT_MAX	10000000U	/* us */

#define CC_SHIFT	40		/* of increases: units of 2^-40 packets */
#define CC_ONE		(1ULL << CC_SHIFT)

#define CC_REACH_SHIFT	20		/* of cc_reach() */
#define CC_RATE_SHIFT	40		/* of cc_rate() */

/* what one path shows to all paths of its connection */
struct cc_path {
	__u32	cwnd;		/* packets */
	__u32	rtt_us;		/* smoothed */
	__u64	interval;	/* OLIA's l: bytes acked between losses */
	__u64	rate;		/* wVegas: cc_rate() when last weighed, or 0 */
};

CC_INLINE void cc_path_clamp(struct cc_path *p)
{
	if (p->cwnd < 1)
		p->cwnd = 1;
	if (p->cwnd > CC_CWND_MAX)
		p->cwnd = CC_CWND_MAX;
	if (p->rtt_us < CC_RTT_MIN)
		p->rtt_us = CC_RTT_MIN;
	if (p->rtt_us > CC_RTT_MAX)
		p->rtt_us = CC_RTT_MAX;
}

struct cc_u128 {
	__u64	hi;
	__u64	lo;
};

/* a * b, exact */
CC_INLINE struct cc_u128 cc_mul(__u64 a, __u64 b)
{
	__u64 al = (__u32)a, ah = a >> 32, bl = (__u32)b, bh = b >> 32;
	__u64 low = al * bl, one = ah * bl, two = al * bh;
	__u64 mid = (low >> 32) + (__u32)one + (__u32)two;
	struct cc_u128 r;

	r.lo = (mid << 32) | (__u32)low;
	r.hi = ah * bh + (one >> 32) + (two >> 32) + (mid >> 32);
	return r;
}

CC_INLINE int cc_cmp(struct cc_u128 a, struct cc_u128 b)
{
	if (a.hi != b.hi)
		return a.hi < b.hi ? -1 : 1;
	if (a.lo != b.lo)
		return a.lo < b.lo ? -1 : 1;
	return 0;
}

/* One digit of a long division: the quotient of (high, digit) by d, high < d,
 * d's top bit set; Knuth, The Art of Computer Programming 2, 4.3.1 D.
 */
CC_INLINE __u64 cc_div_digit(__u64 high, __u32 digit, __u64 d, __u64 *rest)
{
	__u64 d1 = d >> 32, d0 = (__u32)d;
	__u64 q = CC_DIV64(high, d1), r = high - q * d1;
	int i;

	/* the estimate is at most two too large */
	for (i = 0; i < 2; i++) {
		if (r >> 32 || (!(q >> 32) && q * d0 <= ((r << 32) | digit)))
			break;
		q--;
		r += d1;
	}
	*rest = ((high << 32) | digit) - q * d;
	return q;
}

/* floor(a * b / c), c not 0; ~0 where that does not fit */
CC_OUTLINE __u64 cc_muldiv(__u64 a, __u64 b, __u64 c)
{
	struct cc_u128 n = cc_mul(a, b);
	__u64 high, low, rest;
	unsigned int s = 0, step;

	if (!n.hi)
		return CC_DIV64(n.lo, c);
	if (n.hi >= c)
		return ~0ULL;
	/* in a fixed number of steps, for the verifier */
	for (step = 32; step; step >>= 1) {
		if (!(c >> (64 - step))) {
			c <<= step;
			s += step;
		}
	}
	if (s) {
		n.hi = (n.hi << s) | (n.lo >> (64 - s));
		n.lo <<= s;
	}
	high = cc_div_digit(n.hi, n.lo >> 32, c, &rest);
	low = cc_div_digit(rest, (__u32)n.lo, c, &rest);
	return (high << 32) + low;
}

/* x = w / rtt in 2^-CC_RATE_SHIFT packets per us, less than 2^57.
 * Too small by less than one unit: 2^-16 of it or less.
 */
CC_INLINE __u64 cc_rate(__u32 cwnd, __u32 rtt_us)
{
	return CC_DIV64((__u64)cwnd << CC_RATE_SHIFT, (__u64)rtt_us);
}

/* rtt_i * sum(w_p / rtt_p), in 2^-CC_REACH_SHIFT packets: the window that all
 * paths together would have at path i's round trip (RFC 6356 4.2 moves the
 * round trip into the sum for the same reason, the error: here less than
 * 2^-20 packets a path, and the result is at least w_i). Each term is below
 * 2^60, so 16 of them fit.
 */
CC_INLINE __u64 cc_reach(const struct cc_path *paths, unsigned int n,
			 unsigned int i)
{
	__u64 sum = 0;
	unsigned int p;

	for (p = 0; p < n && p < CC_PATHS; p++)
		sum += CC_DIV64(((__u64)paths[p].cwnd * paths[i].rtt_us)
				<< CC_REACH_SHIFT, (__u64)paths[p].rtt_us);
	return sum;
}

/* (w_i / rtt_i^2) / sum(w_p / rtt_p)^2 = w_i / reach_i^2, in units of 2^-40
 * packets per acked packet. Above the true value by at most n * 2^-19 of it,
 * below it by less than 2 units.
 */
CC_INLINE __u64 cc_kelly(const struct cc_path *paths, unsigned int n,
			 unsigned int i)
{
	__u64 reach = cc_reach(paths, n, i);
	__u64 part = cc_muldiv((__u64)paths[i].cwnd << CC_REACH_SHIFT, CC_ONE,
			       reach);

	return cc_muldiv(part, 1ULL << CC_REACH_SHIFT, reach);
}

#endif /* _MPTCP_CC_MATH_H */
