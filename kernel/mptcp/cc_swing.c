// SPDX-License-Identifier: GPL-2.0
/* Swing: CUBIC for links whose rate swings (crates/core/src/cc/swing.rs). It acts on one
 * subflow alone.
 *
 * CUBIC is the kernel's own, called as it is.
 */
#include <linux/module.h>
#include "cc_paths.h"
#include "cc_math_swing.h"

static const struct tcp_congestion_ops *cubic __read_mostly;

static struct cc_swing *swing_ca(const struct sock *sk)
{
	BUILD_BUG_ON(CC_SWING_CUBIC + sizeof(struct cc_swing) > ICSK_CA_PRIV_SIZE);
	return (void *)inet_csk_ca(sk) + CC_SWING_CUBIC;
}

static bool swing_in_reduction(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state > TCP_CA_Disorder;
}

/* CUBIC anew from a window: that is its Wmax. */
static void swing_avoid_from(struct sock *sk, u32 window)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, window);
	tp->snd_ssthresh = min(tp->snd_ssthresh, window);
	cubic->init(sk);
	cubic->ssthresh(sk);
}

static void swing_init(struct sock *sk)
{
	cubic->init(sk);
	cc_swing_init(swing_ca(sk));
}

static void swing_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct cc_swing *ca = swing_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 window;

	cubic->pkts_acked(sk, sample);
	if (swing_in_reduction(sk)) {
		if (!cc_swing_was_no_chance(ca, tp->lost))
			return;
		/* the window falls on, to what CUBIC has after a loss */
		window = cc_swing_after_loss(ca->chance_window);
		tp->snd_ssthresh = min(tp->snd_ssthresh, window);
		cc_swing_congestion(ca, ca->chance_window, tp->rack.rtt_us);
		return;
	}
	ca->chance_window = 0;
	if (sample->rtt_us < 0)
		return;
	window = cc_swing_acked(ca, &(struct cc_swing_ack) {
		.rtt_us		= sample->rtt_us,
		.now_us		= tp->tcp_mstamp,
		.now_s		= div_u64(tp->tcp_mstamp, USEC_PER_SEC),
		.una		= tp->snd_una,
		.nxt		= tp->snd_nxt,
		.cwnd		= tcp_snd_cwnd(tp),
		.slow_start	= tcp_in_slow_start(tp),
		.full		= tcp_is_cwnd_limited(sk),
	});
	if (window)
		swing_avoid_from(sk, window);
}

static void swing_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct cc_swing *ca = swing_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 before = tcp_snd_cwnd(tp), after, probe = cc_swing_probe(ca);

	if (!probe || tcp_in_slow_start(tp)) {
		cubic->cong_avoid(sk, ack, acked);
		return;
	}
	if (!tcp_is_cwnd_limited(sk))
		return;
	tcp_cong_avoid_ai(tp, probe, acked);
	after = tcp_snd_cwnd(tp);
	if (cc_swing_regained(ca, before, &after))
		swing_avoid_from(sk, after);
}

static u32 swing_ssthresh(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 lost = tp->lost_out;
	u32 after = cc_swing_event(swing_ca(sk), tcp_snd_cwnd(tp), tp->rack.rtt_us,
				   lost, tp->lost - lost);

	if (!after)
		return cubic->ssthresh(sk);
	/* without fast convergence: nobody else wants it */
	cubic->init(sk);
	cubic->ssthresh(sk);
	return after;
}

static void swing_set_state(struct sock *sk, u8 state)
{
	struct cc_swing *ca = swing_ca(sk);

	cubic->set_state(sk, state);
	/* whatever the ssthresh of this timeout was taken for */
	if (state == TCP_CA_Loss)
		cc_swing_begin_again(ca);
}

/* Rounds from before a pause say nothing about now. */
static void swing_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	cubic->cwnd_event(sk, event);
	if (event == CA_EVENT_CWND_RESTART || event == CA_EVENT_TX_START)
		cc_swing_forget_round(swing_ca(sk));
}

static u32 swing_undo_cwnd(struct sock *sk)
{
	cc_swing_begin_again(swing_ca(sk));
	return tcp_reno_undo_cwnd(sk);
}

static u32 swing_sndbuf_expand(struct sock *sk)
{
	return CC_SWING_SNDBUF;
}

static struct tcp_congestion_ops swing __read_mostly = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= swing_init,
	.ssthresh	= swing_ssthresh,
	.cong_avoid	= swing_cong_avoid,
	.pkts_acked	= swing_pkts_acked,
	.set_state	= swing_set_state,
	.cwnd_event	= swing_cwnd_event,
	.undo_cwnd	= swing_undo_cwnd,
	.sndbuf_expand	= swing_sndbuf_expand,
	.owner		= THIS_MODULE,
	.name		= "swing",
};

static int __init swing_register(void)
{
	rcu_read_lock();
	cubic = tcp_ca_find("cubic");
	rcu_read_unlock();
	return cubic ? tcp_register_congestion_control(&swing) : -ENOENT;
}
late_initcall(swing_register);
