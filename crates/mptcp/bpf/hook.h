/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 OR MIT */
/* A hook of a congestion control, for kernels that now and then skip one and go on
 * with whatever was in a register. Tests have hooks skipped on purpose; the verifier
 * removes that code from all other programs.
 */
#ifndef BRAID_HOOK_H
#define BRAID_HOOK_H

#include "kernel.h"

/* one hook in so many, or 0: none; written before it is loaded */
const volatile __u32 skip_one_in SEC(".rodata.fault") = 0;

static __always_inline bool skipped(void)
{
	return skip_one_in && bpf_get_prandom_u32() % skip_one_in == 0;
}

/* BPF_PROG() that may be skipped. */
#define HOOK(name, args...)						\
name(unsigned long long *ctx);						\
static __always_inline typeof(name(0))					\
____##name(unsigned long long *ctx, ##args);				\
typeof(name(0)) name(unsigned long long *ctx)				\
{									\
	if (skipped())							\
		return (typeof(name(0)))bpf_get_prandom_u32();		\
	_Pragma("GCC diagnostic push")					\
	_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")		\
	return ____##name(___bpf_ctx_cast(args));			\
	_Pragma("GCC diagnostic pop")					\
}									\
static __always_inline typeof(name(0))					\
____##name(unsigned long long *ctx, ##args)

#endif /* BRAID_HOOK_H */
