/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* What the coupled congestion controls share: the walk over the subflows of a
 * connection, and a congestion avoidance around an increase. The arithmetic is
 * that of Braid's kernel, kernel/mptcp/cc_math*.h, and so is the rest
 * (kernel/mptcp/cc_paths.c, with the reasons).
 */
#ifndef BRAID_COUPLED_H
#define BRAID_COUPLED_H

#include "subflows.h"

#define CC_HAVE_TYPES
#define CC_INLINE static __always_inline
#define CC_OUTLINE __noinline
#include "../../../kernel/mptcp/cc_math.h"

/* Congestion avoidance of one subflow; first in icsk_ca_priv. */
struct coupled {
	__s64	credit;		/* growth not yet in snd_cwnd, 2^-40 packets */
	__s64	increase;	/* per acked packet, as last computed */
	__u32	cwnd;		/* snd_cwnd that it was computed for, 0: none */
	__u32	round_end;	/* snd_nxt then */
};

struct paths {
	struct cc_path path[CC_PATHS];
};

/* Room for the walk, more than a BPF program has on its stack. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct paths);
} walks SEC(".maps");

/* @sk's; NULL where the kernel has no memory for it. */
static __always_inline struct paths *room(struct sock *sk)
{
	return bpf_sk_storage_get(&walks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
}

/* An algorithm's own part of a path, from its icsk_ca_priv and counters. */
typedef void (*extra_t)(const struct tcp_sock *tp, struct cc_path *path);

static __always_inline bool in_recovery(const struct tcp_sock *tp)
{
	__u8 state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);

	return state == TCP_CA_CWR || state == TCP_CA_Recovery;
}

/* In recovery snd_cwnd follows the packets in flight, not the path: ssthresh
 * is the window that it will have.
 */
#define read_path(tp, to, extra)					\
	do {								\
		if (in_recovery(tp))					\
			(to)->cwnd = (tp)->snd_ssthresh;		\
		else							\
			(to)->cwnd = (tp)->snd_cwnd;			\
		(to)->rtt_us = (tp)->srtt_us >> 3;			\
		(to)->interval = 0;					\
		(to)->rate = 0;						\
		extra(tp, to);						\
		cc_path_clamp(to);					\
	} while (0)

static __always_inline void no_extra(const struct tcp_sock *tp,
				     struct cc_path *path)
{
}

/* Fills @paths with what @sk (first) and the subflows coupled with it show: those
 * that carry data under the same algorithm. Returns how many there are; 1 for
 * plain TCP, for which the rules are Reno's.
 */
static __always_inline unsigned int walk(struct sock *sk, struct paths *paths,
					 extra_t extra)
{
	struct mptcp_sock *msk = connection(sk);
	struct mptcp_subflow_context *c;
	unsigned int n = 1;
	struct list_head *at;
	int i;

	read_path((struct tcp_sock *)sk, &paths->path[0], extra);
	if (!msk)
		return n;
	for_each_subflow(msk, at, c, i) {
		struct tcp_sock *tp = sibling(sk, c);

		if (!tp || c->tcp_sock == sk)
			continue;
		if (n >= CC_PATHS)
			break;
		read_path(tp, &paths->path[n], extra);
		n++;
	}
	return n;
}

/* tcp_is_cwnd_limited(), which the kernel has inline */
static __always_inline bool cwnd_limited(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh &&
	       tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* Moves whole packets of credit into snd_cwnd. */
static __always_inline void settle(struct tcp_sock *tp, struct coupled *cc)
{
	__u32 cwnd = tp->snd_cwnd, most = tp->snd_cwnd_clamp;
	__s64 credit = cc->credit, packets, next;

	/* towards 0; not all BPF machines divide signed numbers */
	if (credit < 0)
		packets = -(__s64)((__u64)-credit >> CC_SHIFT);
	else
		packets = (__u64)credit >> CC_SHIFT;
	if (!packets)
		return;
	next = cwnd + packets;
	cc->credit = credit - packets * (__s64)CC_ONE;
	if (next < 1)
		next = 1;
	if (next > most)
		next = most;
	/* OLIA's shrinking is no return to slow start */
	if (next < cwnd && tp->snd_ssthresh > next)
		tp->snd_ssthresh = next;
	tp->snd_cwnd = next;
}

typedef __s64 (*increase_t)(const struct cc_path *paths, unsigned int n,
			    unsigned int me);

/* Slow start and congestion avoidance. The growth per packet is computed anew
 * when the window has changed and once per round trip.
 */
static __always_inline void avoid(struct sock *sk, __u32 ack, __u32 acked,
				  increase_t increase, extra_t extra)
{
	struct coupled *cc = ca_priv(sk);
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (!cwnd_limited(tp))
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	if (cc->cwnd != tp->snd_cwnd || (__s32)(ack - cc->round_end) >= 0) {
		struct paths *paths = room(sk);

		/* No memory: as before, for another round. */
		if (paths)
			cc->increase = increase(paths->path,
						walk(sk, paths, extra), 0);
		cc->cwnd = tp->snd_cwnd;
		cc->round_end = tp->snd_nxt;
	}
	/* |increase| <= 2 packets = 2^41, so that 2^20 of them fit */
	if (acked > CC_CWND_MAX)
		acked = CC_CWND_MAX;
	cc->credit += cc->increase * acked;
	settle(tp, cc);
}

/* A congestion event: fractions of a packet do not outlive it. */
static __always_inline void forget(struct sock *sk)
{
	struct coupled *cc = ca_priv(sk);

	cc->credit = 0;
	cc->cwnd = 0;
}

static __always_inline void begin(struct sock *sk)
{
	struct coupled *cc = ca_priv(sk);

	cc->increase = 0;
	cc->round_end = 0;
	forget(sk);
}

typedef __u32 (*threshold_t)(const struct cc_path *paths, unsigned int n,
			     unsigned int me);

/* The slow-start threshold after a loss, by the window that @sk has at this
 * moment; Reno's where the kernel has no memory.
 */
static __always_inline __u32 after_loss(struct sock *sk, threshold_t threshold)
{
	struct paths *paths = room(sk);
	unsigned int n;

	forget(sk);
	if (!paths)
		return tcp_reno_ssthresh(sk);
	n = walk(sk, paths, no_extra);
	paths->path[0].cwnd = ((struct tcp_sock *)sk)->snd_cwnd;
	cc_path_clamp(&paths->path[0]);
	return threshold(paths->path, n, 0);
}

/* A kernel may skip a program now and then; the hook's result is then whatever
 * was in a register. What comes of that is mended at the next ACK.
 */
SEC("struct_ops")
void HOOK(coupled_in_ack_event, struct sock *sk, __u32 flags)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 window = tp->prior_cwnd;

	if (tp->snd_cwnd && tp->snd_cwnd <= CC_CWND_MAX &&
	    (tp->snd_ssthresh <= CC_CWND_MAX ||
	     tp->snd_ssthresh == TCP_INFINITE_SSTHRESH))
		return;
	if (window > CC_CWND_MAX)
		window = 20;
	window /= 2;
	if (window < 2)
		window = 2;
	tp->snd_ssthresh = window;
	if (!tp->snd_cwnd || tp->snd_cwnd > window)
		tp->snd_cwnd = window;
}

#endif /* BRAID_COUPLED_H */
