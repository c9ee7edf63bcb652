// SPDX-License-Identifier: GPL-2.0
/* Coupled congestion control over the subflows of an MPTCP connection.
 *
 * Locking. tcp_congestion_ops run under the lock of their own subflow only,
 * from softirq or from the backlog, while the MPTCP socket may be owned by
 * anybody: taking its lock here would invert the order (msk, then subflow).
 * So siblings are looked at without their locks, under RCU:
 *
 *  - The connection: mptcp_subflow_ctx(sk)->conn holds a reference on it, and
 *    is cleared only under sk's lock, which we have.
 *  - The list: subflows enter and leave conn_list by the _rcu list helpers, and
 *    their contexts are freed by kfree_rcu(); a walk meets each subflow that
 *    stays, and perhaps one that comes or goes.
 *  - The subflow's socket: tcp sockets are SLAB_TYPESAFE_BY_RCU, hence what
 *    ->tcp_sock points to stays a tcp socket, though possibly another one by
 *    now. It is ours as long as its ULP data is the context that we came from:
 *    that is tested before and after reading, and no other socket can have it
 *    while the context is not freed.
 *  - The values: each is read once. They may belong to different moments, as
 *    they do in the specifications, and are brought into the domain of the
 *    arithmetic before use. On 32 bit, two halves of a 64-bit value may be of
 *    different moments: that mis-ranks a path for one round trip.
 */
#include <linux/rculist.h>
#include <linux/tcp.h>
#include "protocol.h"
#include "cc_paths.h"

/* In recovery snd_cwnd follows the packets in flight, not the path: ssthresh
 * is the window that it will have.
 */
static u32 mptcp_cc_window(const struct sock *ssk)
{
	const struct tcp_sock *tp = tcp_sk(ssk);
	/* a bit-field, of a moment as good as any other */
	u8 state = data_race(inet_csk(ssk)->icsk_ca_state + 0);

	if (state == TCP_CA_CWR || state == TCP_CA_Recovery)
		return READ_ONCE(tp->snd_ssthresh);
	return READ_ONCE(tp->snd_cwnd);
}

static void mptcp_cc_read(const struct sock *ssk, struct cc_path *path,
			  mptcp_cc_extra_t extra)
{
	memset(path, 0, sizeof(*path));
	path->cwnd = mptcp_cc_window(ssk);
	path->rtt_us = READ_ONCE(tcp_sk(ssk)->srtt_us) >> 3;
	if (extra)
		extra(ssk, path);
	cc_path_clamp(path);
}

/* Whether @subflow carries data under the same algorithm as @sk, and if so
 * what it shows.
 */
static bool mptcp_cc_sibling(const struct sock *sk,
			     struct mptcp_subflow_context *subflow,
			     struct cc_path *path, mptcp_cc_extra_t extra)
{
	const struct sock *ssk = READ_ONCE(subflow->tcp_sock);
	const struct inet_connection_sock *icsk;

	/* bits that others set for good, or until the subflow is heard again */
	if (!ssk || ssk == sk ||
	    data_race(subflow->stale || subflow->closing) ||
	    !__mptcp_subflow_active(subflow))
		return false;
	icsk = inet_csk(ssk);
	if (READ_ONCE(icsk->icsk_ca_ops) != inet_csk(sk)->icsk_ca_ops ||
	    rcu_access_pointer(icsk->icsk_ulp_data) != subflow ||
	    !READ_ONCE(tcp_sk(ssk)->srtt_us))
		return false;
	smp_rmb(); /* it is this subflow's socket, before ... */
	mptcp_cc_read(ssk, path, extra);
	smp_rmb(); /* ... and after its values were read */
	return rcu_access_pointer(icsk->icsk_ulp_data) == subflow;
}

/**
 * mptcp_cc_paths - what the subflows coupled with @sk show
 * @sk: the subflow that is asked for, its lock held
 * @paths: room for CC_PATHS; @sk itself comes first, also where it is plain TCP
 * @extra: reads what is the algorithm's own, or NULL
 *
 * Return: how many there are: 1 for plain TCP, after fallback to it, and where
 * no sibling uses this algorithm; the rules are then Reno's.
 */
unsigned int mptcp_cc_paths(const struct sock *sk, struct cc_path *paths,
			    mptcp_cc_extra_t extra)
{
	struct mptcp_subflow_context *subflow;
	const struct mptcp_sock *msk;
	unsigned int n = 1;

	mptcp_cc_read(sk, &paths[0], extra);
	if (!sk_is_mptcp(sk) || !mptcp_subflow_ctx(sk) ||
	    !mptcp_subflow_ctx(sk)->conn)
		return n;

	msk = mptcp_sk(mptcp_subflow_ctx(sk)->conn);
	if (__mptcp_check_fallback(msk))
		return n;

	rcu_read_lock();
	list_for_each_entry_rcu(subflow, &msk->conn_list, node) {
		if (n == CC_PATHS)
			break;
		if (mptcp_cc_sibling(sk, subflow, &paths[n], extra))
			n++;
	}
	rcu_read_unlock();
	return n;
}

/* Moves whole packets of credit into snd_cwnd. */
static void mptcp_cc_settle(struct sock *sk, struct mptcp_cc *cc)
{
	struct tcp_sock *tp = tcp_sk(sk);
	s64 packets = cc->credit / (s64)CC_ONE;
	u32 cwnd = tcp_snd_cwnd(tp);

	if (!packets)
		return;
	cc->credit -= packets * (s64)CC_ONE;
	if (packets > 0) {
		cwnd = min_t(s64, cwnd + packets, tp->snd_cwnd_clamp);
	} else {
		cwnd = max_t(s64, cwnd + packets, 1);
		/* OLIA's shrinking is no return to slow start */
		tp->snd_ssthresh = min(tp->snd_ssthresh, cwnd);
	}
	tcp_snd_cwnd_set(tp, cwnd);
}

/**
 * mptcp_cc_avoid - slow start and congestion avoidance
 * @sk: the subflow
 * @ack: sequence number that was acknowledged
 * @acked: packets that were
 * @increase: the algorithm's growth
 * @extra: as of mptcp_cc_paths()
 *
 * The growth per packet is computed anew when the window has changed and once
 * per round trip, as RFC 6356 4.1 and the OLIA draft, section 4, suggest.
 */
void mptcp_cc_avoid(struct sock *sk, u32 ack, u32 acked,
		    mptcp_cc_increase_t increase, mptcp_cc_extra_t extra)
{
	struct mptcp_cc *cc = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	if (cc->cwnd != tcp_snd_cwnd(tp) || !before(ack, cc->round_end)) {
		struct cc_path paths[CC_PATHS];
		unsigned int n = mptcp_cc_paths(sk, paths, extra);

		cc->increase = increase(paths, n, 0);
		cc->cwnd = tcp_snd_cwnd(tp);
		cc->round_end = tp->snd_nxt;
	}
	/* |increase| <= 2 packets = 2^41, so that 2^20 of them fit */
	cc->credit += cc->increase * min(acked, CC_CWND_MAX);
	mptcp_cc_settle(sk, cc);
}

/* A congestion event: fractions of a packet do not outlive it. */
void mptcp_cc_loss(struct sock *sk)
{
	struct mptcp_cc *cc = inet_csk_ca(sk);

	cc->credit = 0;
	cc->cwnd = 0;
}
