// SPDX-License-Identifier: GPL-2.0
/* wVegas, weighted Vegas for MPTCP: draft-xu-mptcp-congestion-control-05.
 * As kernel/mptcp/cc_wvegas.c, which says what is taken from TCP Vegas, but for the time
 * that hosts take: on the virtual clock they take none.
 */
#include "coupled.h"
#include "../../../kernel/mptcp/cc_math_wvegas.h"
#include "wvegas_hosts.h"

char _license[] SEC("license") = "GPL";

/* packets that a connection keeps queued over all subflows */
const volatile __u32 total_alpha = 10;

struct wvegas {
	__u64	rate;		/* cc_rate() when last weighed, or 0 */
	__u32	round_rtt;	/* us, least of this round */
	__u32	cnt_rtt;
	__u32	base_rtt;	/* us, least ever; 0: none yet */
	__u32	round_end;	/* snd_nxt at its start */
	__u32	alpha;		/* 2^-16 packets */
	__u32	queue_delay;	/* us */
	__u32	active;		/* not recovering from a loss */
};

static __always_inline void start_round(struct sock *sk)
{
	struct wvegas *ca = ca_priv(sk);

	ca->round_end = ((struct tcp_sock *)sk)->snd_nxt;
	ca->round_rtt = CC_RTT_MAX;
	ca->cnt_rtt = 0;
}

SEC("struct_ops")
void HOOK(wvegas_init, struct sock *sk)
{
	struct wvegas *ca = ca_priv(sk);

	if (!divides(sk))
		return;
	ca->rate = 0;
	ca->base_rtt = 0;
	ca->alpha = CC_WVEGAS_INITIAL_ALPHA;
	ca->queue_delay = 0;
	ca->active = 1;
	start_round(sk);
}

SEC("struct_ops")
void HOOK(wvegas_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct wvegas *ca = ca_priv(sk);
	__s32 sampled = sample->rtt_us;
	__u32 rtt = sampled;

	if (sampled < 0)
		return;
	if (rtt < CC_RTT_MIN)
		rtt = CC_RTT_MIN;
	if (rtt > CC_RTT_MAX)
		rtt = CC_RTT_MAX;
	if (!ca->base_rtt || rtt < ca->base_rtt)
		ca->base_rtt = rtt;
	if (rtt < ca->round_rtt)
		ca->round_rtt = rtt;
	ca->cnt_rtt++;
}

SEC("struct_ops")
void HOOK(wvegas_set_state, struct sock *sk, __u8 state)
{
	struct wvegas *ca = ca_priv(sk);

	ca->active = state == TCP_CA_Open;
	if (state == TCP_CA_Open)
		start_round(sk);
}

/* Samples from before a pause say nothing about now. */
SEC("struct_ops")
void HOOK(wvegas_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_CWND_RESTART || event == CA_EVENT_TX_START)
		start_round(sk);
}

static __always_inline void wvegas_extra(const struct tcp_sock *tp,
					 struct cc_path *path)
{
	const struct wvegas *ca = (const void *)tp->inet_conn.icsk_ca_priv;
	__u64 rate = ca->rate;

	/* also if the sibling has just left this algorithm */
	path->rate = rate < 1ULL << 57 ? rate : 1ULL << 57;
}

static __always_inline __u64 sibling_rates(struct sock *sk)
{
	struct paths *paths = room(sk);
	unsigned int i, n;
	__u64 sum = 0;

	if (!paths)
		return 0;
	n = walk(sk, paths, wvegas_extra);
	for (i = 1; i < CC_PATHS && i < n; i++)
		sum += paths->path[i].rate;
	return sum;
}

static __always_inline void end_round(struct sock *sk)
{
	/* first: each branch before the walk has the verifier go through it once more */
	__u64 others = sibling_rates(sk);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct wvegas *ca = ca_priv(sk);
	__u32 now = tp->snd_cwnd, cwnd = now < CC_CWND_MAX ? now : CC_CWND_MAX;
	__u32 total = total_alpha;
	struct cc_wvegas s = {
		.rate		= ca->rate,
		.cwnd		= cwnd,
		.ssthresh	= tp->snd_ssthresh,
		.alpha		= ca->alpha,
		.queue_delay	= ca->queue_delay,
	};

	if (total < 1)
		total = 1;
	if (total > CC_WVEGAS_TOTAL_MAX)
		total = CC_WVEGAS_TOTAL_MAX;
	network_round(&s, ca->base_rtt, ca->round_rtt, others, total);
	ca->rate = s.rate;
	ca->alpha = s.alpha;
	ca->queue_delay = s.queue_delay;
	if (s.ssthresh < CC_WVEGAS_MIN_CWND)
		s.ssthresh = CC_WVEGAS_MIN_CWND;
	tp->snd_ssthresh = s.ssthresh;
	if (s.cwnd < cwnd || cwnd_limited(tp)) {
		if (s.cwnd > tp->snd_cwnd_clamp)
			s.cwnd = tp->snd_cwnd_clamp;
		tp->snd_cwnd = s.cwnd;
	}
}

SEC("struct_ops")
void HOOK(wvegas_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct wvegas *ca = ca_priv(sk);

	if (!ca->active) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if ((__s32)(ack - ca->round_end) > 0) {
		bool known = ca->cnt_rtt > 2;	/* two may both be delayed ACKs */

		if (known)
			end_round(sk);
		start_round(sk);
		if (!known) {
			tcp_reno_cong_avoid(sk, ack, acked);
			return;
		}
	}
	if (tp->snd_cwnd < tp->snd_ssthresh && cwnd_limited(tp))
		tcp_slow_start(tp, acked);
}

SEC("struct_ops")
__u32 HOOK(wvegas_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
__u32 HOOK(wvegas_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops wvegas = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= (void *)wvegas_init,
	.ssthresh	= (void *)wvegas_ssthresh,
	.cong_avoid	= (void *)wvegas_cong_avoid,
	.pkts_acked	= (void *)wvegas_pkts_acked,
	.set_state	= (void *)wvegas_set_state,
	.cwnd_event	= (void *)wvegas_cwnd_event,
	.undo_cwnd	= (void *)wvegas_undo_cwnd,
	.in_ack_event	= (void *)coupled_in_ack_event,
	.name		= "braid_wvegas",
};
