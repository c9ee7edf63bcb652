// SPDX-License-Identifier: GPL-2.0
/* BLEST (Ferlin, Alay, Mehani, Boreli: BLEST: Blocking Estimation-based MPTCP
 * Scheduler for Heterogeneous Networks, IFIP Networking 2016).
 *
 * When the fastest subflow has no room, the next one S is used only if what it
 * would hold in flight leaves the fastest, F, enough of the connection's send
 * window for the time of a round trip on S:
 *
 *	X = MSS_F * (CWND_F + (rtts - 1) / 2) * rtts,  rtts = RTT_S / RTT_F  (3)
 *	skip S if X * lambda > window - MSS_S * (inflight_S + 1)             (4)
 *
 * and lambda grows while segments on S are retransmitted, else shrinks to one.
 */
#include "sched_braid.h"

/* lambda in thousandths: the paper's 1.0, with the steps and the bound of the
 * authors' implementation
 */
#define LAMBDA_ONE	1000
#define LAMBDA_MAX	1300
#define LAMBDA_UP	40
#define LAMBDA_DOWN	10

struct blest {		/* in msk->sched_priv */
	u32	lambda;
	u32	retrans;	/* of all subflows, when lambda last moved */
	u32	moved;	/* when that was */
};

static struct blest *blest(struct mptcp_sock *msk)
{
	BUILD_BUG_ON(sizeof(struct blest) > sizeof(msk->sched_priv));
	return (struct blest *)msk->sched_priv;
}

static void blest_init(struct mptcp_sock *msk)
{
	blest(msk)->lambda = LAMBDA_ONE;
}

/* Once in a round trip of the slow subflow. */
static void blest_move_lambda(struct mptcp_sock *msk, const struct sock *slow)
{
	const struct tcp_sock *tp = tcp_sk(slow);
	struct blest *b = blest(msk);
	u32 now = tcp_jiffies32;

	if (now - b->moved < usecs_to_jiffies(sched_srtt(slow)))
		return;
	b->moved = now;

	if (tp->total_retrans != b->retrans)
		b->lambda = min(b->lambda + LAMBDA_UP, (u32)LAMBDA_MAX);
	else
		b->lambda = max(b->lambda - LAMBDA_DOWN, (u32)LAMBDA_ONE);
	b->retrans = tp->total_retrans;
}

static u64 blest_fast_bytes(const struct sock *fast, const struct sock *slow)
{
	u64 rtts = DIV_ROUND_UP(sched_srtt(slow), sched_srtt(fast));
	const struct tcp_sock *tp = tcp_sk(fast);

	/* no more than a window can hold anyway */
	rtts = min_t(u64, rtts, 1000);
	return tp->mss_cache * (2ULL * tcp_snd_cwnd(tp) + rtts - 1) * rtts / 2;
}

static int blest_get_subflow(struct mptcp_sock *msk, struct mptcp_sched_data *data)
{
	struct mptcp_subflow_context *fast, *pick;
	const struct tcp_sock *tp;
	struct sock *ssk;
	bool backups;
	s64 window;
	u64 bytes;

	if (data->reinject)
		return sched_reinject(msk);

	backups = sched_backups_only(msk);
	fast = sched_fastest(msk, backups, false);
	pick = sched_fastest(msk, backups, true);
	if (!pick)
		return -EINVAL;

	ssk = mptcp_subflow_tcp_sock(pick);
	if (pick != fast) {
		blest_move_lambda(msk, ssk);
		tp = tcp_sk(ssk);
		window = READ_ONCE(msk->wnd_end) - READ_ONCE(msk->snd_una);
		window -= tp->mss_cache * (tcp_packets_in_flight(tp) + 1ULL);
		bytes = blest_fast_bytes(mptcp_subflow_tcp_sock(fast), ssk);
		if ((s64)div_u64(bytes * blest(msk)->lambda, LAMBDA_ONE) > window)
			return -EINVAL;
		/* the estimate holds for one more segment */
		return sched_take(msk, pick, 1);
	}
	return sched_take(msk, pick, sched_room(ssk));
}

static struct mptcp_sched_ops blest_ops = {
	.get_subflow	= blest_get_subflow,
	.init		= blest_init,
	.name		= "blest",
	.owner		= THIS_MODULE,
};

static int __init blest_register(void)
{
	return mptcp_register_scheduler(&blest_ops);
}
late_initcall(blest_register);
