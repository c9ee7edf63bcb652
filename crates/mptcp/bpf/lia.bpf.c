// SPDX-License-Identifier: GPL-2.0
/* LIA, the linked increases algorithm for MPTCP: RFC 6356. */
#include "coupled.h"
#include "../../../kernel/mptcp/cc_math_lia.h"

char _license[] SEC("license") = "GPL";

SEC("struct_ops")
void HOOK(lia_init, struct sock *sk)
{
	if (!divides(sk))
		return;
	begin(sk);
}

SEC("struct_ops")
void HOOK(lia_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	avoid(sk, ack, acked, cc_lia_increase, no_extra);
}

/* section 3: only the increase differs from TCP */
SEC("struct_ops")
__u32 HOOK(lia_ssthresh, struct sock *sk)
{
	forget(sk);
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
__u32 HOOK(lia_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops lia = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= (void *)lia_init,
	.ssthresh	= (void *)lia_ssthresh,
	.cong_avoid	= (void *)lia_cong_avoid,
	.undo_cwnd	= (void *)lia_undo_cwnd,
	.in_ack_event	= (void *)coupled_in_ack_event,
	.name		= "braid_lia",
};
