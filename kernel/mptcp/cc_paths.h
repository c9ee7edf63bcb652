/* SPDX-License-Identifier: GPL-2.0 */
/* What the coupled congestion controls of MPTCP share: the walk over the
 * subflows of a connection, and a congestion avoidance around an increase.
 */
#ifndef _MPTCP_CC_PATHS_H
#define _MPTCP_CC_PATHS_H

#include <linux/math64.h>
#include <net/tcp.h>

#define CC_HAVE_TYPES
#define CC_DIV64(a, b) div64_u64(a, b)
#include "cc_math.h"

/* Adds what only this algorithm keeps of @ssk to @path, from icsk_ca_priv and
 * counters; called without @ssk's lock, so reads are to be single.
 */
typedef void (*mptcp_cc_extra_t)(const struct sock *ssk, struct cc_path *path);

/* One of cc_math_*.h: growth per acked packet of @paths[@me], 2^-40 packets. */
typedef __s64 (*mptcp_cc_increase_t)(const struct cc_path *paths,
				     unsigned int n, unsigned int me);

/* Congestion avoidance of one subflow; first in the algorithm's icsk_ca_priv. */
struct mptcp_cc {
	s64	credit;		/* growth not yet in snd_cwnd, 2^-40 packets */
	s64	increase;	/* per acked packet, as last computed */
	u32	cwnd;		/* snd_cwnd that it was computed for, 0: none */
	u32	round_end;	/* snd_nxt then */
};

unsigned int mptcp_cc_paths(const struct sock *sk, struct cc_path *paths,
			    mptcp_cc_extra_t extra);
void mptcp_cc_avoid(struct sock *sk, u32 ack, u32 acked,
		    mptcp_cc_increase_t increase, mptcp_cc_extra_t extra);
void mptcp_cc_loss(struct sock *sk);

#endif /* _MPTCP_CC_PATHS_H */
