/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* What swing adds to CUBIC, for links whose rate swings: crates/core/src/cc/swing.rs says
 * what and why, and is what this is held against. CUBIC itself is the kernel's, also its slow
 * start. See cc_math.h for domain and use.
 *
 * CUBIC has the first bytes of icsk_ca_priv, and what is kept fits behind it: 44 bytes.
 */
#ifndef _MPTCP_CC_MATH_SWING_H
#define _MPTCP_CC_MATH_SWING_H

#include "cc_math.h"

#define CC_SWING_MIN_QUEUE	2000U	/* us */
#define CC_SWING_SAMPLES	8U	/* round trips that show a queue early */
#define CC_SWING_MIN_RTT_LIFE	30U	/* s */
#define CC_SWING_GROWTHS	3U	/* by a quarter, a half, and once */
#define CC_SWING_CHANCE_PACKETS	4U
#define CC_SWING_MIN_WINDOW	2U

/* Bytes of struct bictcp, which is known to tcp_cubic.c alone. */
#define CC_SWING_CUBIC		60

/* Windows that a send buffer has room for, 2 by itself: one to double into at once, and what the
 * others have to send while one that has become slow holds up the receiver.
 */
#define CC_SWING_SNDBUF		8U

struct cc_swing {
	__u32	rtt_now;	/* us, least of 30 s */
	__u32	rtt_before;	/* and of those before */
	__u32	round_end;	/* snd_nxt at its begin */
	__u32	round_began;	/* us */
	__u32	round_window;	/* packets */
	__u32	round_rtt;	/* us, least */
	__u32	fills;		/* packets that fill the path without a queue */
	__u32	regain;		/* window before losses by chance, 0: none */
	__u32	chance_window;	/* window before one, while it recovers, 0: none */
	__u32	chance_lost;	/* packets ever lost, before it */
	__u16	rtt_began;	/* s */
	__u8	samples;
	__u8	empty_rounds : 2;
	__u8	full : 1;	/* the window was in full use all the round */
	__u8	begun : 1;	/* a round */
};

/* What an acknowledgement tells. */
struct cc_swing_ack {
	__u32	rtt_us;
	__u32	now_us;
	__u32	now_s;
	__u32	una;		/* snd_una */
	__u32	nxt;		/* snd_nxt */
	__u32	cwnd;
	bool	slow_start;
	bool	full;		/* the window is in full use */
};

CC_INLINE __u32 cc_swing_at_least(__u32 window)
{
	return window < CC_SWING_MIN_WINDOW ? CC_SWING_MIN_WINDOW : window;
}

/* The window that CUBIC has after a loss in this one: 717/1024 of it, as the kernel's beta. */
CC_INLINE __u32 cc_swing_after_loss(__u32 window)
{
	return cc_swing_at_least((__u64)window * 717 / 1024);
}

CC_INLINE __u32 cc_swing_min_rtt(const struct cc_swing *s)
{
	return s->rtt_now < s->rtt_before ? s->rtt_now : s->rtt_before;
}

CC_INLINE bool cc_swing_shows_queue(const struct cc_swing *s, __u32 rtt_us)
{
	__u32 min = cc_swing_min_rtt(s), least = min / 8;

	if (least < CC_SWING_MIN_QUEUE)
		least = CC_SWING_MIN_QUEUE;
	return rtt_us >= min && rtt_us - min >= least;
}

CC_INLINE void cc_swing_init(struct cc_swing *s)
{
	s->rtt_now = s->rtt_before = CC_RTT_MAX;
	s->rtt_began = 0;
	s->fills = s->regain = s->chance_window = s->chance_lost = 0;
	s->empty_rounds = 0;
	s->begun = 0;
}

/* What was begun says nothing: after a pause, or a congestion event. */
CC_INLINE void cc_swing_forget_round(struct cc_swing *s)
{
	s->begun = 0;
}

/* A queue shows with this window. */
CC_INLINE void cc_swing_learn(struct cc_swing *s, __u32 window, __u32 rtt_us)
{
	__u32 min = cc_swing_min_rtt(s);

	s->fills = min < rtt_us ? CC_DIV64((__u64)window * min, (__u64)rtt_us) : window;
}

/* The end of a round; the window to go on with in congestion avoidance, or 0: as before. */
CC_INLINE __u32 cc_swing_end_round(struct cc_swing *s, __u32 cwnd, bool slow_start)
{
	bool queue = cc_swing_shows_queue(s, s->round_rtt), probed = s->empty_rounds;
	__u32 most;

	if (slow_start)
		return 0;
	if (queue) {
		s->regain = 0;
		cc_swing_learn(s, s->round_window, s->round_rtt);
	}
	if (s->full && !queue &&
	    (cwnd < s->regain || (__u64)cwnd * 8 >= (__u64)s->fills * 9)) {
		if (s->empty_rounds < CC_SWING_GROWTHS)
			s->empty_rounds++;
		return 0;
	}
	s->empty_rounds = 0;
	if (!probed || !queue)
		return 0;
	/* what it has grown to since is more than the path carries */
	most = cwnd - cwnd / 3;
	if (most < s->round_window)
		most = s->round_window;
	return cc_swing_at_least(cwnd < most ? cwnd : most);
}

/* An acknowledgement out of recovery; as cc_swing_end_round(). */
CC_INLINE __u32 cc_swing_acked(struct cc_swing *s, const struct cc_swing_ack *a)
{
	__u32 rtt = a->rtt_us;

	if (rtt < CC_RTT_MIN)
		rtt = CC_RTT_MIN;
	if (rtt > CC_RTT_MAX)
		rtt = CC_RTT_MAX;
	if ((__u16)(a->now_s - s->rtt_began) > CC_SWING_MIN_RTT_LIFE) {
		s->rtt_began = a->now_s;
		s->rtt_before = s->rtt_now;
		s->rtt_now = rtt;
	}
	if (rtt < s->rtt_now)
		s->rtt_now = rtt;
	if (!s->begun) {
		s->begun = 1;
		s->round_end = a->nxt;
		s->round_began = a->now_us;
		s->round_window = a->cwnd;
		s->round_rtt = rtt;
		s->samples = 0;
		s->full = 1;
	}
	if (rtt < s->round_rtt)
		s->round_rtt = rtt;
	if (s->samples < CC_SWING_SAMPLES)
		s->samples++;
	if (!a->full)
		s->full = 0;
	if ((__s32)(a->una - s->round_end) < 0 &&
	    /* a queue is believed early where the window grows fast */
	    (!(s->empty_rounds || a->slow_start) || s->samples < CC_SWING_SAMPLES ||
	     a->now_us - s->round_began < cc_swing_min_rtt(s) / 4 ||
	     !cc_swing_shows_queue(s, s->round_rtt)))
		return 0;
	s->begun = 0;
	return cc_swing_end_round(s, a->cwnd, a->slow_start);
}

/* Acknowledged packets for each of which the window grows by one while the path is probed,
 * or 0: as CUBIC has it.
 */
CC_INLINE __u32 cc_swing_probe(const struct cc_swing *s)
{
	return s->empty_rounds ? 8U >> s->empty_rounds : 0;
}

/* Whether the window has grown to what was lost of it by chance: beyond that it is CUBIC's, from
 * this one on.
 */
CC_INLINE bool cc_swing_regained(struct cc_swing *s, __u32 before, __u32 *cwnd)
{
	if (before >= s->regain || *cwnd < s->regain)
		return false;
	*cwnd = s->regain;
	s->regain = 0;
	s->empty_rounds = 0;
	return true;
}

/* Whether so many lost packets of a window are more than chance. */
CC_INLINE bool cc_swing_is_much(__u32 window, __u32 lost)
{
	__u32 most = window / 64;

	if (most < CC_SWING_CHANCE_PACKETS)
		most = CC_SWING_CHANCE_PACKETS;
	return lost > most;
}

/* Nothing is probed or regained. */
CC_INLINE void cc_swing_begin_again(struct cc_swing *s)
{
	s->chance_window = s->regain = 0;
	s->empty_rounds = 0;
	cc_swing_forget_round(s);
}

/* A window is taken back for congestion. */
CC_INLINE void cc_swing_congestion(struct cc_swing *s, __u32 window, __u32 rtt_us)
{
	cc_swing_learn(s, window, rtt_us);
	cc_swing_begin_again(s);
}

/* A congestion event with lost packets so far, 0 for a mark: the window after it if it is taken
 * for chance, or 0: as CUBIC has it. ever_lost is without these.
 */
CC_INLINE __u32 cc_swing_event(struct cc_swing *s, __u32 window, __u32 rtt_us, __u32 lost,
			       __u32 ever_lost)
{
	__u32 after = (__u64)window * 4 / 5;

	if (!lost || cc_swing_is_much(window, lost) || cc_swing_shows_queue(s, rtt_us)) {
		cc_swing_congestion(s, window, rtt_us);
		return 0;
	}
	s->empty_rounds = 0;
	cc_swing_forget_round(s);
	s->chance_window = window;
	s->chance_lost = ever_lost;
	if (s->regain < window)
		s->regain = window;
	return cc_swing_at_least(after);
}

/* Whether what was taken for chance is none, as this much has ever been lost by now. */
CC_INLINE bool cc_swing_was_no_chance(const struct cc_swing *s, __u32 ever_lost)
{
	return s->chance_window &&
	       cc_swing_is_much(s->chance_window, ever_lost - s->chance_lost);
}

#endif /* _MPTCP_CC_MATH_SWING_H */
