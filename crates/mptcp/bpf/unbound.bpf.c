// SPDX-License-Identifier: GPL-2.0
/* Takes the bounds of queues.bpf.c away again: it is run once, over the TCP sockets of the
 * caller's network namespace.
 */
#include "queue.h"

char _license[] SEC("license") = "GPL";

/* linux/bpf.h */
struct bpf_iter__tcp {
	void			*meta;
	struct sock_common	*sk_common;
};

SEC("iter/tcp")
int unbound(struct bpf_iter__tcp *ctx)
{
	/* what Multipath TCP itself gives its subflows */
	__u32 none = ~0U;
	struct tcp_sock *tp;

	if (!ctx->sk_common)
		return 0;
	tp = bpf_skc_to_tcp_sock(ctx->sk_common);
	if (tp && tp->is_mptcp && !bounds_them_itself(tp) && tp->notsent_lowat != none)
		bpf_setsockopt(tp, SOL_TCP, TCP_NOTSENT_LOWAT, &none, sizeof(none));
	return 0;
}
