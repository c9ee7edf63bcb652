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

/* Weights by pacing rates bound queues by these. */
static __always_inline bool bounds_them_itself(const struct tcp_sock *tp)
{
	const struct tcp_congestion_ops *ops = tp->inet_conn.icsk_ca_ops;

	return ops && ops->name[0] == 'w' && ops->name[1] == 'r' && ops->name[2] == 'r';
}

/* The longest round trip of the connection's subflows, us. */
static __always_inline __u32 slowest(struct sock *sk)
{
	struct mptcp_sock *msk = connection(sk);
	struct mptcp_subflow_context *c;
	struct list_head *at;
	__u32 most = 0;
	int i;

	if (!msk)
		return 0;
	for_each_subflow(msk, at, c, i) {
		struct tcp_sock *tp = sibling(sk, c);

		if (tp && !is_backup(c) && tp->srtt_us >> 3 > most)
			most = tp->srtt_us >> 3;
	}
	return most;
}

/* What the subflow sends, bytes/s. Its window over the round trip is far more where a queue
 * of this very host is what limits it; twice what came through is enough to grow by.
 */
static __always_inline __u64 rate_of(const struct tcp_sock *tp)
{
	__u64 pacing = tp->inet_conn.icsk_inet.sk.sk_pacing_rate, delivered;
	__u32 us = tp->rate_interval_us;

	if (!us)
		return pacing;
	delivered = 2000000ULL * tp->rate_delivered * tp->mss_cache / us;
	return delivered < pacing ? delivered : pacing;
}

SEC("sockops")
int queues(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	__u64 bytes = 0, acked;
	struct tcp_sock *tp;
	__u32 op = ctx->op;

	if (op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB && op != BPF_SOCK_OPS_RTT_CB)
		return 1;
	if (!sk || bpf_get_netns_cookie(ctx) != cookie)
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || !tp->is_mptcp || bounds_them_itself(tp))
		return 1;
	if (op == BPF_SOCK_OPS_RTT_CB) {
		bytes = queue_bytes(rate_of(tp), queue_time(tp->srtt_us >> 3,
							    slowest((struct sock *)tp)));
		/* the first round trips may show any rate */
		acked = tp->bytes_acked;
		if (bytes > acked)
			bytes = acked;
	} else {
		bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags |
						       BPF_SOCK_OPS_RTT_CB_FLAG);
	}
	bound_queue(ctx, tp, bytes);
	return 1;
}
