// SPDX-License-Identifier: GPL-2.0
/* Weighted round robin: net.mptcp.rr_num_segments times its weight to each
 * subflow in turn (Navarro-Ortiz et al., Sensors 2024, 24, 6022, section 5).
 * Weights are net.mptcp.weights, and count from the next segment after they
 * change. A subflow with weight 0 gets nothing unless there is no other.
 */
#include "sched_round.h"

static int wrr_get_subflow(struct mptcp_sock *msk, struct mptcp_sched_data *data)
{
	return round_get_subflow(msk, data, true);
}

static struct mptcp_sched_ops wrr_ops = {
	.get_subflow	= wrr_get_subflow,
	.sent		= round_sent,
	.name		= "wrr",
	.owner		= THIS_MODULE,
};

static int __init wrr_register(void)
{
	return mptcp_register_scheduler(&wrr_ops);
}
late_initcall(wrr_register);
