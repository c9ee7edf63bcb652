// SPDX-License-Identifier: GPL-2.0
/* OLIA, the opportunistic linked increases algorithm for MPTCP:
 * draft-khalili-mptcp-congestion-control-05.
 */
#include <linux/module.h>
#include "cc_paths.h"
#include "cc_math_olia.h"

/* Marks in tp->bytes_acked at the last losses: l_1 lies between the last two,
 * l_2 runs since the last one.
 */
struct olia {
	struct mptcp_cc	cc;
	u64		loss;
	u64		loss_before;
	u64		loss_before_that;	/* for an undo */
};

static void olia_init(struct sock *sk)
{
	struct olia *ca = inet_csk_ca(sk);

	BUILD_BUG_ON(sizeof(struct olia) > ICSK_CA_PRIV_SIZE);
	memset(ca, 0, sizeof(*ca));
	ca->loss = tcp_sk(sk)->bytes_acked;
	ca->loss_before = ca->loss;
	ca->loss_before_that = ca->loss;
}

static void olia_extra(const struct sock *ssk, struct cc_path *path)
{
	const struct olia *ca = inet_csk_ca(ssk);
	u64 loss = READ_ONCE(ca->loss);

	path->interval = max(loss - READ_ONCE(ca->loss_before),
			     READ_ONCE(tcp_sk(ssk)->bytes_acked) - loss);
}

static void olia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	mptcp_cc_avoid(sk, ack, acked, cc_olia_increase, olia_extra);
}

static u32 olia_ssthresh(struct sock *sk)
{
	struct cc_path paths[CC_PATHS];
	struct olia *ca = inet_csk_ca(sk);
	unsigned int n;

	mptcp_cc_loss(sk);
	ca->loss_before_that = ca->loss_before;
	WRITE_ONCE(ca->loss_before, ca->loss);
	WRITE_ONCE(ca->loss, tcp_sk(sk)->bytes_acked);

	n = mptcp_cc_paths(sk, paths, NULL);
	paths[0].cwnd = tcp_snd_cwnd(tcp_sk(sk));
	return cc_olia_ssthresh(paths, n, 0);
}

/* The loss was none: what was acked since the loss before it counts again. */
static u32 olia_undo_cwnd(struct sock *sk)
{
	struct olia *ca = inet_csk_ca(sk);

	WRITE_ONCE(ca->loss, ca->loss_before);
	WRITE_ONCE(ca->loss_before, ca->loss_before_that);
	return tcp_reno_undo_cwnd(sk);
}

static struct tcp_congestion_ops olia __read_mostly = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= olia_init,
	.ssthresh	= olia_ssthresh,
	.cong_avoid	= olia_cong_avoid,
	.undo_cwnd	= olia_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "olia",
};

static int __init olia_register(void)
{
	return tcp_register_congestion_control(&olia);
}
late_initcall(olia_register);
