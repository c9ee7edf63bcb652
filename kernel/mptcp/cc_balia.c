// SPDX-License-Identifier: GPL-2.0
/* BALIA, balanced linked adaptation for MPTCP:
 * draft-walid-mptcp-congestion-control-04.
 */
#include <linux/module.h>
#include "cc_paths.h"
#include "cc_math_balia.h"

static void balia_init(struct sock *sk)
{
	BUILD_BUG_ON(sizeof(struct mptcp_cc) > ICSK_CA_PRIV_SIZE);
	memset(inet_csk_ca(sk), 0, sizeof(struct mptcp_cc));
}

static void balia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	mptcp_cc_avoid(sk, ack, acked, cc_balia_increase, NULL);
}

static u32 balia_ssthresh(struct sock *sk)
{
	struct cc_path paths[CC_PATHS];
	unsigned int n;

	mptcp_cc_loss(sk);
	n = mptcp_cc_paths(sk, paths, NULL);
	paths[0].cwnd = clamp(tcp_snd_cwnd(tcp_sk(sk)), 1U, CC_CWND_MAX);
	return cc_balia_ssthresh(paths, n, 0);
}

static struct tcp_congestion_ops balia __read_mostly = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= balia_init,
	.ssthresh	= balia_ssthresh,
	.cong_avoid	= balia_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "balia",
};

static int __init balia_register(void)
{
	return tcp_register_congestion_control(&balia);
}
late_initcall(balia_register);
