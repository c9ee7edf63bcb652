// SPDX-License-Identifier: GPL-2.0
/* Gives every MPTCP subflow of one cgroup a congestion control, those joined
 * later too; plain TCP keeps its own.
 */
#include "sockops.h"

char _license[] SEC("license") = "GPL";

/* written before it is loaded */
const volatile char name[16] = "";

SEC("sockops")
int congestion(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk;
	struct tcp_sock *tp;

	if (ctx->op != BPF_SOCK_OPS_TCP_CONNECT_CB &&
	    ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	sk = ctx->sk;
	if (!sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp && tp->is_mptcp)
		/* the connection goes on with the one it has where this fails */
		bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, (void *)name, sizeof(name));
	return 1;
}
