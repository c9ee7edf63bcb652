// SPDX-License-Identifier: GPL-2.0
/* wVegas, weighted Vegas for MPTCP: draft-xu-mptcp-congestion-control-05.
 *
 * Rounds and samples are those of TCP Vegas (net/ipv4/tcp_vegas.c), except that
 * the round trip of a round is the mean of its samples, that base_rtt is the
 * least ever seen (section 3), and that a window which the subflow does not
 * fill does not grow: the scheduler may leave a subflow idle.
 */
#include <linux/module.h>
#include "cc_paths.h"
#include "cc_math_wvegas.h"

static unsigned int wvegas_total_alpha __read_mostly = 10;
module_param(wvegas_total_alpha, uint, 0644);
MODULE_PARM_DESC(wvegas_total_alpha,
		 "packets that a connection keeps queued over all subflows");

struct wvegas {
	u64	rate;		/* cc_rate() when last weighed, or 0 */
	u64	sum_rtt;	/* us, of this round */
	u32	cnt_rtt;
	u32	base_rtt;	/* us, least ever; 0: none yet */
	u32	round_end;	/* snd_nxt at its start */
	u32	alpha;		/* 2^-16 packets */
	u32	queue_delay;	/* us */
	bool	active;		/* not recovering from a loss */
};

static void wvegas_start_round(struct sock *sk)
{
	struct wvegas *ca = inet_csk_ca(sk);

	ca->round_end = tcp_sk(sk)->snd_nxt;
	ca->sum_rtt = 0;
	ca->cnt_rtt = 0;
}

static void wvegas_init(struct sock *sk)
{
	struct wvegas *ca = inet_csk_ca(sk);

	BUILD_BUG_ON(sizeof(struct wvegas) > ICSK_CA_PRIV_SIZE);
	memset(ca, 0, sizeof(*ca));
	ca->alpha = CC_WVEGAS_INITIAL_ALPHA;
	ca->active = true;
	wvegas_start_round(sk);
}

static void wvegas_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct wvegas *ca = inet_csk_ca(sk);
	u32 rtt;

	if (sample->rtt_us < 0)
		return;
	rtt = clamp_t(u32, sample->rtt_us, CC_RTT_MIN, CC_RTT_MAX);
	if (!ca->base_rtt || rtt < ca->base_rtt)
		ca->base_rtt = rtt;
	ca->sum_rtt += rtt;
	ca->cnt_rtt++;
}

static void wvegas_set_state(struct sock *sk, u8 state)
{
	struct wvegas *ca = inet_csk_ca(sk);

	ca->active = state == TCP_CA_Open;
	if (ca->active)
		wvegas_start_round(sk);
}

/* Samples from before a pause say nothing about now. */
static void wvegas_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_CWND_RESTART || event == CA_EVENT_TX_START)
		wvegas_start_round(sk);
}

static void wvegas_extra(const struct sock *ssk, struct cc_path *path)
{
	const struct wvegas *ca = inet_csk_ca(ssk);

	/* also if the sibling has just left this algorithm */
	path->rate = min(READ_ONCE(ca->rate), 1ULL << 57);
}

static u64 wvegas_sibling_rates(const struct sock *sk)
{
	struct cc_path paths[CC_PATHS];
	unsigned int i, n = mptcp_cc_paths(sk, paths, wvegas_extra);
	u64 sum = 0;

	for (i = 1; i < n; i++)
		sum += paths[i].rate;
	return sum;
}

static void wvegas_round(struct sock *sk)
{
	struct wvegas *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = min(tcp_snd_cwnd(tp), CC_CWND_MAX);
	struct cc_wvegas s = {
		.rate		= ca->rate,
		.cwnd		= cwnd,
		.ssthresh	= tp->snd_ssthresh,
		.alpha		= ca->alpha,
		.queue_delay	= ca->queue_delay,
	};

	cc_wvegas_round(&s, ca->base_rtt, div_u64(ca->sum_rtt, ca->cnt_rtt),
			wvegas_sibling_rates(sk),
			clamp(READ_ONCE(wvegas_total_alpha), 1U,
			      CC_WVEGAS_TOTAL_MAX));
	WRITE_ONCE(ca->rate, s.rate);
	ca->alpha = s.alpha;
	ca->queue_delay = s.queue_delay;
	tp->snd_ssthresh = max(s.ssthresh, CC_WVEGAS_MIN_CWND);
	if (s.cwnd < cwnd || tcp_is_cwnd_limited(sk))
		tcp_snd_cwnd_set(tp, min(s.cwnd, tp->snd_cwnd_clamp));
}

static void wvegas_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct wvegas *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!ca->active) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (after(ack, ca->round_end)) {
		bool known = ca->cnt_rtt > 2;	/* two may both be delayed ACKs */

		if (known)
			wvegas_round(sk);
		wvegas_start_round(sk);
		if (!known) {
			tcp_reno_cong_avoid(sk, ack, acked);
			return;
		}
	}
	if (tcp_in_slow_start(tp) && tcp_is_cwnd_limited(sk))
		tcp_slow_start(tp, acked);
}

static struct tcp_congestion_ops wvegas __read_mostly = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= wvegas_init,
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= wvegas_cong_avoid,
	.pkts_acked	= wvegas_pkts_acked,
	.set_state	= wvegas_set_state,
	.cwnd_event	= wvegas_cwnd_event,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "wvegas",
};

static int __init wvegas_register(void)
{
	return tcp_register_congestion_control(&wvegas);
}
late_initcall(wvegas_register);
