// SPDX-License-Identifier: GPL-2.0
/* Round robin: net.mptcp.rr_num_segments to each subflow in turn. */
#include "sched_round.h"

static int rr_get_subflow(struct mptcp_sock *msk, struct mptcp_sched_data *data)
{
	return round_get_subflow(msk, data, false);
}

static struct mptcp_sched_ops rr_ops = {
	.get_subflow	= rr_get_subflow,
	.sent		= round_sent,
	.name		= "rr",
	.owner		= THIS_MODULE,
};

static int __init rr_register(void)
{
	return mptcp_register_scheduler(&rr_ops);
}
late_initcall(rr_register);
