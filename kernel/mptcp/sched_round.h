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

static inline u64 round_quota(const struct mptcp_sock *msk,
			      const struct mptcp_subflow_context *subflow,
			      bool weighted)
{
	u64 segs = READ_ONCE(mptcp_sched_settings((struct sock *)msk)->num_segments);

	return weighted ? segs * mptcp_sched_weight(msk, subflow) : segs;
}

/* Whose turn it is, or NULL; restart says whether that begins a new round. */
static inline struct mptcp_subflow_context *
round_pick(struct mptcp_sock *msk, bool weighted, bool backups, bool *restart)
{
	bool fill = READ_ONCE(mptcp_sched_settings((struct sock *)msk)->cwnd_limited);
	struct mptcp_subflow_context *subflow, *unused = NULL;
	bool any = false;

	*restart = false;
	sched_for_each_usable(msk, subflow, backups) {
		u64 quota = round_quota(msk, subflow, weighted);

		if (!quota)
			continue;
		if (fill && !sched_room(mptcp_subflow_tcp_sock(subflow)))
			continue;
		any = true;
		if (*round_used(subflow) >= quota)
			continue;
		if (*round_used(subflow))
			return subflow;
		if (!unused)
			unused = subflow;
	}
	*restart = any && !unused;
	return unused;
}

static inline void round_restart(struct mptcp_sock *msk, bool weighted, bool backups)
{
	bool fill = READ_ONCE(mptcp_sched_settings((struct sock *)msk)->cwnd_limited);
	struct mptcp_subflow_context *subflow;

	sched_for_each_usable(msk, subflow, backups)
		if (!fill || sched_room(mptcp_subflow_tcp_sock(subflow)))
			*round_used(subflow) = 0;
}

static inline int round_get_subflow(struct mptcp_sock *msk,
				    struct mptcp_sched_data *data, bool weighted)
{
	struct mptcp_subflow_context *subflow;
	bool backups, restart;
	u64 left;
	u32 room;

	if (data->reinject)
		return sched_reinject(msk);

	backups = sched_backups_only(msk);
	subflow = round_pick(msk, weighted, backups, &restart);
	if (restart) {
		round_restart(msk, weighted, backups);
		subflow = round_pick(msk, weighted, backups, &restart);
	}
	if (!subflow)
		return -EINVAL;

	/* strict: wait for it */
	room = sched_room(mptcp_subflow_tcp_sock(subflow));
	if (!room)
		return -EINVAL;

	left = round_quota(msk, subflow, weighted) - *round_used(subflow);
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
