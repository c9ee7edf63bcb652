// SPDX-License-Identifier: GPL-2.0
/* Weighted round robin for mainline's MPTCP scheduler, by pacing rates: see
 * wrr_rate.h for the rules, docs/mptcp.md for what comes of them.
 */
#include "subflows.h"
#include "wrr_path.h"
#include "wrr_weights.h"

char _license[] SEC("license") = "GPL";

extern int LINUX_KERNEL_VERSION __kconfig;

/* --- a connection */

struct wrr_connection {
	struct wrr_search	search;	/* R */
	__u64			tick;	/* when to look at the subflows again */
	__u64			acked;	/* bytes, of all subflows, then */
	__u64			due;	/* for each unit of weight, of these, /16 */
	__u64			sharers;	/* of each access's weight */
	__u32			fastest_us;	/* round trips: least of all paths, */
	__u32			slowest_us;	/* and of the longest path now */
	__u32			version;	/* of the weights */
	__u32			idle;		/* nothing waited at the last tick */
	__u32			weights;	/* their sum, of the paths in use */
	__u32			round;		/* counts what makes debts void */
	__u32			starved;	/* a path had nothing to send */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct wrr_connection);
} connections SEC(".maps");

static __always_inline struct wrr_connection *find_connection(__u32 token)
{
	struct wrr_connection *c = bpf_map_lookup_elem(&connections, &token);
	struct wrr_connection new = {};

	if (c || !token)
		return c;
	bpf_map_update_elem(&connections, &token, &new, BPF_NOEXIST);
	return bpf_map_lookup_elem(&connections, &token);
}

#define FIRST_WINDOW	14600	/* bytes, RFC 6928 */
#define FIRST_RTT_US	20000	/* where nothing is known of it */

SEC("struct_ops")
void HOOK(wrr_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct wrr_path *p = ca_priv(sk);
	__u32 rtt;

	if (!divides(sk))
		return;
	p->rate = 0;
	p->share = 0;
	p->cap = 0;
	p->good = 0;
	p->hold_ms = 0;
	p->began_us = 0;
	p->window_us = 0;
	p->delivered = 0;
	p->lost = 0;
	p->min_rtt_us = 0;
	p->min_rtt_ms = 0;
	p->queue_us = 0;
	p->queue_ms = 0;
	p->losses_ms = 0;
	p->least_us = 0;
	p->batch_us = 0;
	p->paced_ms = 0;
	p->due = 0;
	p->acked = 0;
	p->owed = 0;
	p->weight = 0;
	p->version = 0;
	p->heard_ms = 0;
	p->round = 0;
	p->batch = 0;
	p->access = 0;
	p->full = 0;
	p->unfilled = 0;
	p->paused = 0;
	p->late = 0;
	/* A path without a rate would be the best of all. */
	rtt = tp->srtt_us >> 3;
	if (!rtt)
		rtt = FIRST_RTT_US;
	sk->sk_pacing_rate = wrr_clamp(wrr_first(FIRST_WINDOW, rtt));
	sk->sk_pacing_status = SK_PACING_NEEDED;
	/* The first path is alone for a while, and would be given all that there is. */
	bound_queue(sk, tp, queue_bytes(sk->sk_pacing_rate, QUEUE_US));
}

/* What the subflows show together. */
struct together {
	__u64	acked;		/* bytes */
	__u64	unsent;		/* bytes that wait */
	__u64	pace;		/* bytes/s */
	__u64	first;		/* least R of the initial windows, or 0 */
	__u64	kept;		/* greatest R by which no path gets faster, or 0 */
	__u64	most;		/* least R by which none gets slower */
	__u64	carried;	/* least R that a full path did, or 0 */
	__u64	sharers;
	__u32	queue_us;	/* of that path */
	__u32	weights;
	__u32	starved;	/* a path has nothing to send */
	__u32	shows_us;	/* how long a change takes to show on those that follow it, */
	__u32	longest_us;	/* and on all */
	__u32	fastest_us;
	__u32	slowest_us;
	/* of the walk */
	__u64			sharers_before;
	__u64			rate;		/* R until now */
	struct sock		*sk;
	struct mptcp_sock	*msk;
	struct list_head	*at;
};

/* A callback of bpf_loop(): the verifier follows it once. */
static long look_at(__u32 i, struct together *t)
{
	__u32 rtt, min_rtt, weight, sharers, shows;
	struct mptcp_subflow_context *c;
	struct weight found;
	const struct wrr_path *p;
	struct mptcp_sock *msk;
	struct tcp_sock *tp;
	__u64 unit;

	msk = as_kernel(struct mptcp_sock, t->msk);
	if (!t->at || t->at == &msk->conn_list)
		return 1;
	c = as_kernel(struct mptcp_subflow_context,
		      (void *)t->at - bpf_core_field_offset(
				struct mptcp_subflow_context, node));
	t->at = c->node.next;
	tp = sibling(t->sk, c);
	if (!tp)
		return 0;
	p = (const void *)tp->inet_conn.icsk_ca_priv;
	rtt = tp->srtt_us >> 3;
	min_rtt = p->min_rtt_us;
	t->acked += tp->bytes_acked;
	t->unsent += tp->write_seq - tp->snd_nxt;
	t->pace += tp->inet_conn.icsk_inet.sk.sk_pacing_rate;
	if (min_rtt && min_rtt < t->fastest_us)
		t->fastest_us = min_rtt;
	/* those that the path manager keeps for the time when no other is left */
	if (is_backup(c))
		return 0;
	found = find_weight(&tp->inet_conn.icsk_inet.sk, msk->token);
	weight = found.weight;
	unit = with_another(t->sharers, found.access);
	if (!found.access || sharers_of(unit, found.access) == 1)
		t->weights += weight;
	t->sharers = unit;
	sharers = sharers_of(t->sharers_before, found.access);
	if (!weight)
		return 0;
	if (tp->write_seq == tp->snd_nxt)
		t->starved = 1;
	if (rtt > t->slowest_us)
		t->slowest_us = rtt;
	shows = rtt + p->window_us;
	if (shows > t->longest_us)
		t->longest_us = shows;
	/* what still falls to its share cannot get full by it */
	if (shows > t->shows_us &&
	    p->share <= wrr_share(t->rate, weight) / sharers * 33 / 32)
		t->shows_us = shows;
	unit = wrr_unit(wrr_first(10 * payload(tp), rtt) * sharers, weight);
	if (!t->first || unit < t->first)
		t->first = unit;
	if (p->share) {
		unit = wrr_unit(p->share * sharers, weight);
		if (!t->kept || unit < t->kept)
			t->kept = unit;
		if (unit > t->most)
			t->most = unit;
	}
	if (!p->full)
		return 0;
	unit = wrr_unit(p->rate * sharers, weight);
	if (!t->carried || unit < t->carried) {
		t->carried = unit;
		t->queue_us = p->queue_us;
	}
	return 0;
}

/* The connection's part, every tick: by whichever subflow comes first. */
static __always_inline void together(struct sock *sk, struct mptcp_sock *msk,
				     struct wrr_connection *c,
				     const struct settings *set, __u64 now)
{
	struct together t = {
		.fastest_us = ~0U,
		.sharers_before = c->sharers,
		.rate = c->search.rate,
		.sk = sk,
		.msk = msk,
	};
	__u64 tick = c->tick, since = now - (tick - WRR_TICK), carried, wait, rate;
	struct wrr_sight at = { .now = now, .since = since };
	enum wrr_seen seen = WRR_BUSY;

	/* another subflow's hook may run on another processor */
	if (now < tick ||
	    !__sync_bool_compare_and_swap(&c->tick, tick, now + WRR_TICK))
		return;
	t.unsent = msk->write_seq - msk->snd_nxt;
	t.at = msk->conn_list.next;
	bpf_loop(SUBFLOWS_MAX, look_at, &t, 0);
	if (t.fastest_us != ~0U)
		c->fastest_us = t.fastest_us;
	c->slowest_us = t.slowest_us;
	c->starved = t.starved;
	if (c->version != set->version || c->weights != t.weights ||
	    c->sharers != t.sharers) {
		c->weights = t.weights;
		c->sharers = t.sharers;
		c->round++;
	}
	if (c->version != set->version) {
		c->version = set->version;
		if (t.kept && c->search.rate) {
			c->search.rate = t.kept;
			c->search.good = 0;
			c->search.hold = 0;
		}
	}
	if (!c->search.rate)
		c->search.rate = t.first;
	rate = c->search.rate;
	if (tick && t.weights && t.acked >= c->acked && since < 100 * WRR_TICK) {
		c->due += (t.acked - c->acked) * 16 / t.weights;
		carried = (t.acked - c->acked) * 1000000 / (since / 1000 + 1);
		carried = wrr_unit(carried, t.weights);
		wait = t.pace ? t.unsent * 1000000 / (t.pace / 1000 + 1) : 0;
		if (wait < 2 * WRR_MS)
			seen = WRR_IDLE;
		if (set->strict && t.carried) {
			seen = WRR_FULL;
			carried = t.carried;
		}
		c->idle = seen == WRR_IDLE;
		at.carried = carried;
		at.queue_us = t.queue_us;
		at.shows = (t.shows_us ? t.shows_us : t.longest_us) * 1000ULL;
		wrr_step(&c->search, seen, &at);
	}
	/* what was carried at other rates than these says nothing of the shares */
	if (c->search.rate > rate + rate / 8 ||
	    t.most > c->search.rate + c->search.rate / 8)
		c->round++;
	c->acked = t.acked;
}

static __always_inline void control(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct mptcp_sock *msk = connection(sk);
	struct wrr_path *p = ca_priv(sk);
	struct wrr_connection *c = 0;
	__u64 now = bpf_ktime_get_ns(), rate, share = WRR_RATE_MAX;
	__u32 began = p->began_us;
	__u32 searching;
	__u32 srtt = tp->srtt_us >> 3, mss = payload(tp), zero = 0, rtt, us, token = 0;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	struct weight found;
	struct dues dues;

	if (!set || !srtt || !mss)
		return;
	if (msk)
		token = msk->token;
	if (!p->weight || p->version != (__u16)set->version) {
		found = find_weight(sk, token);
		p->version = set->version;
		p->weight = found.weight;
		p->access = found.access;
	}
	if (msk && token)
		c = find_connection(token);
	searching = p->cap > p->good;
	barrier_var(searching);	/* the verifier wants one load from each */
	barrier_var(c);		/* and a look at c before */
	if (c && set->strict)
		searching = c->search.rate > c->search.good;
	measure(tp, p, rs, now, searching, c && c->idle);
	if (c) {
		together(sk, msk, c, set, now);
		dues.per_unit = c->due;
		dues.slowest_us = c->slowest_us;
		dues.idle = c->idle;
		dues.sharers = sharers_of(c->sharers, p->access);
		dues.round = c->round;
		dues.count = c->idle || set->strict;
		dues.pause = c->starved && !c->idle;
		settle_debt(tp, p, &dues);
		if (p->weight && c->search.rate)
			share = wrr_share(c->search.rate, p->weight) / dues.sharers;
	}
	/* ACKs may come every few microseconds: once in a millisecond is enough */
	if ((__u16)(now / WRR_MS) == p->paced_ms && p->began_us == began)
		return;
	rate = share;
	if (!set->strict || share == WRR_RATE_MAX) {
		rate = own_rate(tp, p, now, p->began_us != began);
		if (share < rate)
			rate = share;
	}
	rate = slewed(p, rate, now);
	/* Beside a queue of others, room for what is in it. */
	rtt = p->min_rtt_us && !others_queue(p, now) ? p->min_rtt_us : srtt;
	tp->snd_cwnd = wrr_window(rate, rtt, mss, p->late);
	us = queue_time(srtt, c ? c->slowest_us : 0);
	bound_queue(sk, tp, queue_bytes(rate, us));
	if (c && c->idle) {
		rate = wrr_pay(rate, p->owed, c->slowest_us);
		rate = rate * wrr_stretch(srtt, c->fastest_us) >> 8;
	} else if (c && !c->starved) {
		/* one that has nothing to send may wait for this path */
		rate = wrr_wait(rate, p->owed, c->slowest_us);
	}
	/* wrr_ssthresh() may have been skipped, and so may wrr_init() */
	if (tp->snd_ssthresh != TCP_INFINITE_SSTHRESH)
		tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	sk->sk_pacing_rate = wrr_clamp(rate);
}

/* The hook had two arguments until Linux 6.9, and has four since. */
SEC("struct_ops")
void wrr_control(unsigned long long *ctx)
{
	const struct rate_sample *rs;

	if (skipped())
		return;
	if (LINUX_KERNEL_VERSION >= KERNEL_VERSION(6, 10, 0)) {
		rs = (void *)ctx[3];
		barrier_var(rs);	/* no load at an offset that varies */
	} else {
		rs = (void *)ctx[1];
		barrier_var(rs);
	}
	control((struct sock *)ctx[0], rs);
}

/* Nothing hangs on it here but the kernel's own slow start after an idle time. */
SEC("struct_ops")
__u32 HOOK(wrr_ssthresh, struct sock *sk)
{
	return TCP_INFINITE_SSTHRESH;
}

SEC("struct_ops")
__u32 HOOK(wrr_undo_cwnd, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

/* Times of the window: a queue in front of each path of bursts of 64 kB. */
SEC("struct_ops")
__u32 HOOK(wrr_sndbuf_expand, struct sock *sk)
{
	return 4;
}

SEC("struct_ops")
__u32 HOOK(wrr_min_tso_segs, struct sock *sk)
{
	return wrr_burst(sk->sk_pacing_rate, payload((struct tcp_sock *)sk));
}

SEC(".struct_ops.link")
struct tcp_congestion_ops wrr = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= (void *)wrr_init,
	.ssthresh	= (void *)wrr_ssthresh,
	.cong_control	= (void *)wrr_control,
	.undo_cwnd	= (void *)wrr_undo_cwnd,
	.min_tso_segs	= (void *)wrr_min_tso_segs,
	.sndbuf_expand	= (void *)wrr_sndbuf_expand,
	.name		= "braid_wrr",
};
