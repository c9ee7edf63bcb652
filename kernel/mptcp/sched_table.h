/* SPDX-License-Identifier: GPL-2.0 */
/* A table that gives subflows a number: net.mptcp.weights and .priorities. */
#ifndef _NET_MPTCP_SCHED_TABLE_H
#define _NET_MPTCP_SCHED_TABLE_H

#include <linux/rcupdate.h>
#include "protocol.h"

/* One end of a subflow; family 0 is any address, port 0 any port. */
struct sched_end {
	sa_family_t	family;
	__be16		port;
	union {
		struct in_addr	v4;
		struct in6_addr	v6;
	};
};

struct sched_rule {
	struct sched_end local, remote;
	s16	id, remote_id;		/* -1: any */
	u32	value;
};

struct sched_table {
	struct rcu_head	rcu;
	u32		count;
	struct sched_rule rules[] __counted_by(count);
};

#define SCHED_TABLE_RULES	64	/* at most */
#define SCHED_TABLE_TEXT	4096	/* bytes of text that hold any of them */

/* A new table, NULL for a text without rules, or -EINVAL, -E2BIG, -ENOMEM. */
struct sched_table *sched_table_parse(char *text, u32 max);
/* The canonical text of a table; as snprintf, but never more than size - 1. */
int sched_table_print(const struct sched_table *table, char *text, size_t size);
/* The number of the first rule that fits, else fallback. Under RCU. */
u32 sched_table_find(const struct sched_table *table,
		     const struct mptcp_sock *msk,
		     const struct mptcp_subflow_context *subflow, u32 fallback);

#endif
