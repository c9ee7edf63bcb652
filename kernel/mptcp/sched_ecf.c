// SPDX-License-Identifier: GPL-2.0
/* ECF (Lim, Nahum, Towsley, Gibbens: ECF: An MPTCP Path Scheduler to Manage
 * Heterogeneous Paths, CoNEXT 2017), Algorithm 1.
 *
 * With k segments waiting in the connection's buffer and no room on the fastest
 * subflow f, the next one s is left alone if f would be done earlier:
 *
 *	n = 1 + k / CWND_f
 *	if n * RTT_f < (1 + waiting * beta) * (RTT_s + delta)
 *		if k / CWND_s * RTT_s >= 2 * RTT_f + delta
 *			waiting = 1, wait for f
 *		else use s
 *	else waiting = 0, use s
 *
 * delta = max(sigma_f, sigma_s), beta = 0.25.
 */
#include "sched_braid.h"

static int *ecf_waiting(struct mptcp_sock *msk)
{
	return (int *)msk->sched_priv;
}

static int ecf_get_subflow(struct mptcp_sock *msk, struct mptcp_sched_data *data)
{
	struct mptcp_subflow_context *fast, *pick;
	struct sched_fact f, s;
	struct sock *ssk;
	bool backups;

	if (data->reinject)
		return sched_reinject(msk);

	backups = sched_backups_only(msk);
	fast = sched_fastest(msk, backups, false);
	pick = sched_fastest(msk, backups, true);
	if (!pick)
		return -EINVAL;

	ssk = mptcp_subflow_tcp_sock(pick);
	if (pick == fast)
		return sched_take(msk, pick, sched_room(ssk));
	f = sched_fact(mptcp_subflow_tcp_sock(fast));
	s = sched_fact(ssk);
	if (sched_ecf_wait(ecf_waiting(msk), msk->write_seq - msk->snd_nxt, &f, &s))
		return -EINVAL;
	/* k is another after each segment */
	return sched_take(msk, pick, 1);
}

static struct mptcp_sched_ops ecf_ops = {
	.get_subflow	= ecf_get_subflow,
	.name		= "ecf",
	.owner		= THIS_MODULE,
};

static int __init ecf_register(void)
{
	return mptcp_register_scheduler(&ecf_ops);
}
late_initcall(ecf_register);
