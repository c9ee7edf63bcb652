// SPDX-License-Identifier: GPL-2.0
/* The default of MPTCP v0.96: the smallest smoothed round-trip time among the
 * subflows that have room in their congestion window.
 *
 * With net.mptcp.minrtt_bufferbloat = N, a subflow whose round-trip time has
 * grown by queueing gets no more in flight than N/10 times the window that
 * would do without the queue (Paasch, Ferlin, Alay, Bonaventure: Experimental
 * Evaluation of Multipath TCP Schedulers, CSWS 2014; they use 30).
 *
 * With net.mptcp.minrtt_opportunistic = 1, when a full window or buffer leaves a
 * fast subflow idle, it repeats the first unacknowledged data of slower ones.
 * With net.mptcp.minrtt_penalise = 1, the windows of those are halved, at most
 * once in a round trip of the fast one (Raiciu et al.: How Hard Can It Be?
 * Designing and Implementing a Deployable Multipath TCP, NSDI 2012, 4.2). Both
 * conditions are v0.96's, which had both always on.
 */
#include "sched_braid.h"

static u32 minrtt_room(const struct sock *ssk, u32 bufferbloat)
{
	u64 cwnd = tcp_snd_cwnd(tcp_sk(ssk)), cap;
	u32 lowest = tcp_min_rtt(tcp_sk(ssk));

	if (bufferbloat && lowest != ~0U) {
		cap = div_u64(cwnd * lowest * bufferbloat, 10 * sched_srtt(ssk));
		/* enough for fast retransmission to work */
		cwnd = min(cwnd, max(cap, 4ULL));
	}
	return sched_room_of(ssk, cwnd);
}

static int minrtt_get_subflow(struct mptcp_sock *msk, struct mptcp_sched_data *data)
{
	u32 bufferbloat = READ_ONCE(mptcp_sched_settings((struct sock *)msk)->bufferbloat);
	u32 room, srtt, pick_room = 0, pick_srtt = 0;
	struct mptcp_subflow_context *subflow, *pick = NULL;
	bool backups;

	if (data->reinject)
		return sched_reinject(msk);

	backups = sched_backups_only(msk);
	sched_for_each_usable(msk, subflow, backups) {
		struct sock *ssk = mptcp_subflow_tcp_sock(subflow);

		room = minrtt_room(ssk, bufferbloat);
		srtt = sched_srtt(ssk);
		if (room && (!pick || srtt < pick_srtt)) {
			pick = subflow;
			pick_room = room;
			pick_srtt = srtt;
		}
	}
	return pick ? sched_take(msk, pick, pick_room) : -EINVAL;
}

/* when this subflow last had others slowed down, in ticks */
static u64 *minrtt_last(struct mptcp_subflow_context *subflow)
{
	return &subflow->sched_priv[0];
}

/* whether this one is to slow down, as soon as we hold its lock */
static u64 *minrtt_slow(struct mptcp_subflow_context *subflow)
{
	return &subflow->sched_priv[1];
}

static void minrtt_penalise(struct mptcp_sock *msk,
			    struct mptcp_subflow_context *fast, u16 sent_on)
{
	u32 srtt = sched_srtt(mptcp_subflow_tcp_sock(fast)), now = tcp_jiffies32;
	struct mptcp_subflow_context *subflow;

	if (now - (u32)*minrtt_last(fast) < usecs_to_jiffies(srtt))
		return;

	mptcp_for_each_subflow(msk, subflow) {
		struct sock *ssk = mptcp_subflow_tcp_sock(subflow);

		if (subflow != fast && sent_on & mptcp_subflow_bit(subflow) &&
		    srtt < sched_srtt(ssk) &&
		    inet_csk(ssk)->icsk_ca_state == TCP_CA_Open) {
			*minrtt_slow(subflow) = 1;
			*minrtt_last(fast) = now;
		}
	}
}

/* Worth it if the other is four times as slow, or hardly sends at all. */
static bool minrtt_repeat(struct mptcp_sock *msk,
			  struct mptcp_subflow_context *fast, u16 sent_on)
{
	u32 srtt = sched_srtt(mptcp_subflow_tcp_sock(fast));
	struct mptcp_subflow_context *subflow;
	bool repeat = false;

	mptcp_for_each_subflow(msk, subflow) {
		const struct sock *ssk = mptcp_subflow_tcp_sock(subflow);

		if (subflow == fast || !(sent_on & mptcp_subflow_bit(subflow)))
			continue;
		if (tcp_snd_cwnd(tcp_sk(ssk)) <= 4)
			return true;
		if (4ULL * srtt >= sched_srtt(ssk))
			return false;
		repeat = true;
	}
	return repeat;
}

static bool minrtt_blocked(struct mptcp_sock *msk,
			   struct mptcp_subflow_context *subflow, u16 sent_on)
{
	const struct mptcp_sched_settings *set = mptcp_sched_settings((struct sock *)msk);

	if (!sched_usable(subflow) || !sched_room(mptcp_subflow_tcp_sock(subflow)))
		return false;
	if (READ_ONCE(set->penalise))
		minrtt_penalise(msk, subflow, sent_on);
	return READ_ONCE(set->opportunistic) && minrtt_repeat(msk, subflow, sent_on);
}

/* Called under the subflow's lock: now it can be slowed down. */
static void minrtt_sent(struct mptcp_sock *msk, struct mptcp_subflow_context *subflow,
			u32 bytes, u32 mss)
{
	struct tcp_sock *tp = tcp_sk(mptcp_subflow_tcp_sock(subflow));
	u32 cwnd = tcp_snd_cwnd(tp);

	if (!*minrtt_slow(subflow))
		return;
	*minrtt_slow(subflow) = 0;
	tcp_snd_cwnd_set(tp, max(cwnd / 2, 1U));
	/* in slow start it stays there */
	if (cwnd >= tp->snd_ssthresh)
		tp->snd_ssthresh = max(tp->snd_ssthresh / 2, 2U);
}

static struct mptcp_sched_ops minrtt_ops = {
	.get_subflow	= minrtt_get_subflow,
	.sent		= minrtt_sent,
	.blocked	= minrtt_blocked,
	.name		= "minrtt",
	.owner		= THIS_MODULE,
};

static int __init minrtt_register(void)
{
	return mptcp_register_scheduler(&minrtt_ops);
}
late_initcall(minrtt_register);
