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

#define BETA_DIV	4	/* beta = 1 / 4 */

static u64 *ecf_waiting(struct mptcp_sock *msk)
{
	return &msk->sched_priv[0];
}

/* The comparison of the paper, each side multiplied by the window. */
static bool ecf_wait(struct mptcp_sock *msk, const struct sock *f, const struct sock *s)
{
	const struct tcp_sock *tf = tcp_sk(f), *ts = tcp_sk(s);
	u64 k = div_u64(msk->write_seq - msk->snd_nxt, max(tf->mss_cache, 1U)) + 1;
	u64 cwnd_f = tcp_snd_cwnd(tf), cwnd_s = tcp_snd_cwnd(ts);
	u64 rtt_f = sched_srtt(f), rtt_s = sched_srtt(s);
	u64 delta = max(tf->rttvar_us, ts->rttvar_us) >> 2;
	u64 right = cwnd_f * (rtt_s + delta);

	if (*ecf_waiting(msk))
		right += right / BETA_DIV;

	if ((cwnd_f + k) * rtt_f >= right) {
		*ecf_waiting(msk) = 0;
		return false;
	}
	if (k * rtt_s < cwnd_s * (2 * rtt_f + delta))
		return false;
	*ecf_waiting(msk) = 1;
	return true;
}

static int ecf_get_subflow(struct mptcp_sock *msk, struct mptcp_sched_data *data)
{
	struct mptcp_subflow_context *fast, *pick;
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
	if (ecf_wait(msk, mptcp_subflow_tcp_sock(fast), ssk))
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
