// SPDX-License-Identifier: GPL-2.0
/* Active-standby (3GPP TS 23.501, 5.32.8): all by the active access; by the
 * standby only while the active cannot be used. Which is which say
 * net.mptcp.priorities (the smallest is active) or, without a rule, the backup
 * flags of MPTCP.
 */
#include "sched_braid.h"

static int standby_get_subflow(struct mptcp_sock *msk, struct mptcp_sched_data *data)
{
	struct mptcp_subflow_context *subflow, *active = NULL;
	u32 priority, best = 0, room;

	if (data->reinject)
		return sched_reinject(msk);

	mptcp_for_each_subflow(msk, subflow) {
		if (!sched_usable(subflow))
			continue;
		priority = mptcp_sched_priority(msk, subflow);
		if (!active || priority < best) {
			active = subflow;
			best = priority;
		}
	}
	if (!active)
		return -EINVAL;

	/* a full window is no reason to leave it */
	room = sched_room(mptcp_subflow_tcp_sock(active));
	return room ? sched_take(msk, active, room) : -EINVAL;
}

static struct mptcp_sched_ops standby_ops = {
	.get_subflow	= standby_get_subflow,
	.name		= "active-standby",
	.owner		= THIS_MODULE,
};

static int __init standby_register(void)
{
	return mptcp_register_scheduler(&standby_ops);
}
late_initcall(standby_register);
