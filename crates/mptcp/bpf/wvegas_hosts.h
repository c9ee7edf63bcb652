/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* What a round trip takes that the network has no part in. Plain arithmetic, so that it
 * can be compiled for user space as well (crates/core/tests/kernel_math).
 */
#ifndef _BRAID_WVEGAS_HOSTS_H
#define _BRAID_WVEGAS_HOSTS_H

/* us: what busy hosts and links that send in batches may add to the least round trip of a
 * round, an eighth of the least ever at most. 10 packets take 0.1 ms at 1 Gbit/s: where it
 * is not left out, such time is taken for a queue.
 */
#define HOSTS_US	250U

static inline __attribute__((always_inline)) __u32 hosts_rtt(__u32 base_us)
{
	return base_us / 8 < HOSTS_US ? base_us / 8 : HOSTS_US;
}

/* What is left of rtt_us >= base_us. Rates by it are up to an eighth too high. */
static inline __attribute__((always_inline)) __u32 network_rtt(__u32 base_us,
							       __u32 rtt_us)
{
	__u32 hosts = hosts_rtt(base_us);

	return rtt_us - base_us <= hosts ? base_us : rtt_us - hosts;
}

#endif /* _BRAID_WVEGAS_HOSTS_H */
