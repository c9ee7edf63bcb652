// SPDX-License-Identifier: GPL-2.0
/* Swing: CUBIC for links whose rate swings. As kernel/mptcp/cc_swing.c, which says how it goes
 * together with the kernel's CUBIC.
 */
#include "coupled.h"
#include "../../../kernel/mptcp/cc_math_swing.h"

char _license[] SEC("license") = "GPL";

#define USEC_PER_SEC	1000000

extern void cubictcp_init(struct sock *sk) __ksym;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;

/* The kernel's, for its size alone. */
struct bictcp {
	__u32	cnt;
} __attribute__((preserve_access_index));

/* No kernel has this: a program that can come here is not loaded. */
struct sock___refused {
	int	cubic_is_larger_than_swing_knows;
} __attribute__((preserve_access_index));

static __always_inline struct cc_swing *swing_ca(struct sock *sk)
{
	_Static_assert(CC_SWING_CUBIC + sizeof(struct cc_swing) <= 13 * 8, "icsk_ca_priv");
	return ca_priv(sk) + CC_SWING_CUBIC;
}

static __always_inline void avoid_from(struct sock *sk, __u32 window)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	tp->snd_cwnd = window;
	if (tp->snd_ssthresh > window)
		tp->snd_ssthresh = window;
	cubictcp_init(sk);
	cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops")
void HOOK(swing_init, struct sock *sk)
{
	/* CUBIC would write over what is kept behind it */
	if (bpf_core_type_size(struct bictcp) > CC_SWING_CUBIC &&
	    ((struct sock___refused *)sk)->cubic_is_larger_than_swing_knows)
		return;
	if (!divides(sk))
		return;
	cubictcp_init(sk);
	cc_swing_init(swing_ca(sk));
}

SEC("struct_ops")
void HOOK(swing_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct cc_swing *ca = swing_ca(sk);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct cc_swing_ack ack = {};
	__u32 window;

	cubictcp_acked(sk, sample);
	if (BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) > TCP_CA_Disorder) {
		if (!cc_swing_was_no_chance(ca, tp->lost))
			return;
		window = cc_swing_after_loss(ca->chance_window);
		if (tp->snd_ssthresh > window)
			tp->snd_ssthresh = window;
		cc_swing_congestion(ca, ca->chance_window, tp->rack.rtt_us);
		return;
	}
	ca->chance_window = 0;
	if (sample->rtt_us < 0)
		return;
	ack.rtt_us = sample->rtt_us;
	ack.now_us = tp->tcp_mstamp;
	ack.now_s = tp->tcp_mstamp / USEC_PER_SEC;
	ack.una = tp->snd_una;
	ack.nxt = tp->snd_nxt;
	ack.cwnd = tp->snd_cwnd;
	ack.slow_start = tp->snd_cwnd < tp->snd_ssthresh;
	ack.full = cwnd_limited(tp);
	window = cc_swing_acked(ca, &ack);
	if (window)
		avoid_from(sk, window);
}

SEC("struct_ops")
void HOOK(swing_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct cc_swing *ca = swing_ca(sk);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 before = tp->snd_cwnd, after, probe = cc_swing_probe(ca);

	if (!probe || before < tp->snd_ssthresh) {
		cubictcp_cong_avoid(sk, ack, acked);
		return;
	}
	if (!cwnd_limited(tp))
		return;
	tcp_cong_avoid_ai(tp, probe, acked);
	after = tp->snd_cwnd;
	if (cc_swing_regained(ca, before, &after))
		avoid_from(sk, after);
}

SEC("struct_ops")
__u32 HOOK(swing_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 lost = tp->lost_out;
	__u32 after = cc_swing_event(swing_ca(sk), tp->snd_cwnd, tp->rack.rtt_us, lost,
				     tp->lost - lost);

	if (!after)
		return cubictcp_recalc_ssthresh(sk);
	cubictcp_init(sk);
	cubictcp_recalc_ssthresh(sk);
	return after;
}

SEC("struct_ops")
void HOOK(swing_set_state, struct sock *sk, __u8 state)
{
	cubictcp_state(sk, state);
	if (state == TCP_CA_Loss)
		cc_swing_begin_again(swing_ca(sk));
}

SEC("struct_ops")
void HOOK(swing_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	cubictcp_cwnd_event(sk, event);
	if (event == CA_EVENT_CWND_RESTART || event == CA_EVENT_TX_START)
		cc_swing_forget_round(swing_ca(sk));
}

SEC("struct_ops")
__u32 HOOK(swing_undo_cwnd, struct sock *sk)
{
	cc_swing_begin_again(swing_ca(sk));
	return tcp_reno_undo_cwnd(sk);
}

SEC("struct_ops")
__u32 HOOK(swing_sndbuf_expand, struct sock *sk)
{
	return CC_SWING_SNDBUF;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops swing = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= (void *)swing_init,
	.ssthresh	= (void *)swing_ssthresh,
	.cong_avoid	= (void *)swing_cong_avoid,
	.pkts_acked	= (void *)swing_pkts_acked,
	.set_state	= (void *)swing_set_state,
	.cwnd_event	= (void *)swing_cwnd_event,
	.undo_cwnd	= (void *)swing_undo_cwnd,
	.sndbuf_expand	= (void *)swing_sndbuf_expand,
	.in_ack_event	= (void *)coupled_in_ack_event,
	.name		= "braid_swing",
};
