/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* The rates of weighted round robin on a kernel whose scheduler knows no weights.
 *
 * Mainline's MPTCP scheduler gives the next 64 kB to the subflow with the least
 * queued bytes / pacing rate. So whoever sets the pacing rates sets the split.
 * Here they are R times the weight of the access, R one rate for the whole
 * connection: as high as all paths can do it (strict) or as the application
 * needs it, a path sending less where it can do no more (work-conserving).
 *
 * No kernel types, no clock: user space compiles the same lines for their tests.
 * Rates are bytes of payload a second, R and its like 2^-16 of that for each
 * unit of weight, times nanoseconds.
 */
#ifndef BRAID_WRR_RATE_H
#define BRAID_WRR_RATE_H

#ifndef WRR_INLINE
#define WRR_INLINE static inline __attribute__((unused))
#endif

#define WRR_SHIFT	16
#define WRR_MS		1000000ULL
#define WRR_RATE_MIN	8000ULL			/* 64 kbit/s */
#define WRR_RATE_MAX	12500000000ULL		/* 100 Gbit/s */
#define WRR_UNIT_MAX	(WRR_RATE_MAX << WRR_SHIFT)
#define WRR_TICK	(10 * WRR_MS)

/* A rate that is looked for: of the whole connection (as R), or of one path. */
struct wrr_search {
	__u64	rate;
	__u64	good;		/* carried when a path was full, last; 0: not yet */
	__u64	hold;		/* what was changed last shows from then on */
};

/* What was seen since the last step. */
enum wrr_seen {
	WRR_IDLE,		/* nothing waits to be sent */
	WRR_BUSY,		/* something does, and the path carries it */
	WRR_FULL,		/* the path is full: a queue stands, or losses */
};

/* How it was seen. Times are nanoseconds but for the queue's. */
struct wrr_sight {
	__u64	carried;	/* delivered, in the unit of the rate */
	__u64	now;
	__u64	since;		/* the last step */
	__u64	shows;		/* how long a change takes to show */
	__u32	queue_us;	/* how long the queue is that stands */
};

/* How long a queue takes to drain, about. */
#define WRR_DRAIN_US	160000ULL

/* @a * @b / @c without going beyond 64 bits, for any @a where @b * @c does not. */
WRR_INLINE __u64 wrr_times(__u64 a, __u64 b, __u64 c)
{
	return a / c * b + a % c * b / c;
}

/* A step, every WRR_TICK or more.
 *
 * Doubled until a path has been full, and again where that is far above; near it up
 * by a 1024th each tick, and above it the faster the further: what was taken for full
 * and is not, once, costs a second. When full, down to what was carried and so much
 * less that the queue drains, and further while it has not. While nothing waits,
 * towards what was carried and a tenth: rates that are no higher than need be are what
 * gives each access its share.
 */
WRR_INLINE void wrr_step(struct wrr_search *s, enum wrr_seen seen,
			 const struct wrr_sight *at)
{
	__u64 rate = s->rate, near = s->good - s->good / 32, wanted, ticks;
	__u64 carried = at->carried, now = at->now, shows = at->shows;
	__u32 queue_us = at->queue_us;

	if (seen == WRR_IDLE) {
		wanted = carried + carried / 10;
		if (wanted < rate)
			s->rate = rate - (rate - wanted) / 8;
		return;
	}
	/* What waited came through faster than that: it was a pause, and no limit. */
	if (rate < s->good && carried > s->good + s->good / 4) {
		s->good = carried < 2 * s->good ? carried : 2 * s->good;
		near = s->good - s->good / 32;
	}
	if (now < s->hold)
		return;
	if (seen == WRR_FULL) {
		/* One odd measurement does not cost more than half. */
		s->good = carried > rate / 2 ? carried : rate / 2;
		if (queue_us < WRR_DRAIN_US / 32)
			queue_us = WRR_DRAIN_US / 32;
		wanted = wrr_times(s->good, WRR_DRAIN_US, WRR_DRAIN_US + queue_us);
		/* what was carried is measured high where ACKs come in trains */
		if (wanted > rate - rate / 32)
			wanted = rate - rate / 32;
		s->rate = wanted;
		s->hold = now + 2 * shows;
		return;
	}
	/* There is much more room than there was. */
	if (rate > s->good + s->good / 4)
		s->good = 0;
	if (rate < near) {
		rate = 2 * rate < near ? 2 * rate : near;
		s->hold = now + shows;
	} else if (!s->good) {
		rate *= 2;
		s->hold = now + shows;
	} else {
		ticks = at->since * 16 / WRR_TICK;
		ticks = ticks < 16 ? 16 : ticks > 128 ? 128 : ticks;
		rate += (rate / 1024 + (rate > s->good ? (rate - s->good) / 32 : 0)) *
			ticks / 16;
	}
	s->rate = rate < WRR_UNIT_MAX ? rate : WRR_UNIT_MAX;
}

WRR_INLINE __u64 wrr_clamp(__u64 rate)
{
	if (rate < WRR_RATE_MIN)
		return WRR_RATE_MIN;
	return rate > WRR_RATE_MAX ? WRR_RATE_MAX : rate;
}

/* @rate of an access with @weight as R, and back. */
WRR_INLINE __u64 wrr_unit(__u64 rate, __u32 weight)
{
	return (wrr_clamp(rate) << WRR_SHIFT) / (weight ? weight : 1);
}

WRR_INLINE __u64 wrr_share(__u64 unit, __u32 weight)
{
	__u64 most = WRR_UNIT_MAX / (weight ? weight : 1);

	if (unit > most)
		unit = most;
	return wrr_clamp(unit * weight >> WRR_SHIFT);
}

/* The rate that a path begins with: @bytes, its first window, each round trip. That of an
 * empty path says little of one that takes less than a burst: 20 ms at the rate of one that
 * answers in 50 us are 6 MB, which take half a second where no more than 100 Mbit/s pass.
 */
#define WRR_FIRST_US	1000U

WRR_INLINE __u64 wrr_first(__u32 bytes, __u32 rtt_us)
{
	return (__u64)bytes * 1000000 / (rtt_us < WRR_FIRST_US ? WRR_FIRST_US : rtt_us);
}

/* How much a path's pacing rate is raised while it has nothing that waits, in
 * units of 1/256: what is under way counts as queued for the scheduler, and a longer
 * round trip has more of it at the same rate.
 */
WRR_INLINE __u32 wrr_stretch(__u32 rtt_us, __u32 least_rtt_us)
{
	__u64 times = (__u64)rtt_us * 256 / (least_rtt_us ? least_rtt_us : 1);

	return times < 256 ? 256 : times > 64 * 256 ? 64 * 256 : times;
}

/* What a path is owed, in bytes: what it was due by its weight of what all carried,
 * less what it carried. Shares that are set by the way come out some points wrong,
 * now here, now there; this is what puts them right. It is paid in an eighth of a
 * second, later where round trips are long, for what comes of it is then seen later.
 * No more is kept than changes the rate. While nothing waits half of it is forgotten
 * in 0.4 s, for an application may send so that it cannot be paid.
 */
#define WRR_PAY_US	125000U
#define WRR_DUE_MAX	(1LL << 40)

struct wrr_debt {
	__u64	rate;		/* of the path */
	__u64	due;		/* bytes since the last tick */
	__u32	carried;
	__u32	slowest_us;	/* round trip of the longest path */
	__u32	idle;		/* nothing waits */
};

/* As an unsigned number: not all BPF machines divide others. */
WRR_INLINE __u32 wrr_size(__s32 owed)
{
	return owed < 0 ? -(__u32)owed : (__u32)owed;
}

WRR_INLINE __u32 wrr_pay_us(__u32 slowest_us)
{
	if (slowest_us < WRR_PAY_US / 4)
		return WRR_PAY_US;
	return slowest_us < 10000000 ? 4 * slowest_us : 40000000;
}

WRR_INLINE __s32 wrr_owed(__s32 owed, const struct wrr_debt *d)
{
	__u32 us = wrr_pay_us(d->slowest_us);
	__s64 forgotten = (__u64)wrr_size(owed) * (WRR_PAY_US / (d->idle ? 64 : 1024)) / us;
	__s64 most = wrr_clamp(d->rate) * us / 1000000, sum;

	if (most > 1LL << 30)
		most = 1LL << 30;
	sum = owed < 0 ? owed + forgotten : owed - forgotten;
	sum += (d->due < WRR_DUE_MAX ? (__s64)d->due : WRR_DUE_MAX) - d->carried;
	return sum > most ? most : sum < -most ? -most : sum;
}

/* The pacing rate of a path that is owed so much: at most half more or less. */
WRR_INLINE __u64 wrr_pay(__u64 rate, __s32 owed, __u32 slowest_us)
{
	__u64 more = 1000000ULL * wrr_size(owed) / wrr_pay_us(slowest_us);

	if (more > rate / 2)
		more = rate / 2;
	return owed < 0 ? rate - more : rate + more;
}

/* The pacing rate of a path while something waits: who is behind can do no more, and who
 * is ahead waits for it. A little ahead, as ACKs come in trains, counts for nothing:
 * what this path does not send then is lost to all.
 */
WRR_INLINE __u64 wrr_wait(__u64 rate, __s32 owed, __u32 slowest_us)
{
	__s64 spare = rate / 128, ahead = -(__s64)owed;

	return ahead > spare ? wrr_pay(rate, spare - ahead, slowest_us) : rate;
}

/* Whether an ACK came by the receiver's timer alone: after a silence of @silent_ms, for
 * most of the packets that were under way at once. A receiver does so while its window
 * does not move on, and that of Multipath TCP does not while a hole is being filled,
 * by what waits on this very path, perhaps.
 */
#define WRR_TRAIN_US	6000U		/* trains of ACKs, and more than the queue looked for */
#define WRR_DELACK_US	44000U		/* Linux' TCP_DELACK_MIN is 40 ms */
#define WRR_LATE_MS	25U		/* longer than slow paths wait between ACKs for trains */

WRR_INLINE bool wrr_late(__u32 silent_ms, __u32 acked, __u32 under_way)
{
	return silent_ms > WRR_LATE_MS && acked > under_way / 2;
}

/* Packets under way: a round trip and a quarter, and what goes out until the ACK comes.
 * Enough for a slow path to be paced at all.
 */
WRR_INLINE __u32 wrr_window(__u64 rate, __u32 min_rtt_us, __u32 mss, bool late)
{
	__u64 us = (__u64)min_rtt_us + min_rtt_us / 4 + (late ? WRR_DELACK_US : WRR_TRAIN_US);
	__u64 packets = rate * us / 1000000 / (mss ? mss : 1) + 8;

	return packets < 1U << 20 ? packets : 1U << 20;
}

/* Packets that go out in one go where they wait: what @rate sends in 2 ms, for each burst takes
 * a timer. By the kernel's own rule, 1 ms, it cuts some of the scheduler's 64 kB in two. Never
 * none: the kernel would wait for ever to send the nothing that it cuts off.
 */
#define WRR_BURST_US	2000U
#define WRR_BURST_MAX	65535U

WRR_INLINE __u32 wrr_burst(__u64 rate, __u32 mss)
{
	__u64 packets = wrr_clamp(rate) * WRR_BURST_US / 1000000 / (mss ? mss : 1);

	return packets < 2 ? 2 : packets < WRR_BURST_MAX ? packets : WRR_BURST_MAX;
}

#endif /* BRAID_WRR_RATE_H */
