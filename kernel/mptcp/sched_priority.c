// SPDX-License-Identifier: GPL-2.0
/* Priority-based (3GPP TS 23.501, 5.32.8): by the access with the highest
 * priority until that is congested, the rest by the next. Priorities are as for
 * active-standby, the smallest number first; among equals the smaller
 * round-trip time. Congested means that its window is full.
 */
#include "sched_braid.h"

static int priority_get_subflow(struct mptcp_sock *msk, struct mptcp_sched_data *data)
{
	struct mptcp_subflow_context *subflow, *pick = NULL;
	u64 rank, best = U64_MAX;
	u32 room, pick_room = 0;

	if (data->reinject)
		return sched_reinject(msk);

	mptcp_for_each_subflow(msk, subflow) {
		struct sock *ssk = mptcp_subflow_tcp_sock(subflow);

		if (!sched_usable(subflow))
			continue;
		room = sched_room(ssk);
		if (!room)
			continue;
		rank = (u64)mptcp_sched_priority(msk, subflow) << 32 | sched_srtt(ssk);
		if (rank < best) {
			best = rank;
			pick = subflow;
			pick_room = room;
		}
	}
	return pick ? sched_take(msk, pick, pick_room) : -EINVAL;
}

static struct mptcp_sched_ops priority_ops = {
	.get_subflow	= priority_get_subflow,
	.name		= "priority-based",
	.owner		= THIS_MODULE,
};

static int __init priority_register(void)
{
	return mptcp_register_scheduler(&priority_ops);
}
late_initcall(priority_register);
