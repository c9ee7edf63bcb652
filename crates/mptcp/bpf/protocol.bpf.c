// SPDX-License-Identifier: GPL-2.0
/* MPTCP for the unchanged programs of one cgroup: where they ask the kernel for
 * a TCP socket, they get an MPTCP socket (Linux 6.6, update_socket_protocol).
 */
#include "kernel.h"

#define SOCK_STREAM	1
#define SOCK_TYPE_MASK	0xf
#define IPPROTO_TCP	6
#define IPPROTO_MPTCP	262

char _license[] SEC("license") = "GPL";

/* the cgroup, with those below it */
struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} group SEC(".maps");

SEC("fmod_ret/update_socket_protocol")
int BPF_PROG(protocol, int family, int type, int asked)
{
	if (family != AF_INET && family != AF_INET6)
		return asked;
	if ((type & SOCK_TYPE_MASK) != SOCK_STREAM || (asked && asked != IPPROTO_TCP))
		return asked;
	/* an error is negative */
	return bpf_current_task_under_cgroup(&group, 0) == 1 ? IPPROTO_MPTCP : asked;
}
