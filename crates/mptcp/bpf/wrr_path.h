/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* A path of weighted round robin: what its ACKs tell of it, and how long the queue
 * in front of it may be.
 */
#ifndef BRAID_WRR_PATH_H
#define BRAID_WRR_PATH_H

#include "queue.h"

#define WRR_INLINE static __always_inline
#include "wrr_rate.h"

/* In icsk_ca_priv, which has 104 bytes. */
struct wrr_path {
	__u64	rate;		/* delivered in the last one, bytes/s */
	__u64	share;		/* what it may send, bytes/s */
	__u64	cap;		/* work-conserving: search of its own */
	__u64	good;
	__u32	hold_ms;
	__u32	began_us;	/* the window of measurement, or 0 */
	__u32	window_us;	/* how long the last one was */
	__u32	delivered;	/* packets, when the window began */
	__u32	lost;		/* in it */
	__u32	min_rtt_us;
	__u32	min_rtt_ms;	/* when */
	__u32	queue_us;	/* that stood in the last window */
	__u32	queue_ms;	/* since when one stands, or 0 */
	__u32	losses_ms;	/* since when packets are lost, or 0 */
	__u32	least_us;	/* least round trip in the window, or 0 */
	__u32	batch_us;	/* least of the last round trips, up to BATCH */
	__u32	due;		/* bytes for each unit of weight that were, 28.4 */
	__u32	acked;		/* then */
	__s32	owed;		/* bytes */
	__u16	weight;
	__u16	version;
	__u16	paced_ms;	/* when share was set */
	__u16	heard_ms;	/* when the last ACK came */
	__u8	round;		/* of weights in use that owed is of */
	__u8	batch:4;	/* how many round trips */
	__u8	access:4;
	__u8	full:1;		/* the path was, in the last window */
	__u8	unfilled:1;	/* in this window the path ran out of data */
	__u8	paused:1;	/* this window began anew after a silence */
	__u8	late:4;		/* windows for which ACKs are taken to come late */
};

_Static_assert(sizeof(struct wrr_path) <= 104, "more than icsk_ca_priv has");

#define DSS_LEN		28
#define MIN_RTT_MS	10000		/* a least round trip holds for so long */
#define OURS_MS		1000		/* what stands for longer is made by others */
#define LATE_WINDOWS	15
#define BATCH		8

/* Bytes of a full packet: mss_cache does not know of the option with the data
 * sequence number (RFC 8684, 3.3).
 */
static __always_inline __u32 payload(const struct tcp_sock *tp)
{
	__u32 mss = tp->mss_cache;

	if (tp->is_mptcp && mss > 10 * DSS_LEN)
		mss -= DSS_LEN;
	return mss;
}

/* More than trains of ACKs make (RFC 9406 has the like). */
static __always_inline __u32 queue_min(const struct wrr_path *p)
{
	return p->min_rtt_us / 8 + 4000;
}

/* Above the rate that was good, a queue is ours and seen as early as may be; below,
 * one must stand for a whole window. Says whether there is one.
 */
static __always_inline bool early(struct wrr_path *p, __u32 rtt)
{
	if (!p->batch || rtt < p->batch_us)
		p->batch_us = rtt;
	if (++p->batch < BATCH)
		return false;
	p->batch = 0;
	return p->batch_us > p->min_rtt_us + queue_min(p);
}

static __always_inline bool stands(__u32 *since, bool now, __u32 ms)
{
	if (!now)
		*since = 0;
	else if (!*since)
		*since = ms | 1;
	return now && ms - *since < OURS_MS;
}

/* Whether the path was full in the window that ends now: of a queue or losses that
 * stay whatever we do, only heavy losses count.
 */
static __always_inline bool was_full(struct wrr_path *p, __u32 ms, __u32 sent)
{
	__u32 least = p->least_us, min_rtt = p->min_rtt_us;
	bool queue, losses;

	p->queue_us = least > min_rtt ? least - min_rtt : 0;
	queue = stands(&p->queue_ms, p->queue_us > queue_min(p), ms);
	losses = stands(&p->losses_ms, p->lost > 2 + sent / 50, ms);
	return queue || losses || p->lost > 2 + sent / 8;
}

/* Whether the path was silent for most of a window: what such a window carried tells
 * nothing of how much the path can do. Radios scan, hand over and go to sleep. Only
 * one in a row: a path that gets slow has windows like that all the time.
 */
static __always_inline bool was_silent(struct wrr_path *p, __u32 ms, __u32 window_us)
{
	__u16 silent = ms - p->heard_ms;

	p->heard_ms = ms;
	if (!p->began_us || p->paused || silent * 2000U < window_us)
		return false;
	p->paused = 1;
	return true;
}

static __always_inline void begin(const struct tcp_sock *tp, struct wrr_path *p, __u32 us)
{
	p->began_us = us;
	p->delivered = tp->delivered;
	p->lost = 0;
	p->least_us = 0;
	p->unfilled = 0;
}

static __always_inline bool others_queue(const struct wrr_path *p, __u64 now)
{
	return p->queue_ms && (__u32)(now / WRR_MS) - p->queue_ms >= OURS_MS;
}

static __always_inline void measure(struct tcp_sock *tp, struct wrr_path *p,
				    const struct rate_sample *rs, __u64 now,
				    bool searching, bool idle)
{
	__u32 us = now / 1000 | 1, since = us - p->began_us;
	__u32 srtt = tp->srtt_us >> 3, sent, window = srtt + WRR_TICK / 1000;
	__u32 ms = now / WRR_MS;
	bool done = false;

	if (p->began_us && wrr_late((__u16)(ms - p->heard_ms), rs->acked_sacked,
				    rs->prior_in_flight))
		p->late = LATE_WINDOWS;
	if (was_silent(p, ms, window)) {
		p->batch = 0;
		begin(tp, p, us);
		return;
	}
	if (rs->rtt_us > 0) {
		__u32 rtt = rs->rtt_us;

		if (!p->min_rtt_us || rtt <= p->min_rtt_us ||
		    ms - p->min_rtt_ms > MIN_RTT_MS) {
			p->min_rtt_us = rtt;
			p->min_rtt_ms = ms;
		}
		if (!p->least_us || rtt < p->least_us)
			p->least_us = rtt;
		if (early(p, rtt) && searching && since >= WRR_TICK / 1000) {
			p->least_us = p->batch_us;
			done = true;
		}
	}
	if (rs->losses > 0)
		p->lost += rs->losses;
	if (rs->is_app_limited)
		p->unfilled = 1;
	sent = tp->delivered - p->delivered;
	/* on a slow path longer, so that single packets weigh little */
	if (p->began_us && !done && (since < window || (sent < 40 && since < 5 * window)))
		return;
	p->full = 0;
	if (p->began_us && since < 10 * window) {
		p->window_us = since;
		p->rate = (__u64)sent * payload(tp) * 1000000 / since;
		/* A path that ran out of data tells by a queue alone that it is full, and
		 * nothing about how much it could do.
		 */
		p->full = was_full(p, ms, p->unfilled ? ~0U : sent);
		if (p->unfilled && idle)
			p->full = 0;
		else if (p->unfilled && p->full && p->rate < p->share)
			p->rate = p->share;
	}
	p->paused = 0;
	if (p->late)
		p->late--;
	begin(tp, p, us);
}

/* Work-conserving: what this path alone can do. */
static __always_inline __u64 own_rate(struct tcp_sock *tp, struct wrr_path *p,
				      __u64 now, bool measured)
{
	__u32 srtt = tp->srtt_us >> 3, ms = now / WRR_MS;
	struct wrr_search s = {
		.rate = p->cap,
		.good = p->good,
		.hold = (__s32)(p->hold_ms - ms) > 0 ? now + 1 : 0,
	};

	if (!s.rate)
		s.rate = wrr_first(10 * payload(tp), srtt);
	if (measured) {
		enum wrr_seen seen = WRR_BUSY;

		if (p->full)
			seen = WRR_FULL;
		else if (p->rate < s.rate - s.rate / 4)
			seen = WRR_IDLE;
		/* What the application leaves unused is not forgotten. */
		if (seen != WRR_IDLE) {
			struct wrr_sight at = {
				.carried = p->rate,
				.now = now,
				.since = p->window_us * 1000ULL,
				.shows = (srtt + p->window_us) * 1000ULL,
				.queue_us = p->queue_us,
			};

			wrr_step(&s, seen, &at);
		}
	}
	p->cap = s.rate;
	p->good = s.good;
	if (s.hold > now + 1)
		p->hold_ms = s.hold / WRR_MS;
	return s.rate;
}

/* What was due, and to whom it counts. */
struct dues {
	__u64	per_unit;	/* for each unit of weight, bytes, 28.4 */
	__u32	slowest_us;	/* round trip of the connection's longest path */
	__u32	idle;		/* nothing waits */
	__u32	sharers;	/* of the path's weight, itself too */
	__u8	round;		/* of weights in use */
	bool	count;
	bool	pause;		/* this time says nothing of the shares */
};

/* What the path is owed by now: nothing with other weights than before. */
static __always_inline void settle_debt(const struct tcp_sock *tp, struct wrr_path *p,
					const struct dues *dues)
{
	__u32 due = dues->per_unit, acked = tp->bytes_acked;
	struct wrr_debt d = {
		.rate = p->share,
		.due = ((__u64)(due - p->due) * p->weight >> 4) / dues->sharers,
		.carried = acked - p->acked,
		.slowest_us = dues->slowest_us,
		.idle = dues->idle,
	};

	if (due == p->due)
		return;
	/* one that has just joined owes nothing for the time before */
	if (!dues->count || !p->due || p->round != dues->round)
		p->owed = 0;
	else if (!dues->pause)
		p->owed = wrr_owed(p->owed, &d);
	p->round = dues->round;
	p->due = due;
	p->acked = acked;
}

/* Rates fall by half in 44 ms at most: what is queued goes at the rate that it was
 * queued for, and the scheduler's own mean of our rates can follow.
 */
static __always_inline __u64 slewed(struct wrr_path *p, __u64 rate, __u64 now)
{
	__u32 ms = now / WRR_MS;
	__u16 since = ms - p->paced_ms;
	__u64 least = 0;

	if (since < 64)
		least = p->share - p->share / 64 * since;
	p->paced_ms = ms;
	p->share = least > rate ? least : rate;
	return p->share;
}

#endif /* BRAID_WRR_PATH_H */
