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

static struct sched_blest *blest(struct mptcp_sock *msk)
{
	BUILD_BUG_ON(sizeof(struct sched_blest) > sizeof(msk->sched_priv));
	return (struct sched_blest *)msk->sched_priv;
}

static struct sched_blest_lost *blest_lost(struct mptcp_subflow_context *subflow)
{
	BUILD_BUG_ON(sizeof(struct sched_blest_lost) > sizeof(subflow->sched_priv));
	return (struct sched_blest_lost *)subflow->sched_priv;
}

static void blest_init(struct mptcp_sock *msk)
{
	blest(msk)->lambda = BLEST_ONE;
}

static int blest_get_subflow(struct mptcp_sock *msk, struct mptcp_sched_data *data)
{
	struct mptcp_subflow_context *fast, *pick;
	struct sched_fact f, s;
	struct sock *ssk;
	bool backups;
	s64 window;

	if (data->reinject)
		return sched_reinject(msk);

	backups = sched_backups_only(msk);
	fast = sched_fastest(msk, backups, false);
	pick = sched_fastest(msk, backups, true);
	if (!pick)
		return -EINVAL;

	ssk = mptcp_subflow_tcp_sock(pick);
	if (pick != fast) {
		f = sched_fact(mptcp_subflow_tcp_sock(fast));
		s = sched_fact(ssk);
		sched_blest_move(blest(msk), blest_lost(pick), tcp_sk(ssk)->total_retrans,
				 tcp_jiffies32, usecs_to_jiffies(s.rtt_us));
		window = READ_ONCE(msk->wnd_end) - READ_ONCE(msk->snd_una);
		if (sched_blest_blocks(blest(msk)->lambda, window, &f, &s))
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
