/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* The subflows of a connection, as a hook of one of them sees the others.
 *
 * Hooks run under the lock of their own subflow, inside an RCU section.
 * Siblings are read without their locks, through bpf_rdonly_cast(): such a read
 * is safe wherever it points to, and what is read may be of another moment or,
 * if the subflow has just gone, of another socket: bound it before use.
 */
#ifndef BRAID_SUBFLOWS_H
#define BRAID_SUBFLOWS_H

#include "hook.h"

#define SUBFLOWS_MAX	16	/* more are not looked at */

static __always_inline void *ca_priv(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

/* What plain TCP is to have in place of the default of a namespace, which divides nothing
 * where there is one path; empty: plain TCP keeps it. Written before it is loaded.
 */
const volatile char plain[16] SEC(".rodata.plain") = "";

/* Whether @sk, which begins, keeps this congestion control. */
static __always_inline bool divides(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tp->is_mptcp || !plain[0] ||
	       bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, (void *)plain, sizeof(plain));
}

/* The connection of @sk, or NULL for plain TCP. */
static __always_inline struct mptcp_sock *connection(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct mptcp_subflow_context *own;

	if (!tp->is_mptcp || !tp->inet_conn.icsk_ulp_data)
		return 0;
	own = as_kernel(struct mptcp_subflow_context, tp->inet_conn.icsk_ulp_data);
	return own->conn ? as_kernel(struct mptcp_sock, own->conn) : 0;
}

static __always_inline bool joined(struct mptcp_subflow_context *c)
{
	struct mptcp_subflow_context___bit *bit = (void *)c;

	if (!BPF_CORE_READ_BITFIELD(c, request_join))
		return true;
	if (bpf_core_field_size(c->fully_established) == 1)
		return c->fully_established;
	return BPF_CORE_READ_BITFIELD(bit, fully_established);
}

/* By the peer's wish or by ours, which older kernels do not keep there. */
static __always_inline bool is_backup(struct mptcp_subflow_context *c)
{
	if (BPF_CORE_READ_BITFIELD(c, backup))
		return true;
	return bpf_core_field_exists(c->request_bkup) &&
	       BPF_CORE_READ_BITFIELD(c, request_bkup);
}

/* The socket of @c if it carries data. */
static __always_inline struct tcp_sock *carrying(struct mptcp_subflow_context *c)
{
	struct tcp_sock *tp;
	__u8 state;

	if (!c->tcp_sock || BPF_CORE_READ_BITFIELD(c, stale) ||
	    BPF_CORE_READ_BITFIELD(c, closing) || !joined(c))
		return 0;
	tp = as_kernel(struct tcp_sock, c->tcp_sock);
	state = tp->inet_conn.icsk_inet.sk.__sk_common.skc_state;
	if ((state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT) || !tp->srtt_us)
		return 0;
	return tp;
}

/* The socket of @c if it carries data under the same algorithm as @sk. */
static __always_inline struct tcp_sock *sibling(struct sock *sk,
						struct mptcp_subflow_context *c)
{
	struct tcp_sock *tp = carrying(c);

	if (!tp || tp->inet_conn.icsk_ca_ops !=
			   ((struct inet_connection_sock *)sk)->icsk_ca_ops)
		return 0;
	return tp;
}

/* Runs its body for the context @c of each subflow of @msk, at most
 * SUBFLOWS_MAX; @at is a struct list_head *.
 */
#define for_each_subflow(msk, at, c, i)						\
	for (i = 0, at = (msk)->conn_list.next;					\
	     i < SUBFLOWS_MAX && at && at != &(msk)->conn_list &&		\
	     (c = as_kernel(struct mptcp_subflow_context,			\
			    (void *)at - bpf_core_field_offset(			\
					struct mptcp_subflow_context, node)),	\
	      at = c->node.next, 1);						\
	     i++)

#endif /* BRAID_SUBFLOWS_H */
