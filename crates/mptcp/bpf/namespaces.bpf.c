// SPDX-License-Identifier: GPL-2.0
/* Whether a network namespace lives, by its cookie (SO_NETNS_COOKIE). It is attached to
 * nothing, and run once for each question (BPF_PROG_TEST_RUN, under the RCU read lock).
 *
 * The kernel has all namespaces in one ring. One is in it from before anybody can be in the
 * namespace until nothing refers to it any more, and comes back never. Entries that are
 * taken out meanwhile still lead on, so that no other one is missed. The walk begins and ends at
 * the caller's own, which stays. The head of the ring, which is no namespace, is read as if it
 * were one: by the worst of chances a namespace is said to live.
 */
#include "kernel.h"

#define MOST	(1 << 16)

/* what it returns; 0: it cannot tell */
#define LIVES	1
#define GONE	2

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct net {
	struct list_head	list;
	__u64			net_cookie;
};

struct nsproxy {
	struct net		*net_ns;
};

struct task_struct {
	struct nsproxy		*nsproxy;
};

#pragma clang attribute pop

/* linux/bpf.h */
struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

struct walk {
	__u64 wanted;
	__u64 begin;
	__u64 at;
	int result;
};

char _license[] SEC("license") = "GPL";

static int step(__u32 i, struct walk *w)
{
	struct net *net = (void *)(w->at - bpf_core_field_offset(struct net, list));

	if (BPF_CORE_READ(net, net_cookie) == w->wanted) {
		w->result = LIVES;
		return 1;
	}
	w->at = (__u64)BPF_CORE_READ(net, list.next);
	if (w->at == w->begin)
		w->result = GONE;
	return !w->at || w->at == w->begin;
}

SEC("raw_tp")
int lives(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct net *own = BPF_CORE_READ(task, nsproxy, net_ns);
	struct walk w = { .wanted = ctx->args[0] };

	if (!own)
		return 0;
	w.begin = (__u64)own + bpf_core_field_offset(struct net, list);
	w.at = w.begin;
	bpf_loop(MOST, step, &w, 0);
	return w.result;
}
