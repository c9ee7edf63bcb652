/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* Integer arithmetic of BLEST and ECF.
 *
 * No kernel headers: fixed-width types and static inline functions only, so
 * that user space can compile the same lines and hold them against exact
 * vectors (crates/core/vectors/sched). What includes this may define
 * SCHED_DIV64 first.
 *
 * Domain: windows below 2^20 packets, packets below 2^16 bytes, round trips
 * below 2^24 us, buffers below 2^31 bytes; inside nothing overflows.
 */
#ifndef _MPTCP_SCHED_MATH_H
#define _MPTCP_SCHED_MATH_H

#include <linux/types.h>

#define SCHED_INLINE static inline __attribute__((unused))

/* a / b, a __u64, b __u32 and not 0 */
#ifndef SCHED_DIV64
#define SCHED_DIV64(a, b) ((a) / (b))
#endif

/* what a decision knows of a subflow */
struct sched_fact {
	__u32	mss;		/* bytes, not 0 */
	__u32	cwnd;		/* packets */
	__u32	inflight;	/* packets */
	__u32	rtt_us;		/* smoothed, not 0 */
	__u32	rttvar_us;
};

/* ---- BLEST ---- */

/* lambda in thousandths: the paper's 1.0, with the steps and the bound of the
 * authors' implementation
 */
#define BLEST_ONE	1000
#define BLEST_MAX	1300
#define BLEST_UP	40
#define BLEST_DOWN	10

/* of a connection */
struct sched_blest {
	__u32	lambda;
	__u32	moved;		/* when lambda moved last */
};

/* of a subflow */
struct sched_blest_lost {
	__u32	known;		/* it has been asked about */
	__u32	lost;		/* packets lost, when it moved lambda last */
};

/* Once in a round trip of the slow subflow; now and rtt in one unit. What it
 * had lost before it was first asked about says nothing of the last one.
 */
SCHED_INLINE void sched_blest_move(struct sched_blest *b, struct sched_blest_lost *slow,
				   __u32 lost, __u32 now, __u32 rtt)
{
	if (!slow->known) {
		slow->known = 1;
		slow->lost = lost;
	}
	if (now - b->moved < rtt)
		return;
	b->moved = now;

	if (lost != slow->lost) {
		b->lambda += BLEST_UP;
		if (b->lambda > BLEST_MAX)
			b->lambda = BLEST_MAX;
	} else {
		b->lambda -= BLEST_DOWN;
		if (b->lambda < BLEST_ONE)
			b->lambda = BLEST_ONE;
	}
	slow->lost = lost;
}

/* X of equation (3), bytes. Round trips are counted whole, as by the authors:
 * X is a sum over them.
 */
SCHED_INLINE __u64 sched_blest_fast_bytes(const struct sched_fact *fast,
					  const struct sched_fact *slow)
{
	__u64 rtts = slow->rtt_us / fast->rtt_us + !!(slow->rtt_us % fast->rtt_us);

	/* no more than a window can hold anyway */
	if (rtts > 1000)
		rtts = 1000;
	return fast->mss * (2ULL * fast->cwnd + rtts - 1) * rtts / 2;
}

/* Equation (4), for a send window of so many bytes. */
SCHED_INLINE int sched_blest_blocks(__u32 lambda, __s64 window,
				    const struct sched_fact *fast,
				    const struct sched_fact *slow)
{
	__s64 left = window - (__s64)(slow->mss * (slow->inflight + 1ULL));

	return (__s64)(sched_blest_fast_bytes(fast, slow) * lambda) > left * BLEST_ONE;
}

/* ---- ECF ---- */

/* Algorithm 1 for so many bytes that wait: whether to wait for f rather than to
 * use s. Each side is multiplied by the window, and by 4 for beta = 1/4.
 */
SCHED_INLINE int sched_ecf_wait(int *waiting, __u64 bytes, const struct sched_fact *f,
				const struct sched_fact *s)
{
	__u64 k = SCHED_DIV64(bytes + f->mss - 1, f->mss);
	__u64 delta = f->rttvar_us > s->rttvar_us ? f->rttvar_us : s->rttvar_us;
	__u64 right = f->cwnd * (s->rtt_us + delta) * (*waiting ? 5 : 4);

	if ((f->cwnd + k) * f->rtt_us * 4 >= right) {
		*waiting = 0;
		return 0;
	}
	if (k * s->rtt_us < s->cwnd * (2ULL * f->rtt_us + delta))
		return 0;
	*waiting = 1;
	return 1;
}

#endif
