/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* How much may wait on a subflow that it has not sent yet.
 *
 * The kernel lets a subflow take as much as its send buffer holds, and takes nothing back.
 * So one that is alone at first, or gets slower, keeps for seconds what the others would
 * have carried, and these wait for it at the receiver.
 */
#ifndef BRAID_QUEUE_H
#define BRAID_QUEUE_H

#include "kernel.h"

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
static __always_inline __u32 queue_time(__u32 rtt_us, __u32 slowest_us)
{
	__u32 more = slowest_us > rtt_us ? slowest_us - rtt_us : 0;

	more += more / 4;
	/* a sibling that has just gone may show anything */
	return QUEUE_US + (more < QUEUE_MAX_US ? more : QUEUE_MAX_US);
}

/* What @rate, bytes/s, sends in @us. */
static __always_inline __u64 queue_bytes(__u64 rate, __u32 us)
{
	return (rate < QUEUE_RATE_MAX ? rate : QUEUE_RATE_MAX) * us / 1000000;
}

/* Weights by pacing rates bound the queue of @tp. */
static __always_inline bool bounds_them_itself(const struct tcp_sock *tp)
{
	const struct tcp_congestion_ops *ops = tp->inet_conn.icsk_ca_ops;

	return ops && ops->name[0] == 'w' && ops->name[1] == 'r' && ops->name[2] == 'r';
}

/* @ctx: what bpf_setsockopt() takes for the socket @tp. */
static __always_inline void bound_queue(void *ctx, const struct tcp_sock *tp, __u64 bytes)
{
	__u32 queue, now;

	queue = bytes < QUEUE_MAX ? bytes : QUEUE_MAX;
	if (queue < QUEUE_MIN)
		queue = QUEUE_MIN;
	now = tp->notsent_lowat;
	if (now < queue - queue / 8 || now > queue + queue / 8)
		bpf_setsockopt(ctx, SOL_TCP, TCP_NOTSENT_LOWAT, &queue, sizeof(queue));
}

#endif /* BRAID_QUEUE_H */
