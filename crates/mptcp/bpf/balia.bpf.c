// SPDX-License-Identifier: GPL-2.0
/* BALIA, balanced linked adaptation for MPTCP:
 * draft-walid-mptcp-congestion-control-04.
 */
#include "coupled.h"
#include "../../../kernel/mptcp/cc_math_balia.h"

char _license[] SEC("license") = "GPL";

SEC("struct_ops")
void BPF_PROG(balia_init, struct sock *sk)
{
	struct coupled *cc = ca_priv(sk);

	cc->increase = 0;
	cc->round_end = 0;
	forget(sk);
}

SEC("struct_ops")
void BPF_PROG(balia_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	avoid(sk, ack, acked, cc_balia_increase, no_extra);
}

SEC("struct_ops")
__u32 BPF_PROG(balia_ssthresh, struct sock *sk)
{
	struct paths *paths;

	forget(sk);
	paths = bpf_sk_storage_get(&walks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!paths)
		return tcp_reno_ssthresh(sk);
	return cc_balia_ssthresh(paths->path, walk_now(sk, paths, no_extra), 0);
}

SEC("struct_ops")
__u32 BPF_PROG(balia_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC("struct_ops")
void BPF_PROG(balia_in_ack_event, struct sock *sk, __u32 flags)
{
	sanitise(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops balia = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= (void *)balia_init,
	.ssthresh	= (void *)balia_ssthresh,
	.cong_avoid	= (void *)balia_cong_avoid,
	.undo_cwnd	= (void *)balia_undo_cwnd,
	.in_ack_event	= (void *)balia_in_ack_event,
	.name		= "braid_balia",
};
