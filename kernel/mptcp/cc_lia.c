// SPDX-License-Identifier: GPL-2.0
/* LIA, the linked increases algorithm for MPTCP: RFC 6356. */
#include <linux/module.h>
#include "cc_paths.h"
#include "cc_math_lia.h"

static void lia_init(struct sock *sk)
{
	BUILD_BUG_ON(sizeof(struct mptcp_cc) > ICSK_CA_PRIV_SIZE);
	memset(inet_csk_ca(sk), 0, sizeof(struct mptcp_cc));
}

static void lia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	mptcp_cc_avoid(sk, ack, acked, cc_lia_increase, NULL);
}

/* section 3: only the increase differs from TCP */
static u32 lia_ssthresh(struct sock *sk)
{
	mptcp_cc_loss(sk);
	return tcp_reno_ssthresh(sk);
}

static struct tcp_congestion_ops lia __read_mostly = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= lia_init,
	.ssthresh	= lia_ssthresh,
	.cong_avoid	= lia_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "lia",
};

static int __init lia_register(void)
{
	return tcp_register_congestion_control(&lia);
}
late_initcall(lia_register);
