/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* Programs that the kernel calls at certain moments of the TCP sockets of a cgroup. */
#ifndef BRAID_SOCKOPS_H
#define BRAID_SOCKOPS_H

#include "kernel.h"

/* linux/bpf.h */
enum {
	BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_RTT_CB = 12,	/* once a round trip, to those with the flag */
};
#define BPF_SOCK_OPS_RTT_CB_FLAG	(1U << 3)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bpf_sock_ops {
	__u32		op;
	__u32		bpf_sock_ops_cb_flags;
	struct bpf_sock	*sk;
};

#pragma clang attribute pop

#endif /* BRAID_SOCKOPS_H */
