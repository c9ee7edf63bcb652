// SPDX-License-Identifier: GPL-2.0
/* OLIA, the opportunistic linked increases algorithm for MPTCP:
 * draft-khalili-mptcp-congestion-control-05.
 */
#include "coupled.h"
#include "../../../kernel/mptcp/cc_math_olia.h"

char _license[] SEC("license") = "GPL";

/* Marks in tp->bytes_acked at the last losses: l_1 lies between the last two,
 * l_2 runs since the last one.
 */
struct olia {
	struct coupled	cc;
	__u64		loss;
	__u64		loss_before;
	__u64		loss_before_that;	/* for an undo */
};

static __always_inline void olia_extra(const struct tcp_sock *tp,
				       struct cc_path *path)
{
	const struct olia *ca = (const void *)tp->inet_conn.icsk_ca_priv;
	__u64 loss = ca->loss, between = loss - ca->loss_before;
	__u64 since = tp->bytes_acked - loss;

	path->interval = between > since ? between : since;
}

SEC("struct_ops")
void HOOK(olia_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct olia *ca = ca_priv(sk);

	if (!divides(sk))
		return;
	begin(sk);
	ca->loss = tp->bytes_acked;
	ca->loss_before = tp->bytes_acked;
	ca->loss_before_that = tp->bytes_acked;
}

SEC("struct_ops")
void HOOK(olia_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	avoid(sk, ack, acked, cc_olia_increase, olia_extra);
}

SEC("struct_ops")
__u32 HOOK(olia_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct olia *ca = ca_priv(sk);

	ca->loss_before_that = ca->loss_before;
	ca->loss_before = ca->loss;
	ca->loss = tp->bytes_acked;
	return after_loss(sk, cc_olia_ssthresh);
}

/* The loss was none: what was acked since the loss before it counts again. */
SEC("struct_ops")
__u32 HOOK(olia_undo_cwnd, struct sock *sk)
{
	struct olia *ca = ca_priv(sk);

	ca->loss = ca->loss_before;
	ca->loss_before = ca->loss_before_that;
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops olia = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= (void *)olia_init,
	.ssthresh	= (void *)olia_ssthresh,
	.cong_avoid	= (void *)olia_cong_avoid,
	.undo_cwnd	= (void *)olia_undo_cwnd,
	.in_ack_event	= (void *)coupled_in_ack_event,
	.name		= "braid_olia",
};
