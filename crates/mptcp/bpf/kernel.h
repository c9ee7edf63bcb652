/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* What Braid's BPF programs know of the kernel's types.
 *
 * Only the members that are used, in any order: libbpf finds them by name in the
 * BTF of the running kernel (CO-RE), so that one object fits every kernel and
 * building it needs none.
 */
#ifndef BRAID_KERNEL_H
#define BRAID_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
enum { false, true };

/* linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_CGROUP_ARRAY = 8,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_SK_STORAGE = 24,
};
enum {
	BPF_ANY,
	BPF_NOEXIST,
};
#define BPF_F_NO_PREALLOC		(1U << 0)
#define BPF_SK_STORAGE_GET_F_CREATE	(1U << 0)

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#define AF_INET			2
#define AF_INET6		10

#define SOL_TCP			6
#define TCP_CONGESTION		13
#define TCP_NOTSENT_LOWAT	25

#define SK_PACING_NONE		0
#define SK_PACING_NEEDED	1

#define TCP_ESTABLISHED		1
#define TCP_CLOSE_WAIT		8

#define TCP_INFINITE_SSTHRESH	0x7fffffff
#define TCP_CONG_NON_RESTRICTED	1	/* for sockets in other namespaces, and without CAP_NET_ADMIN */

enum tcp_ca_state {
	TCP_CA_Open,
	TCP_CA_Disorder,
	TCP_CA_CWR,
	TCP_CA_Recovery,
	TCP_CA_Loss,
};

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__be32	u6_addr32[4];
	} in6_u;
};

struct sock_common {
	volatile unsigned char	skc_state;
	__u16			skc_family;
	__be32			skc_daddr;
	__be32			skc_rcv_saddr;
	struct in6_addr		skc_v6_daddr;
	struct in6_addr		skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common	__sk_common;
	unsigned long		sk_pacing_rate;
	__u32			sk_pacing_status;
};

struct inet_sock {
	struct sock		sk;
};

struct tcp_congestion_ops;

struct inet_connection_sock {
	struct inet_sock			icsk_inet;
	const struct tcp_congestion_ops		*icsk_ca_ops;
	void					*icsk_ulp_data;
	__u8					icsk_ca_state:5;
	__u64					icsk_ca_priv[13];
};

struct tcp_rack {
	__u32	rtt_us;		/* of the last packet that arrived */
};

struct tcp_sock {
	struct inet_connection_sock	inet_conn;
	__u64	bytes_acked;
	__u64	tcp_mstamp;	/* us, of the last packet received or sent */
	__u32	snd_una;
	__u32	snd_nxt;
	__u32	write_seq;
	__u32	delivered;
	__u32	rate_delivered;		/* packets, of the last sample that tells */
	__u32	rate_interval_us;
	__u32	mss_cache;
	__u32	srtt_us;	/* eighths */
	__u32	snd_ssthresh;
	__u32	snd_cwnd;
	__u32	snd_cwnd_clamp;
	__u32	prior_cwnd;
	__u32	max_packets_out;
	__u32	lost_out;	/* packets */
	__u32	lost;		/* ever */
	struct tcp_rack	rack;
	__u32	notsent_lowat;
	__u8	is_cwnd_limited:1;
	bool	is_mptcp;
};

struct ack_sample {
	__u32	pkts_acked;
	__s32	rtt_us;
};

struct rate_sample {
	__s32	losses;
	long	rtt_us;
	__u32	acked_sacked;
	__u32	prior_in_flight;
	bool	is_app_limited;
};

struct list_head {
	struct list_head *next;
};

struct mptcp_sock {
	__u64			write_seq;
	__u64			snd_nxt;
	struct list_head	conn_list;
	__u32			token;
};

struct mptcp_subflow_context {
	struct list_head	node;
	__u32	request_join:1;
	__u32	request_bkup:1;
	__u32	backup:1;
	__u32	stale:1;
	__u8	closing:1;
	bool	fully_established;
	struct sock	*tcp_sock;
	struct sock	*conn;
};

/* It was a bit until Linux 6.13. */
struct mptcp_subflow_context___bit {
	__u32	fully_established:1;
};

struct tcp_congestion_ops {
	__u32	(*ssthresh)(struct sock *sk);
	void	(*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void	(*set_state)(struct sock *sk, __u8 state);
	void	(*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void	(*in_ack_event)(struct sock *sk, __u32 flags);
	void	(*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void	(*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
	__u32	(*sndbuf_expand)(struct sock *sk);
	__u32	(*min_tso_segs)(struct sock *sk);
	__u32	(*undo_cwnd)(struct sock *sk);
	void	(*init)(struct sock *sk);
	__u32	flags;
	char	name[16];
};

#pragma clang attribute pop

extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym;

/* Reads through the result are safe wherever it points to. */
#define as_kernel(type, pointer) \
	((type *)bpf_rdonly_cast((pointer), bpf_core_type_id_kernel(type)))

#endif /* BRAID_KERNEL_H */
