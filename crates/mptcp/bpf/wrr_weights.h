/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* What user space sets of weighted round robin and may change at any time. */
#ifndef BRAID_WRR_WEIGHTS_H
#define BRAID_WRR_WEIGHTS_H

#include "kernel.h"
#include "wrr_rate.h"

/* An access, by the address or the network that it has at the device: the peer's here,
 * at the proxy. IPv4 addresses are mapped (::ffff:a.b.c.d). Of networks in each other
 * the smallest counts.
 */
struct weight_key {
	__u32	bits;		/* how many of what follows count, from the first */
	__u32	token;		/* of one connection, or 0: all others */
	__be32	address[4];
};

#define TOKEN_AND_ADDRESS	(8 * (4 + 16))

/* Subflows of a connection by the same access divide its weight equally; each of those
 * of an access that nobody has named counts alone.
 */
#define ACCESS_MAX		15

struct weight {
	__u16	weight;
	__u16	access;		/* 1 to ACCESS_MAX, or 0: not known */
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weight_key);
	__type(value, struct weight);
} weights SEC(".maps");

struct settings {
	__u32 strict;	/* the ratio holds; or every path carries what it can */
	__u32 version;	/* changes with every change of the weights */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

/* What the process that set this up tells the one that comes after it: pinned with
 * the others, and read by no program.
 */
struct note {
	__u32	length;		/* bytes */
	char	text[65532];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct note);
} note SEC(".maps");

static __always_inline struct weight find_weight(struct sock *sk, __u32 token)
{
	struct sock_common *c = &sk->__sk_common;
	struct weight_key key = { .bits = TOKEN_AND_ADDRESS };
	struct weight *found, one = { .weight = 1 };
	int i;

	/* the peer's address, then ours; of this connection, then of all */
	for (i = 0; i < 4; i++) {
		key.token = i & 2 ? 0 : token;
		if (c->skc_family == AF_INET6) {
			struct in6_addr *a = i & 1 ? &c->skc_v6_rcv_saddr :
						     &c->skc_v6_daddr;

			key.address[0] = a->in6_u.u6_addr32[0];
			key.address[1] = a->in6_u.u6_addr32[1];
			key.address[2] = a->in6_u.u6_addr32[2];
			key.address[3] = a->in6_u.u6_addr32[3];
		} else {
			key.address[0] = 0;
			key.address[1] = 0;
			key.address[2] = bpf_htonl(0xffff);
			key.address[3] = i & 1 ? c->skc_rcv_saddr : c->skc_daddr;
		}
		found = bpf_map_lookup_elem(&weights, &key);
		if (found)
			return *found;
	}
	return one;
}

/* How many subflows each access has, four bits for each. */
static __always_inline __u32 sharers_of(__u64 sharers, __u32 access)
{
	__u32 n = access ? sharers >> (access % 16 * 4) & 15 : 1;

	return n ? n : 1;
}

/* The same with another subflow by @access. */
static __always_inline __u64 with_another(__u64 sharers, __u32 access)
{
	__u32 at = access % 16 * 4;

	if (!access || (sharers >> at & 15) == 15)
		return sharers;
	return sharers + (1ULL << at);
}

#endif /* BRAID_WRR_WEIGHTS_H */
