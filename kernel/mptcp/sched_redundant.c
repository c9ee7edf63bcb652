// SPDX-License-Identifier: GPL-2.0
/* Redundant: every byte on every usable subflow that has room. A subflow that
 * is behind skips what the peer has acknowledged meanwhile, so that it holds
 * up no more than its own window.
 */
#include "sched_braid.h"

static int redundant_get_subflow(struct mptcp_sock *msk, struct mptcp_sched_data *data)
{
	struct mptcp_subflow_context *subflow;
	bool backups, any = false;
	u16 skip;

	if (data->reinject)
		return sched_reinject(msk);

	backups = sched_backups_only(msk);
	sched_for_each_usable(msk, subflow, backups) {
		u32 room = sched_room(mptcp_subflow_tcp_sock(subflow));

		if (room && mptcp_redundant_next(msk, subflow, &skip)) {
			sched_take(msk, subflow, room);
			any = true;
		}
	}
	return any ? 0 : -EINVAL;
}

static struct mptcp_sched_ops redundant_ops = {
	.get_subflow	= redundant_get_subflow,
	.redundant	= true,
	.name		= "redundant",
	.owner		= THIS_MODULE,
};

static int __init redundant_register(void)
{
	return mptcp_register_scheduler(&redundant_ops);
}
late_initcall(redundant_register);
