// SPDX-License-Identifier: GPL-2.0
/* Short queues in front of subflows, with net.mptcp.short_queues = 1: what the eBPF program
 * crates/mptcp/bpf/queues.bpf.c does on other kernels, once in a round trip of each subflow.
 * How siblings are looked at: cc_paths.c.
 */
#include <linux/math64.h>
#include "sched_braid.h"

#define QUEUE_HAVE_TYPES
#define QUEUE_DIV64(a, b) div64_u64(a, b)
#include "queue_math.h"

static u32 queues_slowest(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;
	u32 most = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(subflow, &msk->conn_list, node) {
		const struct sock *ssk = READ_ONCE(subflow->tcp_sock);

		if (!ssk || data_race(subflow->stale || subflow->closing) ||
		    data_race(subflow->backup || subflow->request_bkup) ||
		    !__mptcp_subflow_active(subflow))
			continue;
		/* another socket may be there by now: its round trip is bounded by use */
		most = max(most, READ_ONCE(tcp_sk(ssk)->srtt_us) >> 3);
	}
	rcu_read_unlock();
	return most;
}

/* Under the lock of the subflow @sk, which has measured a round trip. */
void mptcp_subflow_rtt(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct mptcp_subflow_context *subflow;
	struct mptcp_sock *msk;
	struct queue_fact f;
	u32 queue;

	if (!sk_is_mptcp(sk))
		return;
	subflow = mptcp_subflow_ctx(sk);
	if (!subflow || !subflow->conn ||
	    !READ_ONCE(mptcp_sched_settings(sk)->short_queues))
		return;
	msk = mptcp_sk(subflow->conn);
	f = (struct queue_fact) {
		.pacing		= READ_ONCE(sk->sk_pacing_rate),
		.acked		= tp->bytes_acked,
		.window		= (u64)tcp_snd_cwnd(tp) * tp->mss_cache,
		.now		= READ_ONCE(tp->notsent_lowat),
		.delivered	= tp->rate_delivered,
		.delivered_us	= tp->rate_interval_us,
		.mss		= tp->mss_cache,
		.rtt_us		= tp->srtt_us >> 3,
		.slowest_us	= queues_slowest(msk),
		.at_rest	= tp->write_seq == tp->snd_nxt &&
				  READ_ONCE(msk->write_seq) == READ_ONCE(msk->snd_nxt),
	};
	if (!queue_differs(queue_bound(&f), READ_ONCE(tp->notsent_lowat), &queue))
		return;
	WRITE_ONCE(tp->notsent_lowat, queue);
	sk->sk_write_space(sk);
}
