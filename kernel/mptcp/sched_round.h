/* SPDX-License-Identifier: GPL-2.0 */
/* The round robin of MPTCP v0.96, of which rr and wrr are two uses.
 *
 * In each round every subflow has a quota of segments. A subflow keeps its turn
 * until its quota is used up; when all are used up a new round begins. What
 * fits into the window goes out, the rest of the turn follows later.
 *
 * net.mptcp.rr_cwnd_limited = 0 (v0.96: N), strict: a subflow whose turn it is
 * and whose window is full makes the others wait, so that the ratio is exact
 * and the slowest subflow, for its quota, sets the pace.
 * net.mptcp.rr_cwnd_limited = 1 (v0.96: Y), work-conserving: a subflow without
 * room is passed over and a round ends when those with room have used their
 * quota, so that every window is filled and the ratio is only aimed at.
 */
#ifndef _NET_MPTCP_SCHED_ROUND_H
#define _NET_MPTCP_SCHED_ROUND_H

#include "sched_braid.h"

/* segments that the subflow has had in this round */
static inline u64 *round_used(struct mptcp_subflow_context *subflow)
{
	return &subflow->sched_priv[0];
}

/* Only usable subflows of the lowest rank take part. Backups stand back for
 * others, and a subflow of weight 0 for all others: it gets nothing while any
 * of them can be used. When none can, it carries everything, as an access does
 * whatever its percentage when the other is lost (3GPP TS 23.501, 5.32.8). To
 * leave it alone would leave the connection without anything under way, and
 * so without anybody to wake it, even once weights change.
 */
#define ROUND_BACKUP	1
#define ROUND_ZERO	2

static inline u32 round_weight(const struct mptcp_sock *msk,
			       const struct mptcp_subflow_context *subflow,
			       bool weighted)
{
	return weighted ? mptcp_sched_weight(msk, subflow) : 1;
}

static inline u32 round_rank(const struct mptcp_subflow_context *subflow, u32 weight)
{
	return (weight ? 0 : ROUND_ZERO) | (sched_backup(subflow) ? ROUND_BACKUP : 0);
}

static inline u32 round_lowest_rank(const struct mptcp_sock *msk, bool weighted)
{
	struct mptcp_subflow_context *subflow;
	u32 rank, lowest = ROUND_ZERO | ROUND_BACKUP;

	mptcp_for_each_subflow(msk, subflow) {
		if (!sched_usable(subflow))
			continue;
		rank = round_rank(subflow, round_weight(msk, subflow, weighted));
		lowest = min(lowest, rank);
		if (!lowest)
			break;
	}
	return lowest;
}

/* The subflow's segments of a round, 0: it takes no part now. */
static inline u64 round_quota(const struct mptcp_sock *msk,
			      struct mptcp_subflow_context *subflow,
			      bool weighted, u32 rank)
{
	const struct mptcp_sched_settings *set = mptcp_sched_settings((struct sock *)msk);
	u32 weight;

	if (!sched_usable(subflow))
		return 0;
	weight = round_weight(msk, subflow, weighted);
	if (round_rank(subflow, weight) != rank)
		return 0;
	if (READ_ONCE(set->cwnd_limited) && !sched_room(mptcp_subflow_tcp_sock(subflow)))
		return 0;
	return (u64)READ_ONCE(set->num_segments) * max(weight, 1U);
}

/* Whose turn it is, or NULL, and what is left of its quota; restart says
 * whether a new round has to begin.
 */
static inline struct mptcp_subflow_context *
round_pick(const struct mptcp_sock *msk, bool weighted, u32 rank, u64 *left, bool *restart)
{
	struct mptcp_subflow_context *subflow, *unused = NULL;
	bool any = false;

	*restart = false;
	mptcp_for_each_subflow(msk, subflow) {
		u64 quota = round_quota(msk, subflow, weighted, rank);

		if (!quota)
			continue;
		any = true;
		if (*round_used(subflow) >= quota)
			continue;
		if (*round_used(subflow)) {
			*left = quota - *round_used(subflow);
			return subflow;
		}
		if (!unused) {
			unused = subflow;
			*left = quota;
		}
	}
	*restart = any && !unused;
	return unused;
}

static inline void round_restart(const struct mptcp_sock *msk, bool weighted, u32 rank)
{
	struct mptcp_subflow_context *subflow;

	mptcp_for_each_subflow(msk, subflow)
		if (round_quota(msk, subflow, weighted, rank))
			*round_used(subflow) = 0;
}

static inline int round_get_subflow(struct mptcp_sock *msk,
				    struct mptcp_sched_data *data, bool weighted)
{
	struct mptcp_subflow_context *subflow;
	bool restart;
	u32 rank, room;
	u64 left = 0;

	if (data->reinject)
		return sched_reinject(msk);

	rank = round_lowest_rank(msk, weighted);
	subflow = round_pick(msk, weighted, rank, &left, &restart);
	if (restart) {
		round_restart(msk, weighted, rank);
		subflow = round_pick(msk, weighted, rank, &left, &restart);
	}
	if (!subflow)
		return -EINVAL;

	/* strict: wait for it */
	room = sched_room(mptcp_subflow_tcp_sock(subflow));
	if (!room)
		return -EINVAL;
	return sched_take(msk, subflow, min_t(u64, left, room));
}

/* A segment counts whatever its size, as in v0.96. */
static inline void round_sent(struct mptcp_sock *msk,
			      struct mptcp_subflow_context *subflow,
			      u32 bytes, u32 mss)
{
	*round_used(subflow) += DIV_ROUND_UP(bytes, max(mss, 1U));
}

#endif
