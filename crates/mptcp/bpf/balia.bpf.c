// SPDX-License-Identifier: GPL-2.0
/* BALIA, balanced linked adaptation for MPTCP:
 * draft-walid-mptcp-congestion-control-04.
 */
#include "coupled.h"
#include "../../../kernel/mptcp/cc_math_balia.h"

char _license[] SEC("license") = "GPL";

SEC("struct_ops")
void HOOK(balia_init, struct sock *sk)
{
	if (!divides(sk))
		return;
	begin(sk);
}

SEC("struct_ops")
void HOOK(balia_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	avoid(sk, ack, acked, cc_balia_increase, no_extra);
}

SEC("struct_ops")
__u32 HOOK(balia_ssthresh, struct sock *sk)
{
	return after_loss(sk, cc_balia_ssthresh);
}

SEC("struct_ops")
__u32 HOOK(balia_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops balia = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= (void *)balia_init,
	.ssthresh	= (void *)balia_ssthresh,
	.cong_avoid	= (void *)balia_cong_avoid,
	.undo_cwnd	= (void *)balia_undo_cwnd,
	.in_ack_event	= (void *)coupled_in_ack_event,
	.name		= "braid_balia",
};
