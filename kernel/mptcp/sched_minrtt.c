// SPDX-License-Identifier: GPL-2.0
/* The default of MPTCP v0.96: the smallest smoothed round-trip time among the
 * subflows that have room in their congestion window.
 *
 * With net.mptcp.minrtt_bufferbloat = N, a subflow whose round-trip time has
 * grown by queueing gets no more in flight than N/10 times the window that
 * would do without the queue (Paasch, Ferlin, Alay, Bonaventure: Experimental
 * Evaluation of Multipath TCP Schedulers, CSWS 2014; they use 30).
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

static struct mptcp_sched_ops minrtt_ops = {
	.get_subflow	= minrtt_get_subflow,
	.name		= "minrtt",
	.owner		= THIS_MODULE,
};

static int __init minrtt_register(void)
{
	return mptcp_register_scheduler(&minrtt_ops);
}
late_initcall(minrtt_register);
