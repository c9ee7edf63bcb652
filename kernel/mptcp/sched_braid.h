/* SPDX-License-Identifier: GPL-2.0 */
/* What Braid's packet schedulers share. */
#ifndef _NET_MPTCP_SCHED_BRAID_H
#define _NET_MPTCP_SCHED_BRAID_H

#include <net/tcp.h>
#include "protocol.h"

#define SCHED_DIV64(a, b) div_u64(a, b)
#include "sched_math.h"

/* The settings of one network namespace, under net.mptcp (sched_sysctl.c). */
struct mptcp_sched_settings {
	unsigned int num_segments;	/* quota of a turn, in segments */
	unsigned int cwnd_limited;	/* 1: fill every window, 0: keep the ratio */
	unsigned int opportunistic;	/* minrtt: repeat what blocks the window */
	unsigned int penalise;		/* minrtt: and slow down who blocks it */
	unsigned int bufferbloat;	/* minrtt: cwnd cap in tenths, 0: none */
	unsigned int short_queues;	/* bound what waits on a subflow (queues.c) */
};

const struct mptcp_sched_settings *mptcp_sched_settings(const struct sock *sk);

/* The tables net.mptcp.weights and net.mptcp.priorities (sched_table.c). Both
 * are cheap enough to be asked at each decision, so that a new table counts
 * from the next segment on.
 */
#define MPTCP_SCHED_DEFAULT_WEIGHT	1

u32 mptcp_sched_weight(const struct mptcp_sock *msk,
		       const struct mptcp_subflow_context *subflow);
u32 mptcp_sched_priority(const struct mptcp_sock *msk,
			 const struct mptcp_subflow_context *subflow);

/* May new data go by this subflow at all? As MPTCP v0.96, one that waits for
 * its retransmission timer's repetitions to be acknowledged is left alone.
 */
static inline bool sched_usable(struct mptcp_subflow_context *subflow)
{
	const struct sock *ssk = mptcp_subflow_tcp_sock(subflow);

	return mptcp_subflow_active(subflow) &&
	       inet_csk(ssk)->icsk_ca_state != TCP_CA_Loss;
}

/* Segments that still fit into a window of cwnd, less what is queued unsent.
 * Other subflows' sockets are read without their lock: a wrong answer costs a
 * late or an early segment, and TCP itself keeps to its window.
 */
static inline u32 sched_room_of(const struct sock *ssk, u32 cwnd)
{
	const struct tcp_sock *tp = tcp_sk(ssk);
	u32 mss = max(READ_ONCE(tp->mss_cache), 1U), busy;

	if (!sk_stream_memory_free(ssk))
		return 0;

	busy = tcp_packets_in_flight(tp) +
	       DIV_ROUND_UP(READ_ONCE(tp->write_seq) - READ_ONCE(tp->snd_nxt), mss);
	return busy < cwnd ? cwnd - busy : 0;
}

static inline u32 sched_room(const struct sock *ssk)
{
	return sched_room_of(ssk, tcp_snd_cwnd(tcp_sk(ssk)));
}

/* Smoothed round-trip time in microseconds; 1 before the first sample, so that
 * a new subflow is tried.
 */
static inline u32 sched_srtt(const struct sock *ssk)
{
	return max(READ_ONCE(tcp_sk(ssk)->srtt_us) >> 3, 1U);
}

/* What BLEST and ECF know of a subflow. */
static inline struct sched_fact sched_fact(const struct sock *ssk)
{
	const struct tcp_sock *tp = tcp_sk(ssk);

	return (struct sched_fact){
		.mss = max(READ_ONCE(tp->mss_cache), 1U),
		.cwnd = tcp_snd_cwnd(tp),
		.inflight = tcp_packets_in_flight(tp),
		.rtt_us = sched_srtt(ssk),
		.rttvar_us = tp->rttvar_us >> 2,
	};
}

/* A backup subflow is for when there is no other. */
static inline bool sched_backup(const struct mptcp_subflow_context *subflow)
{
	return subflow->backup || subflow->request_bkup;
}

static inline bool sched_backups_only(struct mptcp_sock *msk)
{
	struct mptcp_subflow_context *subflow;

	mptcp_for_each_subflow(msk, subflow)
		if (sched_usable(subflow) && !sched_backup(subflow))
			return false;
	return true;
}

/* Each subflow that new data may go by now. */
#define sched_for_each_usable(msk, subflow, backups)			\
	mptcp_for_each_subflow(msk, subflow)				\
		if (sched_usable(subflow) && sched_backup(subflow) == (backups))

/* The usable subflow with the smallest round-trip time, with room or without. */
static inline struct mptcp_subflow_context *
sched_fastest(struct mptcp_sock *msk, bool backups, bool with_room)
{
	struct mptcp_subflow_context *subflow, *best = NULL;
	u32 srtt, best_srtt = 0;

	sched_for_each_usable(msk, subflow, backups) {
		struct sock *ssk = mptcp_subflow_tcp_sock(subflow);

		if (with_room && !sched_room(ssk))
			continue;
		srtt = sched_srtt(ssk);
		if (!best || srtt < best_srtt) {
			best = subflow;
			best_srtt = srtt;
		}
	}
	return best;
}

/* Give the subflow a turn of at most so many segments. */
static inline int sched_take(struct mptcp_sock *msk,
			     struct mptcp_subflow_context *subflow, u32 segs)
{
	msk->snd_burst = INT_MAX;
	subflow->sched_segs = segs;
	mptcp_subflow_set_scheduled(subflow, true);
	return 0;
}

/* What the retransmission timer of the connection repeats goes by a subflow
 * that has nothing outstanding, as with the default scheduler; by a backup,
 * too, once another waits for its own retransmission timer.
 */
static inline int sched_reinject(struct mptcp_sock *msk)
{
	struct sock *ssk = mptcp_subflow_get_retrans(msk);
	struct mptcp_subflow_context *subflow;
	bool lossy = false;

	if (!ssk) {
		mptcp_for_each_subflow(msk, subflow) {
			struct sock *s = mptcp_subflow_tcp_sock(subflow);

			if (!sched_usable(subflow))
				lossy = true;
			else if (tcp_rtx_and_write_queues_empty(s))
				ssk = s;
		}
		if (!ssk || !lossy)
			return -EINVAL;
	}
	mptcp_subflow_set_scheduled(mptcp_subflow_ctx(ssk), true);
	return 0;
}

#endif
