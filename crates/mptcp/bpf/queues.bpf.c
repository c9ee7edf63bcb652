// SPDX-License-Identifier: GPL-2.0
/* Keeps the queues of MPTCP subflows short, under congestion controls that do not
 * themselves: those of the kernel, and the coupled ones.
 */
#include "subflows.h"
#include "sockops.h"
#include "queue.h"

char _license[] SEC("license") = "GPL";

/* The cookie of the network namespace whose sockets are meant; written before it is
 * loaded.
 */
const volatile __u64 cookie = 0;

/* The longest round trip of the connection's subflows, us. */
static __always_inline __u32 slowest(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *c;
	struct list_head *at;
	__u32 most = 0;
	int i;

	for_each_subflow(msk, at, c, i) {
		struct tcp_sock *tp = carrying(c);

		if (tp && !is_backup(c) && tp->srtt_us >> 3 > most)
			most = tp->srtt_us >> 3;
	}
	return most;
}

/* What may wait on @tp, in bytes. */
static __always_inline __u64 bound(const struct tcp_sock *tp, struct mptcp_sock *msk)
{
	struct queue_fact f = {
		.pacing		= tp->inet_conn.icsk_inet.sk.sk_pacing_rate,
		.acked		= tp->bytes_acked,
		.window		= (__u64)tp->snd_cwnd * tp->mss_cache,
		.now		= tp->notsent_lowat,
		.delivered	= tp->rate_delivered,
		.delivered_us	= tp->rate_interval_us,
		.mss		= tp->mss_cache,
		.rtt_us		= tp->srtt_us >> 3,
		.slowest_us	= slowest(msk),
		.at_rest	= tp->write_seq == tp->snd_nxt && msk->write_seq == msk->snd_nxt,
	};

	return queue_bound(&f);
}

SEC("sockops")
int queues(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct mptcp_sock *msk;
	struct tcp_sock *tp;
	__u32 op = ctx->op;
	__u64 bytes = 0;

	if (op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB && op != BPF_SOCK_OPS_RTT_CB)
		return 1;
	if (!sk || bpf_get_netns_cookie(ctx) != cookie)
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || !tp->is_mptcp)
		return 1;
	/* One that is not looked at again would keep the least bound for ever. One whose
	 * congestion control bounds it may get another.
	 */
	if (op != BPF_SOCK_OPS_RTT_CB &&
	    bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags |
						   BPF_SOCK_OPS_RTT_CB_FLAG))
		return 1;
	if (bounds_them_itself(tp))
		return 1;
	msk = connection((struct sock *)tp);
	if (op == BPF_SOCK_OPS_RTT_CB && msk)
		bytes = bound(tp, msk);
	bound_queue(ctx, tp, bytes);
	return 1;
}
