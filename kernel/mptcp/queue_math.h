/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* How much may wait on a subflow that it has not sent yet.
 *
 * The kernel lets a subflow take as much as its send buffer holds, and takes nothing back.
 * So one that is alone at first, or gets slower, keeps for seconds what the others would
 * have carried, and these wait for it at the receiver.
 *
 * No kernel headers: eBPF includes the same lines. What includes this may define
 * QUEUE_HAVE_TYPES, QUEUE_DIV64 and QUEUE_INLINE first.
 */
#ifndef _MPTCP_QUEUE_MATH_H
#define _MPTCP_QUEUE_MATH_H

#ifndef QUEUE_HAVE_TYPES
#include <linux/types.h>
#endif

#ifndef QUEUE_INLINE
#define QUEUE_INLINE static inline __attribute__((unused))
#endif

/* a / b, both __u64, b not 0 */
#ifndef QUEUE_DIV64
#define QUEUE_DIV64(a, b) ((a) / (b))
#endif

#define QUEUE_US	20000U
#define QUEUE_MAX_US	2000000U
#define QUEUE_MIN	(16U << 10)	/* bytes */
#define QUEUE_MAX	(1U << 30)
#define QUEUE_RATE_MAX	12500000000ULL	/* bytes/s; the kernel's "no limit" is more */

/* How long the queue of a subflow may be: what is in it cannot go elsewhere, and what the
 * others carry meanwhile waits for it at the receiver. What is under way counts as
 * queued for the scheduler, and it waits for the path that has the least of both: so
 * that this is never one whose queue is full while another has run dry, those of
 * short paths are longer: by a quarter more than the difference, as the kernel counts
 * its own memory, of which small packets take more.
 */
QUEUE_INLINE __u32 queue_time(__u32 rtt_us, __u32 slowest_us)
{
	__u32 more = slowest_us > rtt_us ? slowest_us - rtt_us : 0;

	more += more / 4;
	/* a sibling that has just gone may show anything */
	return QUEUE_US + (more < QUEUE_MAX_US ? more : QUEUE_MAX_US);
}

/* What @rate, bytes/s, sends in @us. */
QUEUE_INLINE __u64 queue_bytes(__u64 rate, __u32 us)
{
	return QUEUE_DIV64((rate < QUEUE_RATE_MAX ? rate : QUEUE_RATE_MAX) * us, 1000000ULL);
}

/* What a subflow shows, once in a round trip. */
struct queue_fact {
	__u64	pacing;		/* bytes/s */
	__u64	acked;		/* bytes, ever */
	__u64	window;		/* bytes */
	__u64	now;		/* bound that it has, bytes */
	__u32	delivered;	/* packets of mss bytes, in delivered_us; that may be 0 */
	__u32	delivered_us;
	__u32	mss;
	__u32	rtt_us;
	__u32	slowest_us;	/* longest round trip of the connection's subflows */
	bool	at_rest;	/* nothing waits, here or on the connection */
};

/* What the subflow sends, bytes/s. Its window over the round trip is far more where a queue
 * of this very host is what limits it; twice what came through is enough to grow by.
 */
QUEUE_INLINE __u64 queue_rate(const struct queue_fact *f)
{
	__u64 delivered;

	if (!f->delivered_us)
		return f->pacing;
	delivered = QUEUE_DIV64(2000000ULL * f->delivered * f->mss, (__u64)f->delivered_us);
	return delivered < f->pacing ? delivered : f->pacing;
}

/* What may wait, bytes. */
QUEUE_INLINE __u64 queue_bound(const struct queue_fact *f)
{
	__u64 bytes = queue_bytes(queue_rate(f), queue_time(f->rtt_us, f->slowest_us));

	/* a shaper lets the burst after a pause through at any rate */
	if (f->now <= QUEUE_MAX && bytes > f->now + f->now / 2)
		bytes = f->now + f->now / 2;
	/* What an application writes next goes out at once as far as the window allows:
	 * no ACK is under way that would ask for more.
	 */
	if (bytes < f->window && f->at_rest)
		bytes = f->window;
	/* the first round trips may show any rate */
	return bytes < f->acked ? bytes : f->acked;
}

/* Whether a bound is far enough from the one that there is to be set; to what. */
QUEUE_INLINE bool queue_differs(__u64 bytes, __u32 now, __u32 *queue)
{
	*queue = bytes < QUEUE_MAX ? bytes : QUEUE_MAX;
	if (*queue < QUEUE_MIN)
		*queue = QUEUE_MIN;
	return now < *queue - *queue / 8 || now > *queue + *queue / 8;
}

#endif /* _MPTCP_QUEUE_MATH_H */
