// SPDX-License-Identifier: GPL-2.0
/* The schedulers' settings under net.mptcp, one set per network namespace. */
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "sched_braid.h"
#include "sched_table.h"

#define WEIGHT_MAX	65535

struct sched_net {
	struct mptcp_sched_settings settings;
	struct sched_table __rcu *weights;
	struct sched_table __rcu *priorities;
	struct ctl_table_header *header;
};

static unsigned int sched_net_id;
static DEFINE_MUTEX(table_mutex);

static struct sched_net *sched_net(const struct net *net)
{
	return net_generic(net, sched_net_id);
}

const struct mptcp_sched_settings *mptcp_sched_settings(const struct sock *sk)
{
	return &sched_net(sock_net(sk))->settings;
}

u32 mptcp_sched_weight(const struct mptcp_sock *msk,
		       const struct mptcp_subflow_context *subflow)
{
	struct sched_net *sn = sched_net(sock_net((const struct sock *)msk));
	u32 weight;

	rcu_read_lock();
	weight = sched_table_find(rcu_dereference(sn->weights), msk, subflow,
				  MPTCP_SCHED_DEFAULT_WEIGHT);
	rcu_read_unlock();
	return weight;
}

/* Without a rule the peer's or our own backup flag decides. */
u32 mptcp_sched_priority(const struct mptcp_sock *msk,
			 const struct mptcp_subflow_context *subflow)
{
	struct sched_net *sn = sched_net(sock_net((const struct sock *)msk));
	u32 priority;

	rcu_read_lock();
	priority = sched_table_find(rcu_dereference(sn->priorities), msk, subflow,
				    sched_backup(subflow) ? 2 : 1);
	rcu_read_unlock();
	return priority;
}

static int read_table(struct sched_table __rcu **slot, const struct ctl_table *ctl,
		      void *buffer, size_t *lenp, loff_t *ppos)
{
	struct ctl_table text = { .maxlen = SCHED_TABLE_TEXT };
	int err;

	text.data = kmalloc(SCHED_TABLE_TEXT, GFP_KERNEL);
	if (!text.data)
		return -ENOMEM;
	rcu_read_lock();
	sched_table_print(rcu_dereference(*slot), text.data, SCHED_TABLE_TEXT);
	rcu_read_unlock();
	err = proc_dostring(&text, 0, buffer, lenp, ppos);
	kfree(text.data);
	return err;
}

/* A text that is wrong somewhere changes nothing. */
static int proc_table(const struct ctl_table *ctl, int write, void *buffer,
		      size_t *lenp, loff_t *ppos)
{
	struct sched_table __rcu **slot = ctl->data;
	struct sched_table *new, *old;
	char *text;

	if (!write)
		return read_table(slot, ctl, buffer, lenp, ppos);
	if (*ppos || *lenp >= SCHED_TABLE_TEXT)
		return -EINVAL;

	text = kmemdup_nul(buffer, *lenp, GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	new = sched_table_parse(text, WEIGHT_MAX);
	kfree(text);
	if (IS_ERR(new))
		return PTR_ERR(new);

	mutex_lock(&table_mutex);
	old = rcu_replace_pointer(*slot, new, lockdep_is_held(&table_mutex));
	mutex_unlock(&table_mutex);
	if (old)
		kfree_rcu(old, rcu);
	*ppos += *lenp;
	return 0;
}

#define SETTING(_name, _field, _min, _max)				\
	{								\
		.procname	= _name,				\
		.data		= (void *)offsetof(struct sched_net, _field), \
		.maxlen		= sizeof(unsigned int),			\
		.mode		= 0644,					\
		.proc_handler	= proc_douintvec_minmax,		\
		.extra1		= _min,					\
		.extra2		= _max,					\
	}

#define TABLE(_name, _field)						\
	{								\
		.procname	= _name,				\
		.data		= (void *)offsetof(struct sched_net, _field), \
		.mode		= 0644,					\
		.proc_handler	= proc_table,				\
	}

static unsigned int most_segments = 255;
static unsigned int most_bufferbloat = 1000;

/* .data is where in a namespace's struct sched_net; made absolute there */
static const struct ctl_table sched_sysctls[] = {
	TABLE("weights", weights),
	TABLE("priorities", priorities),
	SETTING("rr_num_segments", settings.num_segments, SYSCTL_ONE, &most_segments),
	SETTING("rr_cwnd_limited", settings.cwnd_limited, SYSCTL_ZERO, SYSCTL_ONE),
	SETTING("minrtt_opportunistic", settings.opportunistic, SYSCTL_ZERO, SYSCTL_ONE),
	SETTING("minrtt_penalise", settings.penalise, SYSCTL_ZERO, SYSCTL_ONE),
	SETTING("minrtt_bufferbloat", settings.bufferbloat, SYSCTL_ZERO, &most_bufferbloat),
	SETTING("short_queues", settings.short_queues, SYSCTL_ZERO, SYSCTL_ONE),
};

static int __net_init sched_net_init(struct net *net)
{
	struct sched_net *sn = sched_net(net);
	struct ctl_table *table;
	int i;

	/* the defaults of v0.96's modules */
	sn->settings.num_segments = 1;
	sn->settings.cwnd_limited = 1;

	table = kmemdup(sched_sysctls, sizeof(sched_sysctls), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(sched_sysctls); i++)
		table[i].data += (unsigned long)sn;

	sn->header = register_net_sysctl_sz(net, "net/mptcp", table,
					    ARRAY_SIZE(sched_sysctls));
	if (!sn->header) {
		kfree(table);
		return -ENOMEM;
	}
	return 0;
}

static void __net_exit sched_net_exit(struct net *net)
{
	struct sched_net *sn = sched_net(net);
	const struct ctl_table *table = sn->header->ctl_table_arg;

	unregister_net_sysctl_table(sn->header);
	kfree(table);
	kfree(rcu_dereference_protected(sn->weights, true));
	kfree(rcu_dereference_protected(sn->priorities, true));
}

static struct pernet_operations sched_net_ops = {
	.init = sched_net_init,
	.exit = sched_net_exit,
	.id = &sched_net_id,
	.size = sizeof(struct sched_net),
};

static int __init sched_sysctl_init(void)
{
	return register_pernet_subsys(&sched_net_ops);
}
fs_initcall_sync(sched_sysctl_init);
