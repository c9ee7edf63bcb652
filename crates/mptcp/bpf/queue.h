/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* The bound of what waits on a subflow, as the kernel is told it. */
#ifndef BRAID_QUEUE_H
#define BRAID_QUEUE_H

#include "kernel.h"

#define QUEUE_HAVE_TYPES
#define QUEUE_INLINE static __always_inline
#include "../../../kernel/mptcp/queue_math.h"

/* Weights by pacing rates bound the queue of @tp. */
static __always_inline bool bounds_them_itself(const struct tcp_sock *tp)
{
	const struct tcp_congestion_ops *ops = tp->inet_conn.icsk_ca_ops;

	return ops && ops->name[0] == 'w' && ops->name[1] == 'r' && ops->name[2] == 'r';
}

/* @ctx: what bpf_setsockopt() takes for the socket @tp. */
static __always_inline void bound_queue(void *ctx, const struct tcp_sock *tp, __u64 bytes)
{
	__u32 queue;

	if (queue_differs(bytes, tp->notsent_lowat, &queue))
		bpf_setsockopt(ctx, SOL_TCP, TCP_NOTSENT_LOWAT, &queue, sizeof(queue));
}

#endif /* BRAID_QUEUE_H */
